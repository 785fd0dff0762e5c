package picker

import (
	"math"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// Sweep does what must happen now and then rather than per request, at instant now:
// it takes the median latency of the members, from which cold endpoints start; it
// stops believing requests in flight on endpoints that have finished none for
// [LeakAfter] and hold no stream; and it forgets endpoints that were removed longer
// than [Tombstone] ago and have nothing in flight. It costs O(n) and should run about once a second.
func (g *Registry) Sweep(now int64) {
	l := g.shared.learning.Load()
	target := g.shared.median.Load()
	lgs := g.scratch[:0]
	var picks uint64
	members := 0
	for id, r := range g.records {
		r.disbelieve(now)
		if !r.member {
			// Long streams of a former member are counted should it return.
			if now-r.removedAt >= int64(Tombstone) && r.InFlight() == 0 {
				delete(g.records, id)
			}
			continue
		}
		r.settle(now)
		members++
		n := r.Picks()
		if n > r.sweptPicks { // a Done in between can hide a pick from one sweep
			picks += n - r.sweptPicks
			r.sweptPicks = n
		}
		if lg, ok := r.mean.Log2(now, l.mean, target); ok {
			lgs = append(lgs, lg)
		}
		r.forgetHint(now, rampUnits*l.unit)
	}
	g.scratch = lgs
	if len(lgs) > 0 {
		slices.Sort(lgs)
		g.shared.median.Store((lgs[(len(lgs)-1)/2] + lgs[len(lgs)/2]) / 2)
		sum := 0.0
		for _, lg := range lgs {
			sum += ewma.Exp2(lg)
		}
		g.shared.mean.Store(ewma.LatencyLog2(int64(min(sum/float64(len(lgs)), math.MaxInt64/2))))
		g.shared.settled.Store(true)
	}
	g.pace(now, picks, members)
	l = g.shared.learning.Load()
	for _, r := range g.records {
		if r.member && l.needs&NeedLatency != 0 {
			r.fadeView(now, l)
		}
	}
	g.shared.swept.Store(max(now, 1))
}

// pace measures the time between picks, of which there were that many since the last
// sweep, and derives the unit of time constants: an eighth of the time between two samples
// of one endpoint, ten latencies, and at least a second.
func (g *Registry) pace(now int64, picks uint64, members int) {
	if elapsed := float64(now - g.sweptAt); picks > 0 && elapsed > 0 {
		// What the mean over the picks since would be if each had the weight 0.02.
		w := 1 - math.Pow(1-0.02, float64(picks))
		if g.gap == 0 {
			w = 1
		}
		g.gap += (elapsed/float64(picks) - g.gap) * w
		g.sweptAt = now
	}
	if members == 0 {
		return // nothing to measure by
	}
	unit := time.Duration(float64(members) * g.gap / 8)
	if m := g.shared.median.Load(); m != ewma.NoTarget {
		unit = max(unit, 10*time.Duration(ewma.Exp2(min(m, 50<<16))))
	}
	unit = min(max(unit, minUnit), maxUnit)
	// Republish on a change that matters only: the parameters cost logarithms.
	if d := unit - g.unit; d > g.unit/16 || d < -g.unit/16 {
		g.unit = unit
		g.Learn(g.shared.learning.Load().needs)
	}
}

// forgetHint clears marks whose time is over, which saves picks a look.
func (r *Record) forgetHint(now int64, window time.Duration) {
	r.unmark(markAvoided, func() bool { return r.avoidUntil.Load() > now })
	r.unmark(markRamp, func() bool { return r.rampFrom.Load() > now-int64(window) })
}

// unmark clears m unless stands says that it still holds. A writer stores the fact
// first and then the mark, so looking again afterwards misses nothing.
func (r *Record) unmark(m uint32, stands func() bool) {
	if r.marks.Load()&m == 0 || stands() {
		return
	}
	r.marks.And(^m)
	if stands() {
		r.marks.Or(m)
	}
}

// settle takes instants that lie ahead, from a clock that has since stepped back, for now:
// nothing would fade until the clock is there again.
func (r *Record) settle(now int64) {
	r.peak.Settle(now)
	r.mean.Settle(now)
	r.success.Settle(now)
	if r.lastDone.Load() > now {
		r.lastDone.Store(now)
	}
	if limit := now + int64(2*avoidMax); r.avoidUntil.Load() > limit {
		r.avoidUntil.Store(limit)
	}
}

// disbelieve applies the rule for picks that were never done.
func (r *Record) disbelieve(now int64) {
	ended, open := r.ended(), r.open()
	if r.leaked.Load() > open { // a Done crossed an earlier sweep
		r.leaked.Store(max(open, 0))
	}
	if r.leaked.Load() <= 0 && r.marks.Load()&markLeaked != 0 {
		r.marks.And(^uint32(markLeaked))
	}
	if ended != r.sweptEnded || open <= 0 || r.quietSince == 0 || r.streams.Load() > 0 {
		r.sweptEnded, r.quietSince = ended, max(now, 1)
		return
	}
	if now-r.quietSince >= int64(LeakAfter) {
		r.leakBefore.Store(now)
		r.leaked.Store(open)
		r.mark(markLeaked)
		r.quietSince = max(now, 1) // later picks get their own ten minutes
	}
}
