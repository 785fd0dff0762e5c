package ewma

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// LogMeanParams are the time constants of a [LogMean]. Compute them once with
// [NewLogMeanParams].
type LogMeanParams struct {
	perTick uint64 // 1/(2u) per tick of LogMean, in Q28
	perNS   uint64 // 1/(20u) per nanosecond of latency, in units of 2^-92
	fade    Decay
	fresh   int64 // gaps up to this many ticks fade by less than 0.1 %
	most    int64 // the longest gap that counts, in ticks
}

// NewLogMeanParams returns the parameters for the time unit u, which should be at
// least the time between two samples of one endpoint over 8, and ten latencies;
// units of 0 or less count as one second, and those below 20 ms as that.
func NewLogMeanParams(u time.Duration) LogMeanParams {
	if u <= 0 {
		u = time.Second
	}
	u = min(max(u, leastUnit), time.Duration(1<<62)/fadeUnits)
	return LogMeanParams{
		perTick: uint64((1 << (meanTickBits + 28)) / (2 * float64(u))),
		perNS:   uint64(math.Ldexp(1/(20*float64(u)), 92)),
		fade:    NewDecay(fadeUnits * u),
		fresh:   int64(fadeUnits*u) >> (meanTickBits + 10),
		most:    maxGapFor(float64(fadeUnits*u)) >> meanTickBits,
	}
}

const (
	// fadeUnits is the time constant of fading in units.
	fadeUnits = 60
	leastUnit = 20 * time.Millisecond
	// The weight of one sample is between these, in Q28, or 1/count while that is more.
	minAlpha     = (1<<28 + 50) / 100
	maxAlpha     = (1<<28 + 5) / 10
	fullWeight   = 28282658 // -ln(1 - 0.1) in Q28
	meanMaxCount = 100      // 1/minAlpha

	// Layout of LogMean's word: log2 of the mean (Q16, 22 bits), the number of samples
	// (7 bits), the instant of the last one (35 bits).
	meanTickBits  = 22 // 4 ms
	meanTimeBits  = 35
	meanCountBits = 7
	meanMaxTicks  = 1<<meanTimeBits - 1
	// meanStampTicks is how old the instant of the last sample may be: 17 ms, against
	// time constants of seconds.
	meanStampTicks = 4
	meanMaxLog     = 1<<22 - 1
)

// NoTarget as the target of a [LogMean] says that there is nothing to fade to.
const NoTarget = -1 << 63

// LogMean estimates latency by an average of logarithms, the geometric mean, which one
// slow answer in a thousand hardly moves. The first samples weigh 1/n. A sample's
// weight is 1 - e^(-(Δ + x/10)/2u), between 0.01 and 0.1, for a sample x that comes Δ
// after the last: sparse samples weigh more, and so do slow ones, which had their
// whole duration to change things.
//
// Without samples the estimate fades with 60u towards a target, the pool's usual latency:
// never to zero. Estimates that fade to zero make every endpoint look alike when many
// clients each send little.
//
// The zero LogMean has no sample. Resolution: 2^-16 of a doubling, 4 ms of the
// instant. Instants later than 4.5 years count as that.
type LogMean struct{ w atomic.Uint64 }

func packMean(lg, count, ticks int64) uint64 {
	return uint64(min(max(lg, 0), meanMaxLog))<<(meanCountBits+meanTimeBits) |
		uint64(count)<<meanTimeBits | uint64(ticks)
}

func unpackMean(w uint64) (lg, count, ticks int64) {
	return int64(w >> (meanCountBits + meanTimeBits)), int64(w >> meanTimeBits & (1<<meanCountBits - 1)), int64(w & meanMaxTicks)
}

func meanTicks(now int64) int64 { return min(max(now, 0)>>meanTickBits, meanMaxTicks) }

func (p LogMeanParams) gap(now, then int64) int64 { return min(max(now-then, 0), p.most) }

// faded returns lg after gap ticks without samples.
func (p LogMeanParams) faded(lg, gap, target int64) int64 {
	if gap <= p.fresh || target == NoTarget {
		return lg
	}
	// Of the distance to the target, 2^-loss is left.
	left := int64(exp2Neg(p.fade.loss(gap << (meanTickBits - tickBits))))
	return target + ((lg-target)*(left>>8))>>24
}

// alpha returns the weight of a sample of x nanoseconds that comes gap ticks after
// the last and is the count-th, in Q28.
func (p LogMeanParams) alpha(x, gap, count int64) int64 {
	hi, _ := bits.Mul64(uint64(max(x, 0)), p.perNS)
	z := int64(min(uint64(gap)*p.perTick+hi, fullWeight))
	a := int64(maxAlpha)
	if z < fullWeight {
		a = max(z-(z*z)>>29, minAlpha) // 1 - e^-z to 2e-4
	}
	if count < meanMaxCount {
		a = max(a, 1<<28/count)
	}
	return a
}

// Observe adds a sample of x nanoseconds, taken at instant now. target is log2 of the
// latency that the pool's requests usually meet in nanoseconds, in Q16, or [NoTarget].
func (m *LogMean) Observe(x, now int64, p LogMeanParams, target int64) {
	m.ObserveLog2(LatencyLog2(x), x, now, p, target)
}

// ObserveLog2 is Observe for a caller that has log2 of the sample, in Q16. It returns
// log2 of the estimate that results.
func (m *LogMean) ObserveLog2(sample, x, now int64, p LogMeanParams, target int64) int64 {
	ticks := meanTicks(now)
	for {
		old := m.w.Load()
		lg, count, last := unpackMean(old)
		gap := p.gap(ticks, last)
		lg = p.faded(lg, gap, target)
		count = min(count+1, meanMaxCount)
		lg += ((sample-lg)*p.alpha(x, gap, count) + 1<<27) >> 28
		w := packMean(lg, count, max(ticks, last))
		// An instant alone that is a little newer is not worth a write.
		if w-old <= meanStampTicks && old != 0 || m.w.CompareAndSwap(old, w) {
			return min(max(lg, 0), meanMaxLog)
		}
	}
}

// Restart forgets all samples but one of x nanoseconds, taken at instant now. Later ones weigh as if it
// had come after many.
func (m *LogMean) Restart(x, now int64) {
	m.w.Store(packMean(LatencyLog2(x), meanMaxCount, meanTicks(now)))
}

// ObserveAtLeast adds x as a lower bound of a latency: it counts as a sample only if it
// exceeds the estimate, and not at all before the first sample.
func (m *LogMean) ObserveAtLeast(x, now int64, p LogMeanParams, target int64) {
	if lg, ok := m.Log2(now, p, target); ok && LatencyLog2(x) > lg {
		m.Observe(x, now, p, target)
	}
}

// Log2 returns log2 of the estimate in nanoseconds at instant now, in Q16. ok is false
// while there is no sample.
func (m *LogMean) Log2(now int64, p LogMeanParams, target int64) (lg int64, ok bool) {
	w := m.w.Load()
	if w == 0 {
		return 0, false
	}
	lg, _, last := unpackMean(w)
	return p.faded(lg, p.gap(meanTicks(now), last), target), true
}

// Settle is [Peak.Settle].
func (m *LogMean) Settle(now int64) {
	ticks := meanTicks(now)
	for w := m.w.Load(); int64(w&meanMaxTicks) > ticks; w = m.w.Load() {
		if m.w.CompareAndSwap(w, w&^meanMaxTicks|uint64(ticks)) {
			return
		}
	}
}
