package hash

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Bounds and defaults of [BoundConfig].
const (
	defaultFactor      = 1.25
	maxFactor          = 10
	defaultMinCapacity = 4
	maxMinCapacity     = 1 << 20
)

// BoundConfig sets a [Bound]. The zero value has the defaults.
type BoundConfig struct {
	// Factor is how much more than its share of the load an endpoint may carry, above 1 up
	// to 10; 0 means 1.25. A small one is even and moves more keys away from their owners.
	Factor float64
	// MinCapacity is what every endpoint may carry in any case, 1 to 2^20; 0 means 4. A
	// client with little in flight would else send keys away at their second request: with
	// one request in flight per endpoint, 29 % of them at a minimum of 2, and 2 % at 4. The
	// price is that many such clients together may put that much each on one endpoint.
	MinCapacity int
}

// Validate reports every setting out of range, joined.
func (c BoundConfig) Validate() error {
	var wrong []error
	// Written so that NaN is refused.
	if c.Factor != 0 && !(c.Factor > 1 && c.Factor <= maxFactor) {
		wrong = append(wrong, fmt.Errorf("hash: BoundConfig.Factor is %v, want above 1 to %d, or 0 for %v",
			c.Factor, maxFactor, defaultFactor))
	}
	if c.MinCapacity < 0 || c.MinCapacity > maxMinCapacity {
		wrong = append(wrong, fmt.Errorf("hash: BoundConfig.MinCapacity is %d, want 1 to %d, or 0 for %d",
			c.MinCapacity, maxMinCapacity, defaultMinCapacity))
	}
	return errors.Join(wrong...)
}

const (
	// factorBits is the precision of a factor.
	factorBits = 24
	// maxLoad bounds loads and their total, so that products fit. Larger ones count as it.
	maxLoad = 1 << 36
)

// Bound limits how much more than its share an endpoint carries, whatever the keys are: an
// endpoint with the share s of the weight may have max(MinCapacity, ⌈Factor·(total+1)·s⌉)
// requests in flight, the new one included. total is what is in flight on all of them, so
// that somebody always has room. A key whose owner is full goes to its next candidate that
// is not. Source: Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads"
// (2018).
//
// It is a small value, immutable, and works with the candidates of any table. Loads, total
// and weights are the caller's and should cover the same endpoints: those that may be used.
// The zero Bound limits nothing.
type Bound struct {
	factor uint64 // in units of 2^-factorBits
	min    int64
}

// NewBound returns a Bound, or every problem of c.
func NewBound(c BoundConfig) (Bound, error) {
	if err := c.Validate(); err != nil {
		return Bound{}, err
	}
	factor, least := c.Factor, c.MinCapacity
	if factor == 0 {
		factor = defaultFactor
	}
	if least == 0 {
		least = defaultMinCapacity
	}
	// Rounded up, so that it stays above 1.
	return Bound{factor: uint64(math.Ceil(factor * (1 << factorBits))), min: int64(least)}, nil
}

// Capacity returns how many requests an endpoint may have in flight, the next one included,
// while total are in flight on all of them. weight is the endpoint's part of sum, in any
// unit.
func (b Bound) Capacity(total int64, weight, sum uint64) int64 {
	if b.factor == 0 {
		return math.MaxInt64
	}
	return b.Search(total, sum).capacity(weight)
}

// Room reports whether an endpoint that has load in flight may have one more. It is load <
// Capacity(total, weight, sum), without a division.
func (b Bound) Room(load, total int64, weight, sum uint64) bool {
	if load < b.min || b.factor == 0 {
		return true
	}
	sum = max(sum, 1)
	return below(load, sum, b.most(total), min(weight, sum))
}

// most returns factor · (total + 1).
func (b Bound) most(total int64) uint64 {
	return b.factor * uint64(min(max(total, 0), maxLoad)+1)
}

// below reports whether load · sum < most · weight: a whole number is below ⌈x⌉ exactly when
// it is below x.
func below(load int64, sum, most, weight uint64) bool {
	hi, lo := bits.Mul64(uint64(min(max(load, 0), maxLoad))<<factorBits, sum)
	mostHi, mostLo := bits.Mul64(most, weight)
	return hi < mostHi || hi == mostHi && lo < mostLo
}

// Search begins a search for an endpoint with room, with total in flight on endpoints that
// have sum as their weight.
func (b Bound) Search(total int64, sum uint64) Search {
	return Search{
		bound: b,
		sum:   max(sum, 1),
		most:  b.most(total),
		best:  -1,
	}
}

// Search looks for room along the candidates of a key:
//
//	search := bound.Search(total, sum)
//	for i := range table.Candidates(key) {
//		if search.Offer(i, load[i], weight[i]) {
//			return i
//		}
//	}
//	return search.Least()
//
// It is a value for one goroutine and allocates nothing.
type Search struct {
	bound Bound
	sum   uint64
	most  uint64 // factor · (total + 1)
	best  int
	load  uint64 // of best, per capacity
	cap   uint64
}

// Offer reports whether candidate i, which has load in flight and this weight, has room. If
// not it is remembered in case nobody has.
func (s *Search) Offer(i int, load int64, weight uint64) bool {
	if load < s.bound.min || s.bound.factor == 0 ||
		below(load, s.sum, s.most, min(weight, s.sum)) {
		return true
	}
	capacity := uint64(s.capacity(weight))
	used := uint64(min(max(load, 0), maxLoad))
	// used/capacity < load/cap. The first one stays on a tie: it is closer to the owner.
	hi, lo := bits.Mul64(used, s.cap)
	bestHi, bestLo := bits.Mul64(s.load, capacity)
	if s.best < 0 || hi < bestHi || hi == bestHi && lo < bestLo {
		s.best, s.load, s.cap = i, used, capacity
	}
	return false
}

// Least returns the candidate with the least load for its capacity among those without
// room, -1 if there was none. It is reached only when loads and total do not agree, as
// counts that change while they are read may not.
func (s *Search) Least() int { return s.best }

// capacity returns ⌈most · weight / sum⌉ in whole requests, at least the minimum.
func (s Search) capacity(weight uint64) int64 {
	// weight <= sum and most < 2^64, so that the quotient fits.
	hi, lo := bits.Mul64(s.most, min(weight, s.sum))
	var q, rest uint64
	if hi < s.sum {
		q, rest = bits.Div64(hi, lo, s.sum)
	} else {
		q = math.MaxUint64
	}
	if rest > 0 {
		q++
	}
	whole := q >> factorBits
	if q&(1<<factorBits-1) > 0 {
		whole++
	}
	return max(int64(whole), s.bound.min)
}
