package picker

import "math/bits"

// uniform maps 32 random bits to 0..n-1 by multiply and shift (Lemire, "Fast Random
// Integer Generation in an Interval", 2019). Without rejection its bias is below
// n/2^32.
func uniform(r uint32, n int) int { return int(uint64(r) * uint64(n) >> 32) }

// twoDistinct draws two different numbers in 0..n-1, n >= 2, from one random number.
// Each ordered pair is equally likely: the second comes from the n-1 that are left,
// not from the neighbour of a collision.
func twoDistinct(r uint64, n int) (i, j int) {
	i, j = uniform(uint32(r>>32), n), uniform(uint32(r), n-1)
	if j >= i {
		j++
	}
	return i, j
}

// uniformTo maps 64 random bits to 0..n-1.
func uniformTo(r, n uint64) uint64 {
	hi, _ := bits.Mul64(r, n)
	return hi
}

// mix returns the next of a sequence of pseudo-random numbers that starts at any
// number (the finalizer of SplitMix64: Steele, Lea, Flood, "Fast Splittable
// Pseudorandom Number Generators", 2014). It spares a draw from the source per step.
func mix(r uint64) uint64 {
	r += 0x9e3779b97f4a7c15
	r = (r ^ r>>30) * 0xbf58476d1ce4e5b9
	r = (r ^ r>>27) * 0x94d049bb133111eb
	return r ^ r>>31
}

// step returns the next of a cheaper sequence, of which only the upper half is good:
// a linear congruential generator with Knuth's multiplier.
func step(r uint64) uint64 { return r*6364136223846793005 + 1442695040888963407 }
