package picker

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
