package picker

import (
	"math"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// Load is what an endpoint says about itself on an answer, in one word. The zero Load says
// nothing. What it is made of is foreign input: a number that is not finite or negative is left
// out, and one beyond the bounds counts as the bound.
type Load struct {
	// An error rate (16 bits), log2 of the latency and of the number in flight plus 1 (Q16,
	// 22 bits each); each plus 1, and 0 if it is not known.
	w uint64
}

const (
	loadLogBits  = 22
	loadLogMask  = 1<<loadLogBits - 1
	loadRateBits = 16
	loadRateMost = 1<<loadRateBits - 2

	// maxInFlight bounds a reported number of requests.
	maxInFlight = 1 << 40
)

// WithInFlight returns l with the number of requests that the endpoint has at hand, those of
// all its clients: 0 to 2^40.
func (l Load) WithInFlight(n float64) Load {
	if !(n >= 0) || math.IsInf(n, 0) {
		return l
	}
	lg := ewma.Log2(uint64((min(n, maxInFlight)+1)*ewma.One)) - 16<<16
	return Load{l.w&^loadLogMask | uint64(lg+1)}
}

// WithLatency returns l with how long the endpoint takes for a request that comes when as many
// are at hand as now are. 0 or less says nothing.
func (l Load) WithLatency(d time.Duration) Load {
	if d <= 0 {
		return l
	}
	return Load{l.w&^(loadLogMask<<loadLogBits) | uint64(ewma.LatencyLog2(int64(d))+1)<<loadLogBits}
}

// WithErrorRate returns l with the part of the endpoint's requests that fail, 0 to 1.
func (l Load) WithErrorRate(part float64) Load {
	if !(part >= 0) || math.IsInf(part, 0) {
		return l
	}
	const at = 2 * loadLogBits
	return Load{l.w&^((1<<loadRateBits-1)<<at) | uint64(math.Round(min(part, 1)*loadRateMost)+1)<<at}
}

// InFlight returns the number in flight, within 0.01 % of it and one more, and whether it is known.
func (l Load) InFlight() (n float64, ok bool) {
	lg, ok := l.inFlightLog2()
	return ewma.Exp2(lg) - 1, ok
}

// Latency returns the latency, within 0.01 %, and whether it is known.
func (l Load) Latency() (d time.Duration, ok bool) {
	lg, ok := l.latencyLog2()
	if !ok {
		return 0, false
	}
	return time.Duration(min(ewma.Exp2(lg), math.MaxInt64/2)), true
}

// ErrorRate returns the part that fails, within 2^-16, and whether it is known.
func (l Load) ErrorRate() (part float64, ok bool) {
	v := l.w >> (2 * loadLogBits)
	return float64(max(v, 1)-1) / loadRateMost, v != 0
}

// good returns the part that does not fail, in units of 1/loadRateMost.
func (l Load) good() (part uint64, ok bool) {
	v := l.w >> (2 * loadLogBits)
	return loadRateMost - (max(v, 1) - 1), v != 0
}

// inFlightLog2 returns log2(number in flight + 1) in Q16.
func (l Load) inFlightLog2() (lg int64, ok bool) {
	v := int64(l.w & loadLogMask)
	return max(v-1, 0), v != 0
}

func (l Load) latencyLog2() (lg int64, ok bool) {
	v := int64(l.w >> loadLogBits & loadLogMask)
	return max(v-1, 0), v != 0
}
