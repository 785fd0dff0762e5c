package subset

// A lot is held while the mean subset is within these parts of the size. They are wider than
// the 0.71 to 1.41 that rounding to a power of two gives, so that a pool whose size goes
// up and down by a fifth around a doubling does not reconnect everybody each time; wider still,
// and a growing pool would pay for subsets that are too large.
const (
	leastHeld = 6  // tenths
	mostHeld  = 15 // tenths
)

// LotSize returns how many clients are to share one deal of n endpoints, so that each gets
// about size of them: n/size rounded to a power of two, and 1, which gives everybody all,
// below √2. A held lot is kept as long as it gives 0.6 to 1.5 times the size on average; 0
// holds none. n or size below 1 count as 1.
//
// Clients that hold different lots share less evenly (see the package's table), but none has to
// wait for another.
func LotSize(n, size, held int) int {
	n = min(max(n, 1), MaxMembers)
	size = min(max(size, 1), n)
	wanted, all := int64(size), int64(n)
	if (Lot{Clients: held}).validate() == nil {
		if part := 10 * all; part >= leastHeld*wanted*int64(held) && part <= mostHeld*wanted*int64(held) {
			return held
		}
	}
	lot := int64(1)
	for all*all >= 2*wanted*wanted*lot*lot { // n/size is at least √2 times the lot
		lot *= 2
	}
	return int(lot)
}
