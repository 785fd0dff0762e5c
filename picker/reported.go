package picker

import (
	"sync/atomic"

	"github.com/evenkeel/evenkeel/ewma"
)

// What endpoints report counts against them, and never for them. An endpoint with more in flight
// than it usually reports costs the square root of the ratio more, and ever less of that as the
// report ages; one with less costs what this client's own measurements say. So whatever an
// endpoint reports or withholds, it cannot draw traffic by it; without reports, or when they are
// old, nothing is added, and the policy is the one without them. Counting fewer in flight for the
// endpoint gained nothing in simulations: clients have enough of those that are not busy.
//
// Requests of this client's own since the report are counted as ever, by the term for those in
// flight.
//
// How far a report counts depends on whether reports say anything here: see trust.

const (
	// mostBusy is how many times its usual number an endpoint can be seen to have in flight, in
	// Q16 bits.
	mostBusy = 3 << 16
	// reportLatencies is how long a report counts, as a time constant in latencies of the pool.
	// A queue at 70 % load forgets in that time.
	reportLatencies = 4
	// mostReported bounds the cost of a reported error rate, which else is that of failures of
	// this client's own, to one doubling: it is an average over seconds, and whoever comes back
	// from an outage would be left alone for as long.
	mostReported = 1 << 16
)

// reported is what an endpoint's reports amount to.
type reported struct {
	surcharge claim        // by the number in flight
	failing   claim        // by the error rate
	usual     ewma.LogMean // log2 of the number in flight plus 1, as usually reported
	// matched counts the answers, in the lower half, and in the upper half those of them
	// that agree with their report: see match.
	matched atomic.Uint64
	// Guarded by the Registry's owner: the counts of earlier sweeps, decayed.
	agreed, compared float32
}

// claim is a cost in Q16 bits and the instant since which it fades, in one word: the cost in Q10
// above the instant in ticks of 2^10 ns; 0 if there is none.
type claim struct{ w atomic.Uint64 }

const (
	claimTimeBits = 48
	claimTick     = 10
)

func claimTicks(now int64) uint64 { return uint64(min(max(now>>claimTick, 0), 1<<claimTimeBits-1)) }

func (c *claim) set(cost, now int64) {
	q := uint64(min(max(cost, 0)>>6, 1<<(64-claimTimeBits)-1))
	if q == 0 {
		if c.w.Load() != 0 {
			c.w.Store(0)
		}
		return
	}
	c.w.Store(q<<claimTimeBits | claimTicks(now))
}

// at returns what is left of the cost.
func (c *claim) at(now int64, d ewma.Decay) int64 {
	w := c.w.Load()
	if w == 0 {
		return 0
	}
	return d.Left(int64(w>>claimTimeBits)<<6, now-int64(w&(1<<claimTimeBits-1))<<claimTick)
}

// settle drops a claim of an instant after now, which would not fade until then.
func (c *claim) settle(now int64) {
	if w := c.w.Load(); w&(1<<claimTimeBits-1) > claimTicks(now) {
		c.w.CompareAndSwap(w, 0)
	}
}

func (p *reported) settle(now int64) {
	p.surcharge.settle(now)
	p.failing.settle(now)
	p.usual.Settle(now)
}

// take learns from a report that came at instant now on an answer that took elapsed; answered says
// that this is a latency.
func (r *Record) take(load Load, elapsed, now int64, answered bool, l *learning) {
	if l.needs&NeedSuccess != 0 {
		if good, ok := load.good(); ok {
			cost := failureFactor * (ewma.Log2(loadRateMost) - ewma.Log2(good))
			r.claim(&r.reported.failing, min(cost, mostReported), now)
		}
	}
	if l.needs&(NeedLatency|NeedEstimator) == 0 {
		return
	}
	lg, ok := load.inFlightLog2()
	if !ok {
		if lg, ok = load.latencyLog2(); !ok {
			return
		}
	}
	usual := r.reported.usual.ObserveLog2(lg, elapsed, now, l.mean, ewma.NoTarget)
	busy := lg - usual
	if answered {
		r.match(elapsed, busy > 0)
	}
	cost := min(busy, mostBusy) / 2 * int64(r.trust.Load()) / trusted
	r.claim(&r.reported.surcharge, cost, now)
}

// claim sets one of the record's claims.
func (r *Record) claim(c *claim, cost, now int64) {
	c.set(cost, now)
	if cost > 0 {
		r.mark(markReported)
	}
}

// trust is the part of a report's weight that it has earned, in units of 1/trusted.
//
// A server that has a queue answers late when many are in flight: of fresh reports, three out
// of four say "more than usual" with an answer that took longer than usual, or "less" with a
// quicker one. If reports are ten seconds old, invented, or tell of work that does not delay others, every
// second one does, by chance. So the agreement of what comes on one answer, over the last
// minute, tells whether reports mean anything, for the whole pool, and for an endpoint that
// has sent enough of them.
const (
	trusted      = 256
	trustFrom    = 0.55 // of agreement: nothing
	trustFull    = 0.65 // everything
	chance       = 0.5
	poolDoubts   = 4  // answers that agree by chance, before there are any
	memberDoubts = 16 // answers that agree as the pool's do
)

// match counts whether an answer that took elapsed agrees with a report of a busy endpoint.
func (r *Record) match(elapsed int64, busy bool) {
	v := view(r.view.Load())
	if v == 0 {
		return
	}
	one := uint64(1)
	if (ewma.LatencyLog2(elapsed) > v.estimate()) == busy {
		one |= 1 << 32
	}
	r.reported.matched.Add(one)
}

// tally takes what was matched since the last sweep, keep being what is left of the counts before.
func (p *reported) tally(keep float64) {
	if since := p.matched.Swap(0); since != 0 || p.compared != 0 {
		p.compared = p.compared*float32(keep) + float32(uint32(since))
		p.agreed = p.agreed*float32(keep) + float32(since>>32)
	}
}

// judgeReports finds out how far reports are trusted.
func (g *Registry) judgeReports() {
	agreed, compared := chance*poolDoubts, float64(poolDoubts)
	for _, r := range g.records {
		if r.member() {
			agreed += float64(r.reported.agreed)
			compared += float64(r.reported.compared)
		}
	}
	pool := agreed / compared
	for _, r := range g.records {
		own := (float64(r.reported.agreed) + pool*memberDoubts) / (float64(r.reported.compared) + memberDoubts)
		t := int32(min(max((own-trustFrom)/(trustFull-trustFrom), 0), 1) * trusted)
		if r.trust.Load() != t {
			r.trust.Store(t)
		}
	}
}

// stands reports whether anything is left of what was reported.
func (p *reported) stands(now int64, l *learning) bool {
	return p.surcharge.at(now, l.report) > 0 || p.failing.at(now, l.failing) > 0
}
