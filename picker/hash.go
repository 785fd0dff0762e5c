package picker

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/evenkeel/evenkeel/hash"
)

// HashTable is a structure that maps keys to endpoints.
type HashTable uint8

const (
	// Maglev is a table of slots, the zero value: one load a pick for any number of
	// endpoints, and shares within a slot of what the weights say. A change of the list moves
	// up to 1 % of the keys that need not have moved, 0.6 % with 100 endpoints. See [hash.Maglev].
	Maglev HashTable = iota
	// Ring is a circle of points: a change moves only the keys that have to. Shares are
	// uneven, by 8 % with the usual 160 points. See [hash.Ring].
	Ring
	// Rendezvous has neither fault, and looks at every endpoint: about 0.1 µs a pick for a
	// hundred. See [hash.Rendezvous].
	Rendezvous
)

// String returns the table's name.
func (t HashTable) String() string {
	switch t {
	case Maglev:
		return "maglev"
	case Ring:
		return "ring"
	case Rendezvous:
		return "rendezvous"
	}
	return "invalid"
}

// Hash sends requests with the same key to the same endpoint. All clients with the same
// settings and the same list agree on every key, whatever the order of their lists: where a
// cache or a session is, it is found. Keys are [Request.Key], which adapters take from the
// request; a request without one goes by Fallback.
//
// Tables are built over the members that are not drained, by ID and weight. An endpoint that
// is not available stays in the table, and its keys go to their next candidates until it is
// back: nothing is rebuilt and no other key moves.
//
// The default table is [Maglev] for any number of endpoints, because it is the one whose
// picks cost the same for ten and for ten thousand; were the choice to depend on the number,
// all keys would move when it changes. Take [Rendezvous] for up to a few hundred endpoints
// where a key that moves is expensive: it moves no key without need, and who is next for a
// key now gets it if its owner is removed later.
//
// Load is bounded: no endpoint has more than LoadFactor times its share of the requests in
// flight; the keys of one that is full go to their next candidates. So a popular key cannot
// take an endpoint down, at the price of reaching a second cache. An endpoint that asked to be
// left alone is passed by, and one that joined others gets one request at a time until it has
// answered. After either, its bound grows from a tenth to the whole in ten seconds or more, by
// the pace of requests; with a Ring or Rendezvous, what it does not take yet goes to those who
// had the keys before. Who has answered a Hash knows only if Fallback learns it, which Random does
// not, say. Request.Avoid is honoured in the order of candidates.
//
// A Hash does not look at failures: while an endpoint fails and is available all the same, its
// keys fail. In gRPC one without a connection is not available, be it that none can be made or
// that none has been made yet: a client's first calls may go to next candidates.
//
// A list that the table cannot hold, which takes more endpoints than Size or more ring points
// than [hash.DefaultRingMaxPoints], is served by [Rendezvous] instead, on which all clients
// agree too; [Snapshot.HashStats] counts it.
type Hash struct {
	// Table is the structure; the zero value is Maglev.
	Table HashTable
	// Size is the number of slots of a Maglev table, a prime of 251 to 5,000,011; 0 means
	// 65,537. A hundred slots an endpoint are enough. Other tables ignore it.
	Size int
	// Points is the number of points of a ring for a weight of 1, 1 to 1,048,576; 0 means 160.
	// Other tables ignore it.
	Points int
	// Seed makes the table another one. All clients of a service must have the same; two
	// tiers that hash the same key should not.
	Seed uint64
	// LoadFactor is how many times its share of the requests in flight an endpoint may have,
	// above 1 up to 10; 0 means 1.25.
	LoadFactor float64
	// MinCapacity is how many requests an endpoint may have in flight in any case, 1 to
	// 1,048,576; 0 means 4. The bound is each client's own: one with a request or two for each
	// endpoint would otherwise send keys away at every coincidence.
	MinCapacity int
	// Unbounded switches the bound off: a key leaves its endpoint only when that is not
	// available, or asks to be left alone.
	Unbounded bool
	// Fallback is the policy for requests without a key; nil means [Adaptive]. It cannot be a
	// Hash.
	Fallback Policy
	// StickyKeys is how many keys are remembered with the endpoint they were sent to, up to
	// 16,777,216: such a key stays there while the endpoint is available, whatever happens to
	// the list and however loaded it is; so does one that found its owner full at first. When
	// its endpoint leaves the list, the key is placed anew. When it is merely not available,
	// the key goes to its next candidates, and back if that lasts for less than 1/64 of
	// StickyTTL (9 s by default), as when a connection is made anew; after twice that it
	// belongs to where it went, for what it has left there is newer. A key that nobody asks for
	// meanwhile stays. Each takes 32 to 64 bytes. Beyond that number the longest unused ones
	// are forgotten. It holds within one client, which others need not agree with; in gRPC it
	// ends when the channel goes idle. 0, the default, remembers none.
	StickyKeys int
	// StickyTTL is how long an unused key is remembered, 1 s to 168 h; 0 means 10 min.
	StickyTTL time.Duration
}

// Bounds and defaults of [Hash].
const (
	maxStickyKeys    = 1 << 24
	minStickyTTL     = time.Second
	maxStickyTTL     = 7 * 24 * time.Hour
	defaultStickyTTL = 10 * time.Minute
	maxMinCapacity   = 1 << 20
	maxLoadFactor    = 10
)

func (h Hash) fallback() Policy {
	if h.Fallback == nil {
		return Adaptive{}
	}
	return h.Fallback
}

// UsesKey returns true: adapters have to look for keys.
func (h Hash) UsesKey() bool { return true }

// Validate reports every setting out of range, joined.
func (h Hash) Validate() error {
	var wrong []error
	add := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("picker: Hash."+format, args...))
	}
	if h.Table > Rendezvous {
		add("Table is %d, want Maglev, Ring or Rendezvous", h.Table)
	}
	if (hash.MaglevConfig{Size: h.Size}).Validate() != nil {
		add("Size is %d, want a prime of %d to %d, or 0 for %d", h.Size, hash.MinMaglevSize, hash.MaxMaglevSize, hash.DefaultMaglevSize)
	}
	if (hash.RingConfig{Points: h.Points}).Validate() != nil {
		add("Points is %d, want 1 to %d, or 0 for %d", h.Points, hash.MaxRingPoints, hash.DefaultRingPoints)
	}
	// Written so that NaN is refused.
	if f := h.LoadFactor; f != 0 && !(f > 1 && f <= maxLoadFactor) {
		add("LoadFactor is %v, want above 1 to %d, or 0 for 1.25", f, maxLoadFactor)
	}
	if c := h.MinCapacity; c < 0 || c > maxMinCapacity {
		add("MinCapacity is %d, want 1 to %d, or 0 for 4", c, maxMinCapacity)
	}
	if h.Unbounded && h.LoadFactor != 0 {
		add("LoadFactor is %v, want 0 with Unbounded", h.LoadFactor)
	}
	if h.Unbounded && h.MinCapacity != 0 {
		add("MinCapacity is %d, want 0 with Unbounded", h.MinCapacity)
	}
	if k := h.StickyKeys; k < 0 || k > maxStickyKeys {
		add("StickyKeys is %d, want 0 to %d", k, maxStickyKeys)
	}
	if d := h.StickyTTL; d != 0 && (d < minStickyTTL || d > maxStickyTTL) {
		add("StickyTTL is %v, want %v to %v, or 0 for %v", d, minStickyTTL, maxStickyTTL, defaultStickyTTL)
	}
	wrong = append(wrong, validateFallback(h.fallback()))
	return errors.Join(wrong...)
}

func validateFallback(p Policy) error {
	switch v := reflect.ValueOf(p); {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return fmt.Errorf("picker: Hash.Fallback is a nil %T, want a policy or no value", p)
	case reflect.TypeOf(p) == reflect.TypeFor[Hash]() || reflect.TypeOf(p) == reflect.TypeFor[*Hash]():
		return errors.New("picker: Hash.Fallback is a Hash, want a policy that does without keys")
	}
	return p.Validate()
}

// Needs returns what the fallback learns and, if load is bounded, the pool's total, with which
// newcomers that the fallback learns of take up their share slowly.
func (h Hash) Needs() Need {
	needs := h.fallback().Needs()
	switch {
	case h.Unbounded:
		return needs
	case needs&NeedLatency != 0:
		needs |= NeedRamp
	}
	return needs | needTotal
}

// bound returns the bound of load, none if that is switched off.
func (h Hash) bound() hash.Bound {
	if h.Unbounded {
		return hash.Bound{}
	}
	b, err := hash.NewBound(hash.BoundConfig{Factor: h.LoadFactor, MinCapacity: h.MinCapacity})
	if err != nil { // not validated; the default is as good as any
		b, _ = hash.NewBound(hash.BoundConfig{})
	}
	return b
}

// minCapacity is the number below which nobody is full.
func (h Hash) minCapacity() int64 {
	switch {
	case h.Unbounded:
		return math.MaxInt64
	case h.MinCapacity == 0:
		return 4
	}
	return int64(h.MinCapacity)
}
