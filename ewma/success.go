package ewma

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// SuccessParams says how fast a [Success] believes and forgets. Compute it once
// with [NewSuccessParams].
type SuccessParams struct {
	average   float64 // ticks
	fadeTicks float64 // time constant of fading in ticks; +Inf without
	fade      Decay   // the same for reads on the request path
	step      float64
	most      int64 // the longest gap that counts, in ticks
}

// NewSuccessParams returns parameters for a [Success]. A result that comes Δ after
// the previous one has the weight 1 - e^(-Δ/average). A failure has at least the
// weight step (0 to 1), so that failures show at any rate of requests, and a success at
// least a fifth of step, so that where results are dense the score goes by the part of
// them that fails, p failures to 1 - p successes settling at the odds 5·p/(1 - p), and not
// by how many fail in a second: with a success that weighs by time alone, a busy endpoint
// with one error in a thousand would look like one that fails half of the time. Between
// results the failure score fades with time constant fade (0 or less: it stays),
// so that an endpoint that nobody dares to use is tried again. An average of 0 or
// less counts as 1 ns: each result replaces the score.
func NewSuccessParams(average, fade time.Duration, step float64) SuccessParams {
	p := SuccessParams{
		average:   max(float64(average), 1) / (1 << successTickBits),
		fadeTicks: math.Inf(1),
		fade:      NewDecay(fade),
		step:      min(max(step, 0), 1),
	}
	if fade > 0 {
		p.fadeTicks = float64(max(fade, MinTau)) / (1 << successTickBits)
	}
	p.most = maxGapFor(float64(max(average, fade))) >> successTickBits
	return p
}

// Layout of Success's word: the failure score as a small float (5 bits of
// exponent, 21 of mantissa) above the instant of the last change (38 bits).
const (
	successTickBits = 20 // about 1 ms
	successTimeBits = 38
	successMaxTicks = 1<<successTimeBits - 1
	scoreShift      = 2        // mantissa bits of a float32 that are dropped
	scoreBias       = 96 << 23 // float32 bits of 2^-31
	minScore        = 1.0 / (1 << 30)
	// leastChange is the least change of a score that a success stores, in units of
	// the stored mantissa: it keeps what rounding adds up to below 1 %.
	leastChange = 64
	// successPart is how many successes in a row undo about as much as a failure does. With 10,
	// one error in a hundred still costs a busy endpoint a quarter of its share; with 3, a
	// backend that fails every tenth request keeps two fifths of its own.
	successPart = 5
	// stampTicks is how old the instant of the last success may be: 17 ms, against time
	// constants of seconds.
	stampTicks = 16
)

// Success keeps an exponentially weighted failure score e between 0 and 1; success
// is 1 - e. It stores the failures, not the successes, as a floating-point number:
// near "always succeeds" the stored number is near 0 and keeps its relative
// precision, so that a score can neither stick at 0 nor be ground down by rounding
// (a ratchet known from integer scores), and an endpoint that never fails costs one
// load per result, and a write at most once in 17 ms.
//
// The zero Success has seen no result. Resolution: 2^-21 of the score, 1 ms of the
// instant.
type Success struct{ w atomic.Uint64 }

func packScore(e float64, ticks int64) uint64 {
	if e < minScore {
		return uint64(ticks) // no failures, but a result
	}
	b := math.Float32bits(float32(min(e, 1))) - scoreBias
	return uint64((b+1<<(scoreShift-1))>>scoreShift)<<successTimeBits | uint64(ticks)
}

func unpackScore(w uint64) (e float64, ticks int64) {
	if w <= successMaxTicks {
		return 0, int64(w)
	}
	b := uint32(w>>successTimeBits)<<scoreShift + scoreBias
	return float64(math.Float32frombits(b)), int64(w & successMaxTicks)
}

// successTicks is at least 1, so that a word with a result in it is never 0.
func successTicks(now int64) int64 { return min(max(now, 0)>>successTickBits+1, successMaxTicks) }

// gap is the time from then to now in ticks, within what counts.
func (p SuccessParams) gap(now, then int64) int64 { return min(max(now-then, 0), p.most) }

// Observe adds one result, seen at instant now. The first failure of an endpoint that
// has no result yet makes its score 1.
func (s *Success) Observe(ok bool, now int64, p SuccessParams) {
	ticks := successTicks(now)
	for {
		old := s.w.Load()
		e, last := unpackScore(old)
		if ok && e == 0 && old != 0 {
			// Nothing but the instant to note, and that only so often.
			if ticks < last+stampTicks || s.w.CompareAndSwap(old, uint64(ticks)) {
				return
			}
			continue
		}
		gap := p.gap(ticks, last)
		weight := 1.0 // the first result's
		if old != 0 {
			weight = -math.Expm1(-float64(gap) / p.average)
		}
		e *= p.faded(gap)
		if ok {
			e -= e * max(weight, p.step/successPart)
		} else {
			e += (1 - e) * max(weight, p.step, minScore)
		}
		w := packScore(e, max(ticks, last))
		if ok && w > successMaxTicks && old>>successTimeBits-w>>successTimeBits < leastChange {
			return // too small a change to store well: let the gap grow
		}
		if s.w.CompareAndSwap(old, w) {
			return
		}
	}
}

// Clean reports whether there is no failure in the score: then its penalty is 0 at any
// instant.
func (s *Success) Clean() bool { return s.w.Load() <= successMaxTicks }

// faded returns the factor by which a score falls in gap ticks of Success.
func (p SuccessParams) faded(gap int64) float64 {
	if gap == 0 {
		return 1
	}
	return math.Exp(-float64(gap) / p.fadeTicks)
}

// Failure returns the failure score at instant now, from 0 (none) to 1.
func (s *Success) Failure(now int64, p SuccessParams) float64 {
	e, last := unpackScore(s.w.Load())
	if e == 0 {
		return 0
	}
	return e * p.faded(p.gap(successTicks(now), last))
}

// PenaltyLog2 returns -log2(1 - e) in Q16 for the failure score e at instant now: how
// many doublings of cost the failures are worth. It is 0 without failures and at
// most 30·65536. It is integer arithmetic throughout, for the request path.
func (s *Success) PenaltyLog2(now int64, p SuccessParams) int64 {
	w := s.w.Load()
	if w <= successMaxTicks {
		return 0
	}
	b := uint64(w>>successTimeBits)<<scoreShift + scoreBias
	e := (b&(1<<23-1) | 1<<23) << 7 >> (127 - b>>23) // Q30
	gap := p.gap(successTicks(now), int64(w&successMaxTicks))
	if gap != 0 && p.fade.rate != 0 {
		hi, lo := bits.Mul64(e, exp2Neg(p.fade.loss(gap<<(successTickBits-tickBits))))
		e = hi<<32 | lo>>32
	}
	return 30<<16 - Log2(1<<30-min(e, 1<<30))
}

// Settle is [Peak.Settle].
func (s *Success) Settle(now int64) {
	ticks := successTicks(now)
	for w := s.w.Load(); int64(w&successMaxTicks) > ticks; w = s.w.Load() {
		if s.w.CompareAndSwap(w, w&^successMaxTicks|uint64(ticks)) {
			return
		}
	}
}
