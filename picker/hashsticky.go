package picker

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// stickyWays is how many places a key may be in: a set is two cache lines.
	stickyWays = 8
	// stickyTicks is how many ticks a key is remembered unused. A key is written once in a
	// tick at most, however often it is used.
	stickyTicks = 64
	// stickyPatience is for how many ticks a key is away before it stays where it went.
	stickyPatience = 1
	// stickyClaimed is the data of a place that somebody is about to write.
	stickyClaimed = 1
	// stickyAway in the data says that the endpoint was missed, and since when.
	stickyAway = 1 << 63
)

// stickyKeys remembers which endpoint a key was sent to. It is bounded and never blocks: a set
// of places for each part of the keys, in which the longest unused one gives way. There are
// two places for each key that is to be remembered, so that few sets run over.
//
// A place's data is the endpoint's serial number, the tick of the last use, and whether that was
// in vain; no serial means that the key does not count. To give a place to another key one claims it by data, writes the
// key and then the data, so that no key is seen with another's endpoint (but if a place changes
// hands twice between two instructions, back to the same endpoint in the same tick). Who finds a
// place claimed goes without.
type stickyKeys struct {
	keys int
	ttl  time.Duration
	tick int64 // in nanoseconds
	sets []stickySet
	// shift leaves the bits of a mixed key that say which set.
	shift uint
}

type stickySet [stickyWays]stickyPlace

type stickyPlace struct {
	data atomic.Uint64
	key  atomic.Uint64
}

func newStickyKeys(h Hash) *stickyKeys {
	ttl := h.StickyTTL
	if ttl == 0 {
		ttl = defaultStickyTTL
	}
	order := bits.Len(uint((2*h.StickyKeys - 1) / stickyWays))
	return &stickyKeys{
		keys:  h.StickyKeys,
		ttl:   h.StickyTTL,
		tick:  max(int64(ttl)/stickyTicks, 1),
		sets:  make([]stickySet, 1<<order),
		shift: uint(64 - order),
	}
}

// keptFor returns k if it has the settings of h, else nil.
func (k *stickyKeys) keptFor(h Hash) *stickyKeys {
	if k == nil || k.keys != h.StickyKeys || k.ttl != h.StickyTTL {
		return nil
	}
	return k
}

// ticks returns the instant now in ticks, modulo their width.
func (k *stickyKeys) ticks(now int64) uint32 { return uint32(max(now, 0) / k.tick) }

func (k *stickyKeys) set(key uint64) *stickySet {
	return &k.sets[mix(key)>>k.shift]
}

// stickyBond is what is remembered of a key; the zero value is nothing.
type stickyBond struct {
	place *stickyPlace
	data  uint64
}

// serial returns the endpoint's serial number, 0 if nothing is remembered. There is no room for
// the highest bit, which only a pool that has had two billion endpoints would miss.
func (b stickyBond) serial() uint32 { return uint32(b.data &^ stickyAway >> 32) }

// find returns what is remembered of a key.
func (k *stickyKeys) find(key uint64, tick uint32) stickyBond {
	set := k.set(key)
	for w := range set {
		data, ok := set[w].of(key)
		switch {
		case !ok:
			continue
		case expired(data, tick):
			return stickyBond{}
		}
		return stickyBond{&set[w], data}
	}
	return stickyBond{}
}

// used notes that the key went to its endpoint. Whoever changed the place in between knows
// better.
func (b stickyBond) used(tick uint32) {
	if is := b.data&^(stickyAway|math.MaxUint32) | uint64(tick); is != b.data {
		b.place.data.CompareAndSwap(b.data, is)
	}
}

// missed notes that the key's endpoint is not available, and reports whether it is worth
// waiting for: a connection that is made anew is back in a moment, and what the key has there
// with it.
func (b stickyBond) missed(tick uint32) bool {
	if b.data&stickyAway != 0 {
		return int32(tick-uint32(b.data)) <= stickyPatience
	}
	b.place.data.CompareAndSwap(b.data, b.data&^math.MaxUint32|stickyAway|uint64(tick))
	return true
}

// of returns the data of a place if it is key's.
func (p *stickyPlace) of(key uint64) (data uint64, ok bool) {
	data = p.data.Load()
	for data>>32 != 0 && p.key.Load() == key {
		// The place may have been given to another key before or after the key was read: the
		// endpoint is this key's only if it was there on both sides.
		again := p.data.Load()
		if again>>32 == data>>32 {
			return again, true
		}
		data = again
	}
	return 0, false
}

// expired reports whether the last use is too long ago. One that is ahead, by a clock that has
// stepped back, is not.
func expired(data uint64, tick uint32) bool { return int32(tick-uint32(data)) > stickyTicks }

// bind remembers that key was sent to the endpoint with this serial number, in place of any
// other that it had.
func (k *stickyKeys) bind(key uint64, serial, tick uint32) {
	set := k.set(key)
	data := uint64(serial)<<32&^stickyAway | uint64(tick)
	victim, idle := -1, int32(0)
	var was uint64
	for w := range set {
		d := set[w].data.Load()
		if d>>32 != 0 && set[w].key.Load() == key {
			set[w].data.CompareAndSwap(d, data)
			return
		}
		if d == stickyClaimed {
			continue
		}
		age := int32(tick - uint32(d))
		if d == 0 || expired(d, tick) {
			age = 1<<31 - 1
		}
		if victim < 0 || age > idle {
			victim, idle, was = w, age, d
		}
	}
	if victim < 0 || !set[victim].data.CompareAndSwap(was, stickyClaimed) {
		return
	}
	set[victim].key.Store(key)
	set[victim].data.Store(data)
}

// serialTable maps serial numbers of records to indices of a list. Immutable.
type serialTable struct {
	slots []uint64 // serial number and index; 0 is nobody, since no serial number is 0
	shift uint
}

func newSerialTable(records []*Record) serialTable {
	order := bits.Len(uint(2 * len(records)))
	t := serialTable{slots: make([]uint64, 1<<order), shift: uint(32 - order)}
	for i, r := range records {
		at := t.start(r.serial)
		for t.slots[at] != 0 {
			at = (at + 1) % len(t.slots)
		}
		t.slots[at] = uint64(r.serial)<<32 | uint64(i)
	}
	return t
}

// start spreads serial numbers by multiplication (Knuth).
func (t *serialTable) start(serial uint32) int { return int(serial * 0x9e3779b1 >> t.shift) }

// index returns the index of the record, -1 if it is not in the list. At most half of the
// slots are taken, so that there is always a free one.
func (t *serialTable) index(serial uint32) int {
	for at := t.start(serial); t.slots[at] != 0; at = (at + 1) % len(t.slots) {
		if uint32(t.slots[at]>>32) == serial {
			return int(uint32(t.slots[at]))
		}
	}
	return -1
}

// pickSticky sends a key where it was sent before, while that is available. A request that is
// not to go there, or not at the moment, goes elsewhere alone: the key stays.
func (p *hashed) pickSticky(s *Snapshot, r *Request, now int64) int {
	at := now
	if at == 0 {
		at = p.shared.swept.Load() // a policy that learns nothing gets no instant
	}
	tick := p.sticky.ticks(at)
	binds := len(r.Avoid) == 0
	if b := p.sticky.find(r.Key, tick); b.serial() != 0 {
		switch i := p.serials.index(b.serial()); {
		case i < 0: // gone from the list
		case !s.Available(i):
			binds = binds && !b.missed(tick)
		case !r.avoids(s.records[i]):
			b.used(tick)
			return i
		}
	}
	i := p.place(s, r, now)
	if binds {
		p.sticky.bind(r.Key, s.records[i].serial, tick)
	}
	return i
}
