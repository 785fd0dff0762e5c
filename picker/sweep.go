package picker

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// Sweep does what must happen now and then rather than per request, at instant now:
// it measures the pool's latencies, from which cold endpoints start and to which estimates
// fade; it stops believing requests in flight on endpoints that have finished none for
// [LeakAfter] and hold no stream; and it forgets endpoints that were removed longer
// than [Tombstone] ago and have nothing in flight. It costs O(n log n) and should run about
// once a second.
func (g *Registry) Sweep(now int64) {
	l := g.shared.learning.Load()
	target := g.shared.target.Load()
	known := g.scratch[:0]
	var picks uint64
	members, failing := 0, 0
	g.due = g.due[:0]
	looks, patience := l.needs&NeedMeanPrior != 0, g.patience()
	if !looks {
		clear(g.unasked)
	}
	// What traffic was long ago counts less, as what estimates are made of does.
	keep := math.Exp(-float64(max(now-g.shared.swept.Load(), 0)) / float64(fadeUnits*l.unit))
	for id, r := range g.records {
		r.disbelieve(now)
		if !r.member() {
			delete(g.unasked, r)
			// Long streams of a former member are counted should it return.
			if now-r.removedAt >= int64(Tombstone) && r.InFlight() == 0 {
				delete(g.records, id)
			}
			continue
		}
		r.settle(now)
		members++
		if r.fails(now, l, looks) {
			failing++
		}
		n := r.picksSince()
		picks += n
		r.traffic = r.traffic*float32(keep) + float32(n)
		if looks && g.isUnasked(r, n, now, patience) {
			g.due = append(g.due, r)
		}
		if lg, ok := r.mean.Log2(now, l.mean, target); ok {
			known = append(known, knownLatency{lg, float64(r.traffic)})
		}
		r.reported.tally(keep)
		r.forgetHint(now, rampUnits*l.unit)
		r.ageFresh(now, l.unit)
	}
	g.scratch = known
	g.picks += picks
	g.members = members
	g.lookAgain()
	g.measure(known, members, now)
	g.shared.judge(failing, members)
	g.judgeReports()
	g.pace(now, picks, members)
	l = g.shared.learning.Load()
	for _, r := range g.records {
		if r.member() && l.needs&NeedLatency != 0 {
			r.fadeView(now, l)
		}
	}
	g.shared.swept.Store(max(now, 1))
}

// fails reports whether the endpoint is one that fails, and with looks eases it in when it no longer does.
func (r *Record) fails(now int64, l *learning, looks bool) bool {
	if r.marks.Load()&markEjected != 0 {
		// A few failures in a row eject, before the score shows that most fail. If it did not
		// count, one ejection could hide an outage from those that are left.
		return true
	}
	mostly := r.failsMostly(now, l)
	if mostly && looks {
		r.mark(markFresh)
		r.freshSince = 0 // the unit begins when it no longer does
	}
	return mostly
}

// failsMostly reports whether every second request fails, or more.
func (r *Record) failsMostly(now int64, l *learning) bool {
	return !r.success.Clean() && failureFactor*r.success.PenaltyLog2(now, l.success) >= failsMostly
}

// judge notes an outage: more than half of the members fail. It is over when no more than a
// quarter do; at half, those that are back would at once be taken for all that there is.
func (s *shared) judge(failing, members int) {
	s.outage.Store(2*failing > members || 4*failing > members && s.outage.Load())
}

// picksSince returns how many picks there were since the last sweep.
func (r *Record) picksSince() uint64 {
	n := r.Picks()
	if n <= r.sweptPicks {
		return 0 // a Done in between can hide a pick from one sweep
	}
	since := n - r.sweptPicks
	r.sweptPicks = n
	return since
}

// settlingPicks is how many picks for each member are enough to know who is slow.
const settlingPicks = 8

// knownLatency is an endpoint's estimate and its share of recent traffic.
type knownLatency struct {
	lg      int64
	traffic float64
}

// measure takes the pool's latencies from those of its endpoints that have any.
func (g *Registry) measure(known []knownLatency, members int, now int64) {
	if len(known) == 0 {
		return
	}
	if len(known) == members || now-g.shared.firstSample.Load() >= int64(minUnit) || g.picks >= settlingPicks*uint64(members) {
		g.shared.settled.Store(true)
	} else if !g.shared.settled.Load() {
		return // first answers are slow; see Record.observe
	}
	slices.SortFunc(known, func(a, b knownLatency) int {
		return cmp.Or(cmp.Compare(a.lg, b.lg), cmp.Compare(a.traffic, b.traffic))
	})
	latencies, traffic := 0.0, 0.0
	for _, k := range known {
		latencies += ewma.Exp2(k.lg)
		traffic += k.traffic
	}
	median := (known[(len(known)-1)/2].lg + known[len(known)/2].lg) / 2
	g.shared.median.Store(median)
	g.shared.mean.Store(ewma.LatencyLog2(int64(min(latencies/float64(len(known)), math.MaxInt64/2))))
	// Estimates of endpoints that nobody asks any more fade towards the median over
	// endpoints, and a quarter of the way from there to what requests meet: towards the former
	// alone, a majority that was slow once would fade to itself, and never be asked again.
	// Requests meet the endpoints that happen to look fast, so that towards the latter alone
	// whoever is not asked would soon look better than most.
	met, below := median, 0.0
	for _, k := range known {
		if below += k.traffic; traffic > 0 && below >= traffic/2 {
			met = k.lg
			break
		}
	}
	g.shared.target.Store(median + (met-median)/4)
	g.met = met
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
	latency := g.latency
	if m := g.shared.median.Load(); m != ewma.NoTarget {
		latency = time.Duration(ewma.Exp2(min(m, 50<<16)))
		// At most four times what requests meet: where most endpoints hang, the median is their
		// requests' time limit, and for hours nothing would be forgotten of them.
		if g.met > 0 {
			m = min(m, g.met+2<<16)
		}
		unit = max(unit, 10*time.Duration(ewma.Exp2(min(m, 50<<16))))
	}
	unit = min(max(unit, minUnit), maxUnit)
	// Republish on a change that matters only: the parameters cost logarithms.
	longer, slower := changed(unit, g.unit), changed(latency, g.latency)
	if longer {
		g.unit = unit
	}
	if slower {
		g.latency = latency
	}
	if longer || slower {
		g.Learn(g.shared.learning.Load().needs)
	}
}

// changed reports whether d has become another by more than a sixteenth.
func changed(d, before time.Duration) bool { return d-before > before/16 || before-d > before/16 }

// forgetHint clears marks whose time is over, which saves picks a look.
func (r *Record) forgetHint(now int64, window time.Duration) {
	r.unmark(markAvoided, func() bool { return r.avoidUntil.Load() > now })
	r.unmark(markReported, func() bool { return r.reported.stands(now, r.shared.learning.Load()) })
	r.unmark(markRamp, func() bool { return r.rampFrom.Load() > now-int64(window) })
}

// ageFresh ends what comeBack began after a unit, which is ten latencies at least:
// by then answers tell of the endpoint's own queue.
func (r *Record) ageFresh(now int64, unit time.Duration) {
	switch {
	case r.marks.Load()&markFresh == 0:
		r.freshSince = 0
	case r.freshSince == 0:
		r.freshSince = now
	case now-r.freshSince >= int64(unit):
		r.marks.And(^uint32(markFresh))
		r.freshSince = 0
	}
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
	r.reported.settle(now)
	if r.lastDone.Load() > now {
		r.lastDone.Store(now)
	}
	if limit := now + int64(2*avoidMax); r.avoidUntil.Load() > limit {
		r.avoidUntil.Store(limit)
	}
	if limit := now + int64(2*avoidMax); r.rampFrom.Load() > limit {
		r.rampFrom.Store(limit)
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
