package hash

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
)

// Defaults and bounds of [RingConfig].
const (
	// DefaultRingPoints is what ketama and nginx use.
	DefaultRingPoints    = 160
	MaxRingPoints        = 1 << 20
	DefaultRingMaxPoints = 8 << 20
	MaxRingMaxPoints     = 1 << 27
)

// RingConfig says how a [Ring] is built. The zero value has the documented defaults.
type RingConfig struct {
	// Points is the number of points for a weight of 1; 0 means 160, others are 1 to
	// 1,048,576. It does not depend on the number of endpoints: that is what keeps the keys
	// of the others in place. The shares of endpoints with p points each differ by
	// 1/√p of the mean (one standard deviation): 160 points 8 %, 1,000 points 3 %.
	Points int
	// MaxPoints is the largest number of points of the whole ring, at 11 to 14 bytes each, and
	// 40 an endpoint. A list that needs more is refused: a ring that were thinned out would
	// move keys of everybody. 0 means 8,388,608, others are 1 to 134,217,728.
	MaxPoints int
	// Ketama puts the points where libketama, libmemcached and spymemcached do, for clients
	// that share a cache with those: see [KetamaSum], which then makes the keys. Points must
	// be a multiple of 4 and Seed 0.
	Ketama bool
	// Seed makes the ring another one. Two tiers that hash the same keys must differ in it.
	Seed uint64
	// MergeDuplicates adds the weights of endpoints with the same ID, which are an error
	// otherwise. The index of the first stands for all of them.
	MergeDuplicates bool
}

// withDefaults returns the config with its zeros filled in.
func (c RingConfig) withDefaults() RingConfig {
	if c.Points == 0 {
		c.Points = DefaultRingPoints
	}
	if c.MaxPoints == 0 {
		c.MaxPoints = DefaultRingMaxPoints
	}
	return c
}

// Validate reports every setting out of range, joined.
func (c RingConfig) Validate() error {
	c = c.withDefaults()
	var wrong problems
	if c.Points < 1 || c.Points > MaxRingPoints {
		wrong.add("RingConfig.Points is %d, want 1 to %d", c.Points, MaxRingPoints)
	}
	if c.MaxPoints < 1 || c.MaxPoints > MaxRingMaxPoints {
		wrong.add("RingConfig.MaxPoints is %d, want 1 to %d", c.MaxPoints, MaxRingMaxPoints)
	}
	if c.Ketama && c.Points%4 != 0 {
		wrong.add("RingConfig.Points is %d, want a multiple of 4 with Ketama", c.Points)
	}
	if c.Ketama && c.Seed != 0 {
		wrong.add("RingConfig.Seed is %d, want 0 with Ketama", c.Seed)
	}
	return wrong.err()
}

// Ring is a circle of points, a number of them for each endpoint in proportion to its
// weight; a key belongs to the first point at or after its hash. When an endpoint goes,
// exactly its keys move, and when one comes, keys move to it alone, for any number of
// endpoints and any weights. A walk continues clockwise, so the second candidate is the
// one that gets the key when the owner is removed for good.
//
// Absolute weights count, not only ratios: twice the weights are twice the points, which
// is another, more even ring. Weights below 1/Points get one point.
//
// A lookup takes two loads and a short scan. [Ring.Update] makes a new ring in one pass.
//
// The zero Ring is empty: Lookup returns -1. A Ring is immutable and safe for concurrent
// use. Source: Karger et al., "Consistent Hashing and Random Trees", STOC 1997.
type Ring struct {
	circle  circle
	keySeed uint64

	config RingConfig
	list   *list
	counts []uint32 // points of each endpoint
}

// NewRing builds a ring for the endpoints. It reports every problem of the config and the
// list, joined: besides those of [Endpoint], more points than MaxPoints. It returns
// [ErrEmpty] if no endpoint has a positive weight. The slice is neither changed nor kept.
// Building takes time in proportion to the points, tens of nanoseconds each, and 11 to 14
// bytes more a point meanwhile.
func NewRing(endpoints []Endpoint, c RingConfig) (*Ring, error) {
	r, err := planRing(endpoints, c)
	if err != nil {
		return nil, err
	}
	r.build()
	return r, nil
}

// planRing returns a ring without its points.
func planRing(endpoints []Endpoint, c RingConfig) (*Ring, error) {
	configErr := c.Validate()
	c = c.withDefaults()
	l, err := newList(endpoints, c.Seed, c.MergeDuplicates)
	if configErr != nil || err != nil {
		return nil, errors.Join(configErr, err)
	}
	r := &Ring{keySeed: l.keySeed, config: c, list: l, counts: make([]uint32, len(l.ids))}
	sum := uint64(0)
	for i, w := range l.weights {
		n := pointCount(w, c)
		// Saturating: 2^12 endpoints of the largest weight and Points would make 2^64.
		sum = min(sum+n, 1<<62)
		r.counts[i] = uint32(min(n, MaxRingMaxPoints))
	}
	if sum > uint64(c.MaxPoints) {
		return nil, fmt.Errorf("hash: the ring would have %d points, %d for a weight of 1, "+
			"want at most MaxPoints, %d: lower the weights in proportion, or Points", sum, c.Points, c.MaxPoints)
	}
	return r, nil
}

// pointCount returns how many points a weight has: the nearest whole number, and for
// ketama the nearest multiple of four, halves up, at least one.
func pointCount(weight uint64, c RingConfig) uint64 {
	step := uint64(1)
	if c.Ketama {
		step = ketamaPoints
	}
	// At most 2^62 · 2^20: the half of the unit does not overflow the high word.
	hi, lo := bits.Mul64(weight, uint64(c.Points)/step)
	lo, carry := bits.Add64(lo, weightUnit/2, 0)
	n, _ := bits.Div64(hi+carry, lo, weightUnit)
	return max(n, 1) * step
}

// build makes the circle of all points.
func (r *Ring) build() {
	sum := 0
	for _, n := range r.counts {
		sum += int(n)
	}
	points := make([]uint64, 0, sum)
	for i, n := range r.counts {
		points = r.appendPoints(points, i, 0, n)
	}
	r.circle = newCircle(points)
}

// appendPoints appends the points from, from+1 up to to, without it, of the endpoint at a
// position. They follow from the ID and their number alone, never from other endpoints.
func (r *Ring) appendPoints(dst []uint64, position int, from, to uint32) []uint64 {
	if r.config.Ketama {
		return appendKetamaPoints(dst, r.list.ids[position], position, from, to)
	}
	seed := r.list.points[position] + uint64(from)*golden
	for range to - from {
		seed += golden
		dst = append(dst, mix64(seed)&^ownerMask|uint64(position))
	}
	return dst
}

// place returns where a key is on the circle. Keys of a ketama ring are places already. Others
// are mixed, and not only spread: of keys with a distance that is close to a multiple of
// 2^64/golden some arc would get three times its share.
func (r *Ring) place(key uint64) uint64 {
	if r.config.Ketama {
		return key
	}
	return mix64(key ^ r.keySeed)
}

// Lookup returns the owner of a key's hash, as an index into the slice that the ring was
// built from; -1 from an empty ring only. Any 64 bits will do for the hash, consecutive
// numbers included; [Sum] makes them from text, [KetamaSum] for a ketama ring.
func (r *Ring) Lookup(key uint64) int {
	if len(r.counts) == 0 {
		return -1
	}
	c := &r.circle
	return int(r.list.index[c.points[c.find(r.place(key))]&ownerMask])
}

// ringScan is how many points a walk looks at for its first candidates before it goes
// through the list: about ten microseconds at worst, when one weight outdoes all others.
const ringScan = 1 << 12

// next moves a walk on: the first eight owners clockwise, then the rest of the list.
func (r *Ring) next(s *walkState) int {
	if len(r.counts) == 0 {
		return -1
	}
	c := &r.circle
	if s.count == 0 {
		s.at = uint32(c.find(r.place(s.key)))
	}
	for s.count < walkFew && s.score < ringScan && int(s.count) < len(r.counts) {
		if s.at >= c.count() {
			s.at -= c.count()
		}
		i := r.list.index[c.points[s.at]&ownerMask]
		s.at++
		s.score++
		if !s.seen(uint32(i)) {
			s.add(uint32(i))
			return int(i)
		}
	}
	return r.list.sweep(s)
}

// Walk returns a walk through the candidates of a key's hash.
func (r *Ring) Walk(key uint64) Walk { return Walk{ring: r, state: walkState{key: key}} }

// Candidates returns the candidates of a key's hash, as indices: the owner, then clockwise
// the next ones, up to eight, then the rest in an order that the key decides and weights do
// not. Each endpoint with a positive weight comes once. It does not allocate when ranged
// over at once. Where the next owner is more than 4,096 points away, because one weight outdoes
// all others, the list takes over earlier.
func (r *Ring) Candidates(key uint64) iter.Seq[int] {
	return func(yield func(int) bool) { r.each(key, yield) }
}

func (r *Ring) each(key uint64, yield func(int) bool) {
	// Most callers stop at the owner, and it is cheaper without a state.
	if i := r.Lookup(key); i < 0 || !yield(i) {
		return
	}
	s := walkState{key: key}
	r.next(&s)
	for i := r.next(&s); i >= 0 && yield(i); i = r.next(&s) {
	}
}

// AppendN appends the first n candidates of a key's hash to dst, fewer if there are fewer.
func (r *Ring) AppendN(dst []int, key uint64, n int) []int {
	s := walkState{key: key}
	for range n {
		i := r.next(&s)
		if i < 0 {
			break
		}
		dst = append(dst, i)
	}
	return dst
}

// Fingerprint identifies what keys map to: the algorithm and its version, the config, and
// the IDs with their weights. Clients with the same fingerprint send each key to the same
// ID. Drained endpoints, the order of the list and MaxPoints are not part of it. It costs
// one pass over the IDs.
func (r *Ring) Fingerprint() uint64 {
	if r.list == nil {
		return 0
	}
	if r.config.Ketama {
		return r.list.fingerprint("ketama 1", uint64(r.config.Points))
	}
	return r.list.fingerprint("ring 1", uint64(r.config.Points))
}

// Stats describes the ring. It looks at every point.
func (r *Ring) Stats() Stats {
	if r.list == nil {
		return Stats{}
	}
	s := Stats{Endpoints: len(r.counts), Slots: int(r.circle.count())}
	s.MinShare, s.MaxShare = r.list.shareRange(r.circle.arcs(len(r.counts)))
	s.Bytes = r.circle.bytes() + 4*len(r.counts) + r.list.bytes()
	return s
}
