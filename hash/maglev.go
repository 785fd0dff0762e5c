package hash

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
)

// Bounds and default of [MaglevConfig.Size]. The default is Envoy's.
const (
	MinMaglevSize     = 251
	MaxMaglevSize     = 5_000_011
	DefaultMaglevSize = 65_537
)

// MaglevConfig says how a [Maglev] is built. The zero value has the documented defaults.
type MaglevConfig struct {
	// Size is the number of slots of the table, a prime of 251 to 5,000,011; 0 means 65,537.
	// It bounds the number of endpoints. A hundred slots for the lightest one hold every
	// share within 1 % of what the weights say; ten times the slots move a quarter to a half
	// of the keys that need not have moved.
	Size int
	// Seed makes the table another one. Two tiers that hash the same keys must differ in it:
	// otherwise the second tier sees only the keys that the first sent there, and leaves
	// most of its endpoints idle.
	Seed uint64
	// MergeDuplicates adds the weights of endpoints with the same ID, which are an error
	// otherwise. The index of the first stands for all of them.
	MergeDuplicates bool
}

// withDefaults returns the config with its zeros filled in.
func (c MaglevConfig) withDefaults() MaglevConfig {
	if c.Size == 0 {
		c.Size = DefaultMaglevSize
	}
	return c
}

// Validate reports a Size that is out of range or no prime, with the nearest primes.
func (c MaglevConfig) Validate() error {
	size := c.withDefaults().Size
	if size < MinMaglevSize || size > MaxMaglevSize {
		return fmt.Errorf("hash: MaglevConfig.Size is %d, want a prime of %d to %d", size, MinMaglevSize, MaxMaglevSize)
	}
	if isPrime(size) {
		return nil
	}
	below, above := size-1, size+1
	for !isPrime(below) {
		below--
	}
	for !isPrime(above) {
		above++
	}
	return fmt.Errorf("hash: MaglevConfig.Size is %d, want a prime such as %d or %d", size, below, above)
}

// isPrime is by trial division: the largest size needs 2,236 of them at most.
func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

// Maglev is a table of slots, each owned by an endpoint; a key's hash points to a slot. A
// lookup is two multiplications and one load, whatever the number of endpoints, and every
// endpoint owns the number of slots that its weight asks for, to less than one slot. Those
// that it asks less than one for get one, which the others give up in proportion.
//
// When endpoints come, go or change weight, a few keys move between endpoints that did not
// change: with 100 endpoints and the default size about 0.6 % of all keys, beside the 1 %
// that must move; with 400 it is 1 %, which is the most. A walk past an owner that is down
// goes to an endpoint drawn by the key, which need not be the one that gets the key when the
// owner is removed for good, so a key may move twice. Where that hurts, use [Ring] or
// rendezvous hashing.
//
// Only the ratios of the weights matter. The table follows from the IDs, the weights and
// the config alone: not from the order of the list, the process or the machine.
//
// The zero Maglev is empty: Lookup returns -1. A Maglev is immutable and safe for
// concurrent use. Source: Eisenbud et al., "Maglev: A Fast and Reliable Software Network
// Load Balancer", NSDI 2016, 3.4, with exact shares for weights.
type Maglev struct {
	// The owner of each slot, as an index into the caller's slice, in the narrowest type
	// that fits. One of the three is in use, none when there are fewer than two endpoints.
	slots8  []uint8
	slots16 []uint16
	slots32 []uint32

	size    uint64
	keySeed uint64
	single  int // 1 + the index of the only endpoint; 0: nobody, or a table

	config MaglevConfig
	list   *list
	quotas []uint32
}

// NewMaglev builds a table for the endpoints. It reports every problem of the config and
// the list, joined: besides those of [Endpoint], more endpoints than slots. It returns
// [ErrEmpty] if no endpoint has a positive weight. The slice is neither changed nor kept.
//
// Building takes about size·ln(size) steps, for any weights: one to two milliseconds at
// the default size. Besides the table it needs 8 bytes a slot and 24 an endpoint meanwhile.
func NewMaglev(endpoints []Endpoint, c MaglevConfig) (*Maglev, error) {
	l, err := planMaglev(endpoints, c)
	if err != nil {
		return nil, err
	}
	return newMaglev(l, c.withDefaults()), nil
}

// planMaglev returns the list that a table is to be built for, if it can be.
func planMaglev(endpoints []Endpoint, c MaglevConfig) (*list, error) {
	configErr := c.Validate()
	l, err := newList(endpoints, c.Seed, c.MergeDuplicates)
	if configErr != nil || err != nil {
		return nil, errors.Join(configErr, err)
	}
	if n, size := len(l.ids), c.withDefaults().Size; n > size {
		return nil, fmt.Errorf("hash: %d endpoints have a weight above 0, want at most MaglevConfig.Size, %d", n, size)
	}
	return l, nil
}

// newMaglev builds the table for a valid list and config.
func newMaglev(l *list, c MaglevConfig) *Maglev {
	m := &Maglev{size: uint64(c.Size), keySeed: l.keySeed, config: c, list: l}
	weights := boundedSum(l.weights)
	m.quotas = slotQuotas(weights, uint64(c.Size))
	if len(l.ids) == 1 {
		m.single = 1 + int(l.index[0])
		return m
	}
	b := newMaglevBuild(l.points, uint32(c.Size))
	last := int32(0)
	for _, i := range l.index {
		last = max(last, i)
	}
	switch {
	case last < 1<<8:
		m.slots8 = fillSlots[uint8](b, l.index, weights, m.quotas)
	case last < 1<<16:
		m.slots16 = fillSlots[uint16](b, l.index, weights, m.quotas)
	default:
		m.slots32 = fillSlots[uint32](b, l.index, weights, m.quotas)
	}
	return m
}

// Lookup returns the owner of a key's hash, as an index into the slice that the table was
// built from; -1 from an empty table only. Any 64 bits will do for the hash, consecutive
// numbers included; [Sum] makes them from text.
func (m *Maglev) Lookup(key uint64) int { return m.owner(scatter(spread(key, m.keySeed))) }

// owner returns the owner of a hash that is already scattered.
func (m *Maglev) owner(h uint64) int {
	// The high half of the product scales the hash to the size without a division.
	slot, _ := bits.Mul64(h, m.size)
	switch {
	case slot < uint64(len(m.slots16)):
		return int(m.slots16[slot])
	case slot < uint64(len(m.slots8)):
		return int(m.slots8[slot])
	case slot < uint64(len(m.slots32)):
		return int(m.slots32[slot])
	}
	return m.single - 1
}

// maglevDraws is how many slots a walk looks at for its first candidates before it goes
// through the list: enough for eight of ten equal endpoints, bounded for unequal ones.
const maglevDraws = 32

// next moves a walk on: the owner of the key, then up to seven others by hashing the hash
// again, then the rest of the list.
func (m *Maglev) next(s *walkState) int {
	if m.list == nil {
		return -1
	}
	if s.count == 0 {
		s.score = scatter(spread(s.key, m.keySeed))
		i := m.owner(s.score)
		s.add(uint32(i))
		return i
	}
	for s.at < maglevDraws && s.count < walkFew && int(s.count) < len(m.list.ids) {
		s.at++
		s.score = mix64(s.score + golden)
		if i := m.owner(s.score); !s.seen(uint32(i)) {
			s.add(uint32(i))
			return i
		}
	}
	return m.list.sweep(s)
}

// Walk returns a walk through the candidates of a key's hash.
func (m *Maglev) Walk(key uint64) Walk { return Walk{maglev: m, state: walkState{key: key}} }

// Candidates returns the candidates of a key's hash, as indices: the owner, then up to
// seven others drawn by the key from the table, so by weight, then the rest in an order that
// the key decides and weights do not. Each endpoint with a positive weight comes once. It
// does not allocate when ranged over at once.
func (m *Maglev) Candidates(key uint64) iter.Seq[int] {
	return func(yield func(int) bool) { m.each(key, yield) }
}

func (m *Maglev) each(key uint64, yield func(int) bool) {
	// Most callers stop at the owner, and it is cheaper without a state.
	if i := m.Lookup(key); i < 0 || !yield(i) {
		return
	}
	s := walkState{key: key}
	m.next(&s)
	for i := m.next(&s); i >= 0 && yield(i); i = m.next(&s) {
	}
}

// AppendN appends the first n candidates of a key's hash to dst, fewer if there are fewer.
func (m *Maglev) AppendN(dst []int, key uint64, n int) []int {
	s := walkState{key: key}
	for range n {
		i := m.next(&s)
		if i < 0 {
			break
		}
		dst = append(dst, i)
	}
	return dst
}

// Update returns a table for another list with the same config: the receiver if the result
// would be the same, indices included. A changed list costs a whole build, since a table
// that was patched would depend on its history, and clients would disagree. On an error,
// one of those of [NewMaglev], the receiver comes back with it, as good as before.
func (m *Maglev) Update(endpoints []Endpoint) (*Maglev, error) {
	l, err := planMaglev(endpoints, m.config)
	if err != nil || m.list != nil && l.equal(m.list) {
		return m, err
	}
	return newMaglev(l, m.config.withDefaults()), nil
}

// Fingerprint identifies what keys map to: the algorithm and its version, the config, and
// the IDs with their weights. Clients with the same fingerprint send each key to the same
// ID. Drained endpoints and the order of the list are not part of it. It costs one pass
// over the IDs.
func (m *Maglev) Fingerprint() uint64 {
	if m.list == nil {
		return 0
	}
	return m.list.fingerprint("maglev 1", uint64(m.config.Size))
}

// Stats describes the table.
func (m *Maglev) Stats() Stats {
	if m.list == nil {
		return Stats{}
	}
	parts := make([]uint64, len(m.quotas))
	for i, q := range m.quotas {
		parts[i] = uint64(q)
	}
	s := Stats{Endpoints: len(parts), Slots: m.config.Size}
	s.MinShare, s.MaxShare = m.list.shareRange(parts)
	s.Bytes = len(m.slots8) + 2*len(m.slots16) + 4*len(m.slots32) + 4*len(m.quotas) + m.list.bytes()
	return s
}
