package hash

import "math/bits"

// maglevBuild hands out the slots of a table: each endpoint goes through all of them in an
// order of its own, first + k·skip modulo the size, and takes the next one that is free.
type maglevBuild struct {
	size   uint32
	left   uint32 // slots not taken
	few    uint32 // how many free slots are few enough for takeOfFew
	claims []claim
	taken  []uint64 // bit set of slots: of 65,537 it stays in the first-level cache
	free   []uint32 // the slots not taken, listed once they are few
}

// claim is where an endpoint looks next, and how far it goes from there.
type claim struct{ next, skip uint32 }

// newMaglevBuild derives each endpoint's order from its point.
func newMaglevBuild(points []uint64, size uint32) *maglevBuild {
	claims := make([]claim, len(points))
	for i, p := range points {
		first, _ := bits.Mul64(p, uint64(size))
		skip, _ := bits.Mul64(mix64(p), uint64(size-1))
		claims[i] = claim{uint32(first), uint32(skip) + 1}
	}
	b := &maglevBuild{size: size, left: size, claims: claims, taken: make([]uint64, (size+63)/64)}
	// One step past a taken slot costs about a quarter of what one free slot does in
	// takeOfFew, and with r free slots there are size/r steps to the next.
	for 4*(b.few+1)*(b.few+1) <= size {
		b.few++
	}
	return b
}

// take returns the next free slot of endpoint i, which is taken then. There must be one:
// the skip and the prime size have no common divisor, so the order passes them all.
func (b *maglevBuild) take(i int) uint32 {
	if b.left <= b.few {
		return b.takeOfFew(i)
	}
	b.left--
	c := &b.claims[i]
	taken, size, back := b.taken, int32(b.size), int32(c.skip)-int32(b.size)
	slot := int32(c.next)
	for taken[uint32(slot)/64]>>(uint32(slot)%64)&1 != 0 {
		slot += back
		slot += size & (slot >> 31) // if it fell below 0: a branch would be wrong half of the time
	}
	taken[uint32(slot)/64] |= 1 << (uint32(slot) % 64)
	next := slot + back
	c.next = uint32(next + size&(next>>31))
	return uint32(slot)
}

// takeOfFew does what take does when few slots are free, by computing how many steps away
// each of them is: to walk to the last hundred would be half of all steps of a build.
func (b *maglevBuild) takeOfFew(i int) uint32 {
	if b.free == nil {
		for slot := range b.size {
			if b.taken[slot/64]>>(slot%64)&1 == 0 {
				b.free = append(b.free, slot)
			}
		}
	}
	c := &b.claims[i]
	size, inverse := uint64(b.size), uint64(inverseModulo(c.skip, b.size))
	nearest, steps := 0, size
	for k, slot := range b.free {
		ahead := uint64(slot) + size - uint64(c.next)
		// Below 2^23 · 2^24: the product fits.
		if n := ahead * inverse % size; n < steps {
			nearest, steps = k, n
		}
	}
	slot := b.free[nearest]
	last := len(b.free) - 1
	b.free[nearest] = b.free[last]
	b.free = b.free[:last]
	b.left--
	c.next = slot // taken: the next one counts from it
	return slot
}

// inverseModulo returns x with a·x = 1 modulo a prime, for 0 < a < prime, by Euclid's
// algorithm.
func inverseModulo(a, prime uint32) uint32 {
	r0, r1 := int64(prime), int64(a)
	x0, x1 := int64(0), int64(1)
	for r1 > 1 {
		q := r0 / r1
		r0, r1 = r1, r0-q*r1
		x0, x1 = x1, x0-q*x1
	}
	if x1 < 0 {
		x1 += int64(prime)
	}
	return uint32(x1)
}

// fillSlots lets the endpoints take their quotas in turns and returns the table, which holds
// what index has at their positions.
func fillSlots[T uint8 | uint16 | uint32](b *maglevBuild, index []int32, weights []uint64, quotas []uint32) []T {
	slots := make([]T, b.size)
	if allEqual(weights) {
		for left := int(b.size); left > 0; left -= len(index) {
			for i, owner := range index[:min(len(index), left)] {
				slots[b.take(i)] = T(owner)
			}
		}
		return slots
	}
	for _, i := range turns(weights, quotas) {
		slots[b.take(int(i))] = T(index[i])
	}
	return slots
}

// turns returns who takes a slot when, as positions in the list. Turn k of an endpoint is
// due after k/weight, in rounds in which the heaviest has one turn: everybody's turns are
// spread over the whole build, which keeps most slots in place when a weight changes.
// Within a round the order is that of the list. It is a counting sort, so that the cost
// does not depend on the weights; Envoy's rule, a pass over all endpoints a round, is
// quadratic for one heavy among many light ones.
func turns(weights []uint64, quotas []uint32) []uint32 {
	heaviest, total := uint64(0), uint32(0)
	for i, w := range weights {
		heaviest = max(heaviest, w)
		total += quotas[i]
	}
	rounds := uint64(0)
	for i, w := range weights {
		hi, lo := bits.Mul64(uint64(quotas[i]-1), heaviest)
		last, _ := bits.Div64(hi, lo, w)
		rounds = max(rounds, last+1)
	}
	starts := make([]uint32, rounds+1) // of each round in the result
	eachTurn(weights, quotas, heaviest, func(_ int, round uint64) { starts[round+1]++ })
	for r := range rounds {
		starts[r+1] += starts[r]
	}
	order := make([]uint32, total)
	eachTurn(weights, quotas, heaviest, func(i int, round uint64) {
		order[starts[round]] = uint32(i)
		starts[round]++
	})
	return order
}

// eachTurn calls f for every turn of every endpoint with the round in which it is due,
// floor(k·heaviest/weight), which it adds up without a division a turn.
func eachTurn(weights []uint64, quotas []uint32, heaviest uint64, f func(i int, round uint64)) {
	for i, w := range weights {
		whole, part := heaviest/w, heaviest%w
		round, rest := uint64(0), uint64(0)
		for range quotas[i] {
			f(i, round)
			round += whole
			if rest += part; rest >= w {
				round++
				rest -= w
			}
		}
	}
}
