package hash

import (
	"cmp"
	"math/bits"
	"slices"
)

// slotQuotas divides size slots among weights, at most size of them, with a bounded sum: to each
// its exact share of the slots, rounded down or up, and at least one. The largest
// remainders are rounded up; ties go to the first in the list (Hamilton's method). Those
// whose share is below one slot get one, at the expense of the others in proportion.
func slotQuotas(ws []uint64, size uint64) []uint32 {
	quotas := make([]uint32, len(ws))
	slots, sum := size, uint64(0)
	small := false
	for _, w := range ws {
		sum += w
	}
	for _, w := range ws {
		small = small || share(w, sum, size) < 1
	}
	if small {
		slots, sum = oneEach(ws, quotas, slots, sum)
	}

	type remainder struct{ position, rest uint64 }
	var rests []remainder
	left := slots
	for i, w := range ws {
		if quotas[i] > 0 {
			continue
		}
		hi, lo := bits.Mul64(w, slots)
		q, rest := bits.Div64(hi, lo, sum)
		quotas[i] = uint32(q)
		left -= q
		rests = append(rests, remainder{uint64(i), rest})
	}
	slices.SortFunc(rests, func(a, b remainder) int {
		if c := cmp.Compare(b.rest, a.rest); c != 0 {
			return c
		}
		return cmp.Compare(a.position, b.position)
	})
	for _, r := range rests[:left] {
		quotas[r.position]++
	}
	return quotas
}

// oneEach gives one slot to each of those whose share of what the larger ones leave is
// below one, from the smallest up, and returns the slots and the weight of the rest.
func oneEach(ws []uint64, quotas []uint32, slots, sum uint64) (uint64, uint64) {
	order := make([]int32, len(ws))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if c := cmp.Compare(ws[a], ws[b]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	for _, i := range order {
		if share(ws[i], sum, slots) >= 1 {
			break
		}
		quotas[i] = 1
		slots--
		sum -= ws[i]
	}
	return slots, sum
}

// share returns the whole part of slots·w/sum, for w up to sum.
func share(w, sum, slots uint64) uint64 {
	hi, lo := bits.Mul64(w, slots)
	if hi >= sum { // w == sum and slots ≥ 2^64, which cannot be: kept from dividing by zero
		return slots
	}
	q, _ := bits.Div64(hi, lo, sum)
	return q
}

// boundedSum returns the weights divided by their greatest common divisor and then, only
// if they do not add up to less than 2^61, by the power of two that makes them, none below
// one. Weights in the same ratios thus give the same table.
func boundedSum(weights []uint64) []uint64 {
	divisor := uint64(0)
	for _, w := range weights {
		divisor = gcd(divisor, w)
	}
	ws := make([]uint64, len(weights))
	var high, low uint64
	for i, w := range weights {
		ws[i] = w / divisor
		var carry uint64
		low, carry = bits.Add64(low, ws[i], 0)
		high += carry
	}
	width := bits.Len64(low)
	if high > 0 {
		width = 64 + bits.Len64(high)
	}
	if shift := width - 61; shift > 0 {
		for i := range ws {
			ws[i] = max(ws[i]>>shift, 1)
		}
	}
	return ws
}

// gcd is the greatest common divisor, of which 0 and b have b.
func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
