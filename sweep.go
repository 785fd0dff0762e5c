package evenkeel

import (
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

const (
	// sweepEvery is the time between two sweeps: estimates that go by the pool's
	// median need it no fresher than a second.
	sweepEvery = time.Second
	// sweepSoon is the time to the first sweep after the list has changed. From there the
	// time doubles, as what the newcomers show settles.
	sweepSoon = 10 * time.Millisecond
	// sweepGrace is how long a sweep may be overdue before a pick does it.
	sweepGrace = time.Second
)

// Sweep does the housekeeping that is due at instant t: see [picker.Registry.Sweep],
// [outlier.Detector.Sweep] and [LimitConfig]. It lets the client's subset follow what is
// available and the load, and returns when to call it again: in a second, and sooner
// when members have come or gone lately, while there is a limit, or during a slow start of less than five seconds. The owner calls it
// then, or at least about once a second; if nobody does, one pick in a while pays for it and
// [Stats].LateSweeps counts that (picks of policies that need no time do so only when
// requests fail or endpoints are ejected). A pick's sweep leaves the subset as it is. Calling it more often does no
// harm.
func (p *Pool[T]) Sweep(t time.Time) (next time.Time) {
	p = p.home
	p.mu.Lock()
	now := p.instant(t)
	_, limited := p.limiter.Limit()
	if !limited && len(p.branches) < 2 || now >= p.houseDue || p.houseDue-now > int64(sweepEvery) {
		wait := p.sweep(now)
		wait = min(wait, p.reselect(now), p.reweigh(now), max(time.Duration(now-p.changed), sweepSoon), sweepEvery)
		p.houseDue = now + int64(wait)
	} else {
		p.sweepDue.Store(now + int64(sweepEvery+sweepGrace))
	}
	wait := time.Duration(p.houseDue - now)
	if !p.closed {
		wait = min(wait, max(time.Duration(p.sweepLimit(now)-now), sweepSoon))
		p.republish()
	}
	news := p.newWarnings()
	p.mu.Unlock()
	p.tell(news)
	return t.Add(wait)
}

// sweep does all but the limit's part at instant now, and returns for how long there is nothing to do. mu is
// held.
func (p *Pool[T]) sweep(now int64) (wait time.Duration) {
	p.sweepDue.Store(now + int64(sweepEvery+sweepGrace))
	if p.closed {
		return sweepEvery
	}
	p.registry.Sweep(now)
	next, changes := p.detector.Sweep(p.steady(now))
	p.apply(changes, now)
	p.share(now)
	p.republish()
	p.view.Load().snapshot.Sweep(now)
	for _, b := range p.branches {
		b.view.Load().snapshot.Sweep(now)
	}
	wait = sweepEvery
	if p.ramping {
		wait = p.config.rampStep()
	}
	if m := p.detector.Config().Mode; m != outlier.Envoy && m != outlier.A50 {
		return wait // nothing of Soft's is more exact than that
	}
	return min(wait, max(time.Duration(next-now), sweepSoon))
}

// sweepIfLate sweeps on a picker's time if the owner forgot, unless somebody holds
// the lock: then they or a later pick will.
func (p *Pool[T]) sweepIfLate(now int64) {
	if now <= p.sweepDue.Load() || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	if now > p.sweepDue.Load() && !p.closed {
		p.lateSweeps.Add(1)
		p.sweep(now)
		p.sweepLimit(now)
		p.republish()
	}
}
