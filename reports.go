package evenkeel

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/picker"
)

// reports is what a pool makes of the load reports of its endpoints. All but what it says otherwise is
// guarded by the pool's mu.
type reports struct {
	rules    *ReportsConfig
	learnt   *ReportsConfig // the last that took weights from reports: in its unit are the estimates
	feedback *orca.Feedback // nil: weights are not moved
	due      int64          // instant of the next look at weights

	// What a report finds without the lock; nil where weights do not come from reports.
	taking atomic.Pointer[taking]
	failed atomic.Pointer[badReport]
	counts reportCounts

	weighed  []*reported
	scratch  []float64
	nodes    []*orca.FeedbackNode
	sketched []*orca.Estimate
}

// taking is where reports go: immutable, but for the estimates.
type taking struct {
	weights   *orca.Weights // Take alone without the lock
	estimates map[*picker.Record]*orca.Estimate
}

// badReport counts reports that were no good.
type badReport struct {
	count uint64
	last  error
}

// reported is what the reports of one endpoint of the list have come to. The zero reported is of one that
// has never reported.
type reported struct {
	estimate *orca.Estimate
	node     *orca.FeedbackNode
	weight   float64 // in force; 0: the usual one
}

// Report takes what the endpoint's answer says of its load, for [ReportsConfig].Weights, and returns what policies
// that go by the expected wait make of it, for the Load of the answer's Result:
//
//	pick.Done(evenkeel.Result{Outcome: evenkeel.Success, Load: pick.Report(&report)})
//
// Call it before Done, with a report that was read by package orcahttp or orcagrpc, or made by hand: numbers
// that cannot be are not believed. The report is not kept; nil is none. It allocates nothing and takes no lock.
// [Stats] counts reports, and what became of them.
func (k *Pick[T]) Report(r *orca.Report) Load {
	rec := k.pick.Record()
	if rec == nil || r == nil {
		return Load{}
	}
	if k.pool.reports.taking.Load() != nil {
		k.pool.take(rec, r, k.pool.now())
	} else {
		k.pool.reports.counts.add(reportRead)
	}
	return LoadOf(r)
}

// ReportAt is Report at instant t.
func (k *Pick[T]) ReportAt(t time.Time, r *orca.Report) Load {
	rec := k.pick.Record()
	if rec == nil || r == nil {
		return Load{}
	}
	k.pool.take(rec, r, k.pool.instant(t))
	return LoadOf(r)
}

// LoadOf returns what a report says of the requests at hand: those in flight and their latency by the named
// metrics [orca.InFlightMetric] and [orca.LatencyMetric], and the part that fails by EPS and QPS. What it does
// not say is left out, and so are numbers that cannot be; nil says nothing.
func LoadOf(r *orca.Report) (l Load) {
	if r == nil {
		return l
	}
	if n, ok := r.Named.Get(orca.InFlightMetric); ok {
		l = l.WithInFlight(n)
	}
	if us, ok := r.Named.Get(orca.LatencyMetric); ok && us > 0 && us <= math.MaxFloat64 {
		l = l.WithLatency(time.Duration(min(us, math.MaxInt64/4e3) * float64(time.Microsecond)))
	}
	if r.QPS > 0 && r.QPS <= math.MaxFloat64 && (r.EPS > 0 || r.Has(orca.EPS)) {
		l = l.WithErrorRate(r.EPS / r.QPS)
	}
	return l
}

// Report takes a load report of the endpoint with that ID which did not come with an answer: from a stream
// of its own, or from elsewhere, for [ReportsConfig].Weights, which move at [Pool.Sweep] alone. It returns whether the
// pool has such a member and made anything of it; nil is no report.
func (p *Pool[T]) Report(id string, r *orca.Report) bool { return p.ReportAt(time.Now(), id, r) }

// ReportAt is Report at instant t.
func (p *Pool[T]) ReportAt(t time.Time, id string, r *orca.Report) bool {
	p = p.home
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.index[id]
	if !ok || !p.listed[i].member || p.closed || r == nil {
		return false
	}
	return p.take(p.members.Record(p.listed[i].at), r, p.instant(t))
}

// BadReport says that the answer had a report that could not be read, for [Stats].
func (k *Pick[T]) BadReport(err error) {
	if k.pool != nil {
		k.pool.BadReport(err)
	}
}

// BadReport counts a report that could not be read, for [Stats].
func (p *Pool[T]) BadReport(err error) {
	p = p.home
	for {
		old := p.reports.failed.Load()
		next := &badReport{count: 1, last: err}
		if old != nil {
			next.count += old.count
		}
		if p.reports.failed.CompareAndSwap(old, next) {
			return
		}
	}
}

// take gives a report to whoever goes by it. No lock is needed.
func (p *Pool[T]) take(rec *picker.Record, r *orca.Report, now int64) (used bool) {
	kind := reportRead
	if t := p.reports.taking.Load(); t != nil {
		if e := t.estimates[rec]; e != nil {
			if kind = reportUnusable; t.weights.Take(e, r, now) {
				kind = reportUsed
			}
		}
	}
	p.reports.counts.add(kind)
	return kind == reportUsed
}

// setReports puts the configuration's rules about reports in force. What was reported stays. It was
// validated. mu is held, or the pool is not shared yet.
func (p *Pool[T]) setReports(c *ReportsConfig) {
	was := p.reports.rules
	if p.reports.rules = c; c != nil && was != nil && c.sameWeights(was) {
		return // all that was learnt goes on
	}
	p.reports.feedback, p.reports.due = nil, 0
	if c == nil || c.Weights == ListedWeights {
		p.reports.taking.Store(nil)
		return
	}
	if learnt := p.reports.learnt; learnt != nil && !c.sameUnit(learnt) {
		for i := range p.listed {
			p.listed[i].reported = reported{}
		}
	}
	p.reports.learnt = c
	weights, _ := orca.NewWeights(c.weight())
	if c.Weights == FeedbackWeights {
		p.reports.feedback, _ = orca.NewFeedback(c.Feedback)
	}
	p.reports.taking.Store(&taking{weights: weights})
}

// takeReportsOf makes the members those whose reports are taken. mu is held.
func (p *Pool[T]) takeReportsOf() {
	t := p.reports.taking.Load()
	if t == nil {
		return
	}
	next := &taking{weights: t.weights, estimates: make(map[*picker.Record]*orca.Estimate, p.members.Len())}
	for i := range p.members.Len() {
		e := p.member(i)
		if e.reported.estimate == nil {
			e.reported.estimate, e.reported.node = new(orca.Estimate), new(orca.FeedbackNode)
		}
		next.estimates[p.members.Record(i)] = e.reported.estimate
	}
	p.reports.taking.Store(next)
}

// weight is the weight of a member before any factor of its subset. mu is held.
func (p *Pool[T]) weight(e *entry[T]) Weight {
	switch {
	case p.reports.taking.Load() == nil || e.drained:
		return e.Weight
	case e.reported.weight > 0:
		return scaled(WeightOf(1), e.reported.weight)
	}
	return WeightOf(1)
}

// reweigh lets weights follow the reports, and returns for how long nothing will change. mu is held.
func (p *Pool[T]) reweigh(now int64) (wait time.Duration) {
	t := p.reports.taking.Load()
	if t == nil || p.closed {
		return math.MaxInt64
	}
	if period := int64(t.weights.Period()); now >= p.reports.due || p.reports.due-now > period {
		p.reports.due = now + period
		if p.newWeights(t, now) {
			p.adoptWeights(now)
		}
	}
	return time.Duration(p.reports.due - now)
}

// leastChange is how much a weight that feedback moves has to change before the members are built anew.
const leastChange = 1e-3

// newWeights computes the members' weights and reports whether they are worth building the members anew.
func (p *Pool[T]) newWeights(t *taking, now int64) (changed bool) {
	r := &p.reports
	r.weighed, r.scratch, r.nodes, r.sketched = r.weighed[:0], r.scratch[:0], r.nodes[:0], r.sketched[:0]
	for i := range p.members.Len() {
		e := &p.member(i).reported
		if r.feedback != nil && !p.feeds(t, i, e, now) {
			continue
		}
		r.weighed = append(r.weighed, e)
		r.scratch = append(r.scratch, e.weight)
		r.nodes = append(r.nodes, e.node)
		r.sketched = append(r.sketched, e.estimate)
	}
	if r.feedback == nil {
		changed = t.weights.Update(r.scratch, r.sketched, now)
	} else {
		r.feedback.Update(r.scratch, r.nodes, r.sketched, now)
		for i, w := range r.scratch {
			old := r.weighed[i].weight
			changed = changed || !(math.Abs(w-old) <= leastChange*old)
		}
	}
	if changed {
		for i, w := range r.scratch {
			r.weighed[i].weight = w
		}
	}
	return changed
}

// feeds reports whether feedback goes by member i. By one that gets no requests it would conclude that its weight is
// too small, and of one that has not reported for long nothing is known: that one begins anew.
func (p *Pool[T]) feeds(t *taking, i int, e *reported, now int64) bool {
	if _, ever := e.estimate.Last(); ever && !t.weights.Recent(e.estimate, now) {
		e.estimate.Reset()
		e.node, e.weight = new(orca.FeedbackNode), 0
	}
	return p.view.Load().snapshot.Available(i)
}

// adoptWeights gives the members, who stay, their new weights.
func (p *Pool[T]) adoptWeights(now int64) {
	list := make([]Endpoint, p.members.Len())
	var factors []float64
	if p.selector != nil {
		factors = p.selector.Weights()
	}
	for i := range list {
		e := p.member(i)
		list[i] = e.Endpoint
		if list[i].Weight = p.weight(e); factors != nil {
			list[i].Weight = scaled(list[i].Weight, factors[i])
		}
	}
	p.members, _ = p.registry.Members(list, now) // of a list that was validated, and weights within bounds
	p.rebuild()
}
