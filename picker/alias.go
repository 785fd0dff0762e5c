package picker

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// WeightedRandom picks each available endpoint with a probability in proportion to its
// weight, independently of the picks before. Source: Vose, "A Linear Algorithm for
// Generating Random Numbers with a Given Distribution" (1991), the alias method.
//
// When to use it: any weights and any number of endpoints, at the cost of one random
// number and one look at a table: a pick is O(1), takes no lock and writes nothing of
// its own. It is the rule for many clients that each send little: they need not begin
// anywhere in particular, and together are no more uneven than each alone.
//
// It is blind to what the endpoints are doing, and chance is uneven: of N requests an
// endpoint with share p gets Np ± √(Np(1-p)), and now and then several in a row.
// [WeightedRoundRobin] is even.
//
// Draws that give an endpoint that is not available are repeated. When more than a
// quarter of the weight is not available, the table is made anew without it.
type WeightedRandom struct{}

// Validate returns nil: there is nothing to set.
func (WeightedRandom) Validate() error { return nil }

// Needs returns 0.
func (WeightedRandom) Needs() Need { return 0 }

// Build returns a Picker.
func (WeightedRandom) Build(m *Members, _ Picker) Picker { return newWeightedRandom(m.weights) }

// weightedRandom is the Picker.
type weightedRandom struct {
	table atomic.Pointer[aliasTable] // written by Watch

	// Used by Watch alone.
	coverage coverage
	all      *aliasTable
}

func newWeightedRandom(weights []float64) *weightedRandom {
	ints := integerWeights(weights)
	p := &weightedRandom{coverage: newCoverage(ints), all: newAliasTable(ints)}
	p.table.Store(p.all)
	return p
}

// Watch implements Watcher.
func (p *weightedRandom) Watch(s *Snapshot) {
	in, changed := p.coverage.update(s)
	switch {
	case !changed:
	case in == nil:
		p.table.Store(p.all)
	default:
		p.table.Store(newAliasTable(among(p.coverage.weights, in)))
	}
}

// among returns the weights of those that are in, and 0 for the others.
func among(weights []uint64, in []bool) []uint64 {
	some := make([]uint64, len(weights))
	for i, w := range weights {
		if in[i] {
			some[i] = w
		}
	}
	return some
}

// Pick implements Picker.
func (p *weightedRandom) Pick(s *Snapshot, _ Request, _ int64) int {
	if i := p.table.Load().draw(s.Uint64()); s.Available(int(i)) {
		return int(i)
	}
	return p.redraw(s)
}

// drawsPerPick bounds the draws of one pick. At most a quarter of the weight in a table is not
// available, so that the rule that comes after them is reached once in 4^16 picks, and
// may be a simple one: it moves no share by more than 2^-32. (Over a snapshot that is
// no longer the last one watched it may be more, for as long as that takes.)
const drawsPerPick = 16

func (p *weightedRandom) redraw(s *Snapshot) int {
	t := p.table.Load()
	for range drawsPerPick - 1 {
		if i := t.draw(s.Uint64()); s.Available(int(i)) {
			return int(i)
		}
	}
	return s.At(uniform(uint32(s.Uint64()>>32), s.n))
}

// aliasTable draws indices in proportion to weights. Immutable.
type aliasTable struct{ columns []aliasColumn }

// aliasColumn stands for the same part of the draws as every other column. It gives its own
// index to threshold of 2^32 of them, and alias to the others.
type aliasColumn struct {
	threshold uint32
	alias     int32
}

// draw returns an index for the random number r. The column comes from the top of the
// product and the place in it from the rest, so that one number is enough. A share
// is off by at most 2^-32 of a column.
func (t *aliasTable) draw(r uint64) int32 {
	hi, lo := bits.Mul64(r, uint64(len(t.columns)))
	c := t.columns[hi]
	if uint32(lo>>32) < c.threshold {
		return int32(hi)
	}
	return c.alias
}

// newAliasTable returns a table for weights. An index with weight 0 is never drawn, unless
// all are 0: then all are drawn alike. One with a positive weight always has a chance.
// There must be at least one weight for draw to be called.
func newAliasTable(weights []uint64) *aliasTable {
	t := &aliasTable{columns: make([]aliasColumn, len(weights))}
	n, sum := float64(len(weights)), float64(sumOf(weights))
	left := make([]float64, len(weights)) // what is not placed yet, in columns
	var small, large []int32
	for i, w := range weights {
		left[i] = 1
		if sum > 0 {
			left[i] = float64(w) * n / sum
		}
		if left[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		i, j := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		t.columns[i] = aliasColumn{threshold: thresholdOf(left[i], weights[i]), alias: j}
		left[j] -= 1 - left[i]
		if left[j] < 1 {
			large = large[:len(large)-1]
			small = append(small, j)
		}
	}
	// What is left are whole columns, but for rounding.
	for _, rest := range [][]int32{small, large} {
		for _, i := range rest {
			t.columns[i] = aliasColumn{alias: i}
		}
	}
	return t
}

// thresholdOf returns the part of a column in units of 2^-32.
func thresholdOf(part float64, weight uint64) uint32 {
	if weight == 0 {
		return 0
	}
	return uint32(min(max(math.Round(part*(1<<32)), 1), math.MaxUint32))
}
