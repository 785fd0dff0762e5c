package hash

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// RendezvousConfig sets a [Rendezvous]. The zero value is ready to use.
type RendezvousConfig struct {
	// Seed makes different tables of the same endpoints. Two tiers that hash the same key
	// should have different ones: else the second sees only keys that the first sent the
	// same way.
	Seed uint64
	// MergeDuplicates takes endpoints with the same ID for one with the sum of their
	// weights, the first of them. Without it they are an error.
	MergeDuplicates bool
}

// Rendezvous gives each key to the endpoint with the best score for it. Source: Thaler and
// Ravishankar, "Using Name-Based Mappings to Increase Hit Rates" (1998); with weights,
// Schindelhauer and Schomaker, "Weighted Distributed Hash Tables" (2005).
//
// When to use it: shares follow the weights exactly, whatever they are; a change moves the
// keys that have to move and no others; and the next candidate of a key is whom it will
// belong to if its owner is removed, so that ejection followed by removal moves it once.
// The table is 36 bytes an endpoint, 48 with weights, and the text of the IDs.
//
// A lookup looks at every endpoint: about 0.1 µs for a hundred, up to two or three times
// that with weights. For thousands of endpoints take [Maglev].
//
// The zero Rendezvous is empty: Lookup returns -1. A Rendezvous is immutable and safe for
// concurrent use. Lookups allocate nothing.
type Rendezvous struct {
	list   *list
	config RendezvousConfig
	// points are the list's, in the order of groups and, within one, of the list.
	points []uint64
	groups []weightGroup
	// place is the position in the list of each point; nil if both orders are the same.
	place []int32
}

// weightGroup is a run of points. Groups go from heavy to light.
type weightGroup struct {
	from, to int32
	heaviest uint64
	same     bool // all weights are the heaviest
}

// maxExactGroups is how many different weights get a group each. With more of them, weights
// up to twice as large share one.
const maxExactGroups = 16

// NewRendezvous returns a table for endpoints, whose order does not matter. The error names
// every problem of the list; it is [ErrEmpty] when nobody has a weight. The slice is not
// kept. It costs O(n log n).
func NewRendezvous(endpoints []Endpoint, c RendezvousConfig) (*Rendezvous, error) {
	l, err := newList(endpoints, c.Seed, c.MergeDuplicates)
	if err != nil {
		return nil, err
	}
	return newRendezvous(l, c), nil
}

func newRendezvous(l *list, c RendezvousConfig) *Rendezvous {
	t := &Rendezvous{list: l, config: c}
	if l.equalWeights() {
		t.points = l.points
		t.groups = []weightGroup{{to: int32(len(l.ids)), heaviest: l.weights[0], same: true}}
		return t
	}
	distinct := slices.Clone(l.weights)
	slices.Sort(distinct)
	class := func(w uint64) uint64 { return w }
	if len(slices.Compact(distinct)) > maxExactGroups {
		class = func(w uint64) uint64 { return uint64(bits.Len64(w)) }
	}
	t.place = make([]int32, len(l.ids))
	for p := range t.place {
		t.place[p] = int32(p)
	}
	slices.SortStableFunc(t.place, func(a, b int32) int {
		return cmp.Compare(class(l.weights[b]), class(l.weights[a]))
	})
	t.points = make([]uint64, len(l.ids))
	for k, p := range t.place {
		t.points[k] = l.points[p]
		w := l.weights[p]
		if last := len(t.groups) - 1; last < 0 || class(t.groups[last].heaviest) != class(w) {
			t.groups = append(t.groups, weightGroup{from: int32(k), heaviest: w, same: true})
		}
		g := &t.groups[len(t.groups)-1]
		g.same = g.same && w == g.heaviest
		g.heaviest = max(g.heaviest, w)
		g.to = int32(k + 1)
	}
	return t
}

// Update returns a table for another list with the same config: the receiver if the result
// would be the same, indices included. It is what [NewRendezvous] gives and costs as much,
// since nothing but the list is built; only keys that have to move do. On an error, one of
// those of NewRendezvous, the receiver comes back with it, as good as before.
func (t *Rendezvous) Update(endpoints []Endpoint) (*Rendezvous, error) {
	l, err := newList(endpoints, t.config.Seed, t.config.MergeDuplicates)
	if err != nil || t.list != nil && l.equal(t.list) {
		return t, err
	}
	return newRendezvous(l, t.config), nil
}

// rank is a candidate's place in the order of a key: by log/weight, which is an exponential
// variable whose rate is the weight, so that the least is anybody's with a probability in
// proportion to weight.
type rank struct {
	score  uint64 // uniform; of equal weights the least one comes first
	log    uint64 // negLog(score); 0 where all weights are equal
	weight uint64
	place  int32 // position in the list
}

// before reports whether a comes before b. It is a strict order: ties go by position.
func (a *rank) before(b *rank) bool {
	hi, lo := bits.Mul64(a.log, b.weight)
	bHi, bLo := bits.Mul64(b.log, a.weight)
	switch {
	case hi != bHi:
		return hi < bHi
	case lo != bLo:
		return lo < bLo
	case a.score != b.score:
		return a.score < b.score
	}
	return a.place < b.place
}

// limit returns the greatest score with which an endpoint of weight w may still come before
// a, or tie with it: negLog(score)/w is at least score/w.
func (a *rank) limit(w uint64) uint64 {
	hi, lo := bits.Mul64(a.log, w)
	if hi >= a.weight {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, a.weight)
	if q >= 1<<logBits-1 {
		return math.MaxUint64
	}
	return (q+1)<<(64-logBits) - 1
}

// scoreFactor is an odd number without structure.
const scoreFactor = 0xd6e8feb86659fd93

// score returns the score of a point for a mixed key. One product is enough, since both are
// mixed already: the orders of up to four of many endpoints come out as even as with a full
// mix of each.
func score(key, point uint64) uint64 { return (key ^ point) * scoreFactor }

// mixKey returns what scores are made of.
func (t *Rendezvous) mixKey(key uint64) uint64 { return mix64(spread(key, t.list.keySeed)) }

// Lookup returns the owner of a key's hash, as an index into the slice that the table was
// built from; -1 from an empty table only. Any 64 bits will do for the hash, consecutive
// numbers included; [Sum] makes them from text.
func (t *Rendezvous) Lookup(key uint64) int {
	if t.list == nil {
		return -1
	}
	return int(t.list.index[t.owner(t.mixKey(key))])
}

// owner returns the position of the owner of a mixed key.
func (t *Rendezvous) owner(h uint64) int32 {
	if t.place == nil {
		k, _ := least(h, t.points)
		return int32(k)
	}
	// Anybody comes before this one.
	best := rank{log: math.MaxUint64, score: math.MaxUint64, weight: 1}
	for _, g := range t.groups {
		points := t.points[g.from:g.to]
		limit := best.limit(g.heaviest)
		if g.same {
			// One logarithm for the best of the group, if it can be the best of all.
			if k, s := least(h, points); s <= limit {
				if r := t.rank(int(g.from)+k, s); r.before(&best) {
					best = r
				}
			}
			continue
		}
		for k, p := range points {
			s := score(h, p)
			if s > limit {
				continue
			}
			if r := t.rank(int(g.from)+k, s); r.before(&best) {
				best = r
				limit = best.limit(g.heaviest)
			}
		}
	}
	return best.place
}

// least returns the first point with the least score. It compares four at a time and finds
// out afterwards which of them it was: half the work a point.
func least(h uint64, points []uint64) (at int, lowest uint64) {
	lowest = math.MaxUint64
	k := 0
	if len(points) >= 16 {
		for ; k+4 <= len(points); k += 4 {
			p := points[k : k+4 : k+4]
			four := min(min(score(h, p[0]), score(h, p[1])), min(score(h, p[2]), score(h, p[3])))
			if four < lowest {
				at, lowest = k, four
			}
		}
		for score(h, points[at]) != lowest {
			at++
		}
	}
	for ; k < len(points); k++ {
		if s := score(h, points[k]); s < lowest {
			at, lowest = k, s
		}
	}
	return at, lowest
}

// rank returns the rank of point k, which has the score s.
func (t *Rendezvous) rank(k int, s uint64) rank {
	if t.place == nil {
		return rank{score: s, weight: t.list.weights[k], place: int32(k)}
	}
	p := t.place[k]
	return rank{score: s, log: negLog(s), weight: t.list.weights[p], place: p}
}

// rankAt returns the rank of position p of the list.
func (t *Rendezvous) rankAt(h uint64, p int32) rank {
	r := rank{score: score(h, t.list.points[p]), weight: t.list.weights[p], place: p}
	if t.place != nil {
		r.log = negLog(r.score)
	}
	return r
}

// Candidates returns the candidates of a key's hash, as indices: the owner, then who would
// own it without the owner, and so on. The first 66 are in this order, whatever is removed;
// the rest follow in an order that the key decides and weights do not. Each endpoint with a
// positive weight comes once. It does not allocate when ranged over at once. The second candidate
// costs about two lookups, the third and every eighth after it several, those between nothing.
func (t *Rendezvous) Candidates(key uint64) iter.Seq[int] {
	return func(yield func(int) bool) { t.each(key, yield) }
}

func (t *Rendezvous) each(key uint64, yield func(int) bool) {
	s, i := t.step(walkState{key: key})
	for i >= 0 && yield(i) {
		s, i = t.step(s)
	}
}

// Walk returns a walk through the candidates of a key's hash.
func (t *Rendezvous) Walk(key uint64) Walk { return Walk{table: t, state: walkState{key: key}} }

// AppendN appends the first n candidates of a key's hash to dst, fewer if there are fewer.
func (t *Rendezvous) AppendN(dst []int, key uint64, n int) []int {
	s := walkState{key: key}
	for range n {
		var i int
		if s, i = t.step(s); i < 0 {
			break
		}
		dst = append(dst, i)
	}
	return dst
}

// Fingerprint identifies what keys map to: the algorithm and its version, the config, and
// the IDs with their weights. Clients with the same fingerprint send each key to the same
// ID. Drained endpoints and the order of the list are not part of it. It costs one pass
// over the IDs.
func (t *Rendezvous) Fingerprint() uint64 {
	if t.list == nil {
		return 0
	}
	return t.list.fingerprint("rendezvous 1")
}

// Stats describes the table. Its shares are exact.
func (t *Rendezvous) Stats() Stats {
	if t.list == nil {
		return Stats{}
	}
	bytes := t.list.bytes() + len(t.groups)*int(unsafe.Sizeof(weightGroup{}))
	if t.place != nil {
		bytes += len(t.points)*8 + len(t.place)*4
	}
	return Stats{Endpoints: len(t.list.ids), MinShare: 1, MaxShare: 1, Bytes: bytes}
}
