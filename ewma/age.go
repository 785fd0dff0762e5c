package ewma

import (
	"math/bits"
	"sync/atomic"
)

// Layout of Age's word: the number of pieces of work in the low bits, the sum of
// their start instants above it, both modulo their width. Additions and
// subtractions of whole starts commute, so the word is exact whenever the true
// values fit, whatever happened in between.
const (
	ageCountBits = 18 // signed
	ageSumBits   = 64 - ageCountBits
	ageTickBits  = 13 // 8.192 µs
)

// Age tells how long work that has not been answered has been waiting, on average:
// n and Σ start give the mean age as now - Σ start / n, in constant time.
// A server that hangs shows in it before its first timeout does.
//
// The zero Age has no work. It holds up to 131,071 pieces of work at once, with a
// sum of ages up to 9 years; above that it is wrong until enough of them end, and
// exact again afterwards. Work that is taken out twice counts as no work until as much
// has been added. Resolution: 8 µs.
type Age struct{ w atomic.Uint64 }

func ageUnit(start int64) uint64 {
	return uint64(max(start, 0)>>ageTickBits)<<ageCountBits + 1
}

// Start adds work that begins at instant start.
func (a *Age) Start(start int64) { a.w.Add(ageUnit(start)) }

// Done takes out work that was added with the same start.
func (a *Age) Done(start int64) { a.w.Add(-ageUnit(start)) }

// Look returns what is in hand at this moment.
func (a *Age) Look() AgeView { return AgeView{a.w.Load()} }

// Count returns the number of pieces of work in hand.
func (a *Age) Count() int { return a.Look().Count() }

// Mean returns the mean age in nanoseconds at instant now, rounded down by up to
// 16 µs, and 0 when there is no work. Work that began after now makes it younger,
// never negative.
func (a *Age) Mean(now int64) int64 {
	sum, n := a.Look().sum(now)
	if n == 0 {
		return 0
	}
	// Both ends are rounded down, so the difference may be a unit too long.
	return max(sum/n-1, 0) << ageTickBits
}

// MeanLog2 returns log2 of the mean age; see [AgeView.MeanLog2].
func (a *Age) MeanLog2(now int64) (lg int64, ok bool) { return a.Look().MeanLog2(now) }

// AgeView is an Age at one moment: its count and its mean age belong together.
type AgeView struct{ w uint64 }

// Count returns the number of pieces of work in hand.
func (v AgeView) Count() int { return int(max(v.count(), 0)) }

// Empty reports, at least cost, that nothing is in hand.
func (v AgeView) Empty() bool { return v.w<<ageSumBits == 0 }

// count is the signed number in the low bits.
func (v AgeView) count() int64 { return int64(v.w<<ageSumBits) >> ageSumBits }

// MayExceed reports whether the mean age at instant now may be above 2^(lg/65536)
// nanoseconds. A false is certain; it is a cheap test before MeanLog2.
func (v AgeView) MayExceed(lg, now int64) bool {
	sum, n := v.sum(now)
	// sum < 2^Len(sum) and n >= 2^(Len(n)-1).
	return sum > 0 && int64(bits.Len64(uint64(sum))-bits.Len64(uint64(n))+1+ageTickBits)<<16 > lg
}

// MeanLog2 returns log2 of the mean age in nanoseconds at instant now, in Q16, without
// a division; ok is false when there is no work or it is younger than the
// resolution.
func (v AgeView) MeanLog2(now int64) (lg int64, ok bool) {
	sum, n := v.sum(now)
	if sum -= n; sum <= 0 { // as in Mean
		return 0, false
	}
	return Log2(uint64(sum)) - Log2(uint64(n)) + ageTickBits<<16, true
}

// sum returns the sum of ages, in units, and the number of pieces of work.
func (v AgeView) sum(now int64) (sum, n int64) {
	n = v.count()
	if n <= 0 {
		return 0, 0
	}
	t := uint64(max(now, 0) >> ageTickBits)
	// Modulo 2^46: the shift drops what does not fit, and the arithmetic shift
	// back restores the sign. A negative count has borrowed from the sum, but then
	// there is nothing to tell.
	return int64((t*uint64(n)-v.w>>ageCountBits)<<ageCountBits) >> ageCountBits, n
}
