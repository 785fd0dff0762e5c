package ewma

import "sync/atomic"

// Peak estimates latency by holding peaks: at instant t the estimate is
//
//	max over samples i of x_i · e^(-(t - t_i)/τ)
//
// It behaves like Finagle's and Linkerd's peak EWMA as deployed (their reads fold
// in a sample of zero, so that between two samples the average only falls and almost
// any sample is a new peak), and it needs one comparison instead of an average: a
// sample either exceeds what is left of the holding one or changes nothing. So the
// order of samples does not matter, nor do equal instants, and a request that was
// cancelled or timed out is a valid sample, since its elapsed time is a lower bound.
//
// The zero Peak has no sample. Resolution: 0.1 % of the value, 1 µs of the instant.
// Pass the same Decay to all calls; another one takes effect from that call on.
type Peak struct {
	// w packs log2 of the holding sample (Q10, 16 bits, at least 1) above its
	// instant in ticks (48 bits); 0 means no sample. Keeping the two apart, rather
	// than as the one sum log2 x + t/(τ·ln 2), costs a subtraction a read and lets
	// a read clamp the gap, and τ change without touching what is stored.
	w atomic.Uint64
}

func packPeak(lg, ticks int64) uint64 {
	return uint64(min(max((lg+1<<5)>>6, 1), 1<<16-1))<<48 | uint64(ticks)
}

func unpackPeak(w uint64) (lg, ticks int64) { return int64(w>>48) << 6, int64(w & maxTicks) }

// Observe adds a sample of x nanoseconds, taken at instant now. Samples below one
// nanosecond count as one.
func (p *Peak) Observe(x, now int64, d Decay) { p.ObserveLog2(LatencyLog2(x), now, d) }

// ObserveLog2 is Observe for a caller that has log2 of the sample, in Q16.
func (p *Peak) ObserveLog2(lg, now int64, d Decay) {
	ticks := ticksOf(now)
	for {
		old := p.w.Load()
		if old != 0 {
			heldLg, held := unpackPeak(old)
			// Whichever of the two is higher when seen from the later instant
			// stays higher for ever, as both fall at the same rate.
			if gap := ticks - held; gap >= 0 {
				if lg <= heldLg-d.loss(gap) {
					return
				}
			} else if lg-d.loss(-gap) <= heldLg {
				return
			}
		}
		if p.w.CompareAndSwap(old, packPeak(lg, ticks)) {
			return
		}
	}
}

// Restart forgets all samples but one of x nanoseconds, taken at instant now.
func (p *Peak) Restart(x, now int64) { p.w.Store(packPeak(LatencyLog2(x), ticksOf(now))) }

// Log2 returns log2 of the estimate in nanoseconds at instant now, in Q16. It may be
// negative once the estimate has decayed below a nanosecond. ok is false while
// there is no sample.
func (p *Peak) Log2(now int64, d Decay) (lg int64, ok bool) {
	w := p.w.Load()
	if w == 0 {
		return 0, false
	}
	lg, ticks := unpackPeak(w)
	return lg - d.loss(ticksOf(now)-ticks), true
}

// Above returns the estimate as [Peak.Log2] does, if it is above floor; else, or without
// a sample, floor. It looks at the decay only if it must.
func (p *Peak) Above(floor, now int64, d Decay) int64 {
	w := p.w.Load()
	lg, ticks := unpackPeak(w)
	if w == 0 || lg <= floor {
		return floor
	}
	return max(lg-d.loss(ticksOf(now)-ticks), floor)
}

// Settle takes a sample whose instant lies after now for one taken now. Call it now and
// then where the clock may step back: until it is there again, nothing would fade.
func (p *Peak) Settle(now int64) {
	ticks := ticksOf(now)
	for w := p.w.Load(); int64(w&maxTicks) > ticks; w = p.w.Load() {
		lg, _ := unpackPeak(w)
		if p.w.CompareAndSwap(w, packPeak(lg, ticks)) {
			return
		}
	}
}
