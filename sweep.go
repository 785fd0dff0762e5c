package evenkeel

import "time"

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

// Sweep does the housekeeping that is due at instant t (see [picker.Registry.Sweep]), lets
// the client's subset follow what is available and the load, and returns when to call it
// again: in a second, and sooner when members have come or gone lately. The owner calls it
// then, or at least about once a second; if nobody does, one pick in a while pays for it and
// [Stats].LateSweeps counts that (picks of policies that need no time do not, and need no
// sweep either). A pick's sweep leaves the subset as it is. Calling it more often does no
// harm.
func (p *Pool[T]) Sweep(t time.Time) (next time.Time) {
	p.mu.Lock()
	now := p.instant(t)
	p.sweep(now)
	wait := p.reselect(now)
	wait = min(wait, max(time.Duration(now-p.changed), sweepSoon), sweepEvery)
	news := p.newWarnings()
	p.mu.Unlock()
	p.tell(news)
	return t.Add(wait)
}

// sweep does the work at instant now. mu is held.
func (p *Pool[T]) sweep(now int64) {
	p.sweepDue.Store(now + int64(sweepEvery+sweepGrace))
	if p.closed {
		return
	}
	p.registry.Sweep(now)
	p.view.Load().snapshot.Sweep(now)
}

// sweepIfLate sweeps on a picker's time if the owner forgot, unless somebody holds
// the lock: then they or a later pick will.
func (p *Pool[T]) sweepIfLate(now int64) {
	if now <= p.sweepDue.Load() || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	if now > p.sweepDue.Load() {
		p.lateSweeps.Add(1)
		p.sweep(now)
	}
}
