package picker

import (
	"math"
	"math/bits"
)

// sumBits is the width of the sum of weights that had to be scaled. It leaves room
// in 64 bits for what the rules multiply weights by, and in float64 for exact sums.
const sumBits = 50

// integerWeights turns weights into integers in the same proportions, for rules that
// count turns exactly. 0 stays 0 and nothing else becomes 0.
//
// Whole numbers are used as they are. If any weight has a fraction, all are multiplied
// by a power of two, which keeps halves, quarters and equal weights exact. Then a
// weight is off by at most 2^-20 of itself, if it is at least 2^-30 of the sum;
// one below that, due once in a thousand million picks, is off by at most 2^-50 of
// the sum.
//
// What [Validate] would refuse is taken for the nearest thing that it accepts, NaN
// for 0: no list can make a rule loop or divide by zero.
func integerWeights(weights []float64) []uint64 {
	whole, sum := true, 0.0
	for _, w := range weights {
		w = acceptable(w)
		whole = whole && w == math.Trunc(w)
		sum += w
	}
	shift := 0
	if !whole {
		_, exp := math.Frexp(sum)
		shift = sumBits - exp
	}
	ints := make([]uint64, len(weights))
	common := uint64(0)
	for i, w := range weights {
		if w = acceptable(w); w > 0 {
			ints[i] = max(uint64(math.Round(math.Ldexp(w, shift))), 1)
			common |= ints[i]
		}
	}
	if !whole {
		// Small numbers make schedules that repeat soon, and turns that tie exactly.
		zeros := bits.TrailingZeros64(common)
		for i := range ints {
			ints[i] >>= zeros
		}
	}
	return ints
}

// maxStrideWeight is what the greatest of scaled weights becomes.
const maxStrideWeight = math.MaxUint16

// Bounds of load-derived weights, as multiples of the mean. Source: gRPC core's static
// stride scheduler, which has them since tiny weights made its loop endless.
const (
	leastOfMean = 0.01
	mostOfMean  = 10
)

// strideScale turns weights derived from load into whole numbers up to 65535, as gRPC's
// static stride scheduler does. 0 (or anything but a positive finite number) means that
// the load is not known, and becomes the mean of the others. Weights beyond 10 times the
// mean or below a hundredth of it are those, so that a strange report can neither take
// all requests nor lose them all. With fewer than two known weights all are equal.
func strideScale(weights []float64) []uint64 {
	known, sum, top := 0, 0.0, 0.0
	for _, w := range weights {
		if w > 0 && w <= math.MaxFloat64 {
			known++
			// Divided first, no number of the greatest weights overflows.
			sum += w / float64(len(weights))
			top = max(top, w)
		}
	}
	scaled := make([]uint64, len(weights))
	if known < 2 {
		for i := range scaled {
			scaled[i] = maxStrideWeight
		}
		return scaled
	}
	mean := sum * (float64(len(weights)) / float64(known))
	top = min(top, mostOfMean*mean)
	meanScaled := math.Round(mean / top * maxStrideWeight)
	least := max(math.Round(leastOfMean*meanScaled), 1)
	for i, w := range weights {
		v := meanScaled
		if w > 0 && w <= math.MaxFloat64 {
			v = max(math.Round(min(w, top)/top*maxStrideWeight), least)
		}
		scaled[i] = uint64(v)
	}
	return scaled
}

// acceptable returns w as it would be if Validate had let it pass.
func acceptable(w float64) float64 {
	if !(w > 0) { // NaN too
		return 0
	}
	return min(max(w, MinWeight), MaxWeight)
}

// sumOf returns the sum of integer weights: below 2^57 for the longest list.
func sumOf(weights []uint64) uint64 {
	sum := uint64(0)
	for _, w := range weights {
		sum += w
	}
	return sum
}

// placesOf maps records to their indices in a list, for rules that keep state over an
// update.
func placesOf(records []*Record) map[*Record]int {
	places := make(map[*Record]int, len(records))
	for i, r := range records {
		places[r] = i
	}
	return places
}
