package grpcbalancer

import "time"

// sweepFirst is the time from the first list to the first sweep. Until then a pool takes
// endpoints that nobody has tried for as good as the best answer, and too early a sweep
// would end that before there are answers.
const sweepFirst = time.Second

// sweepAnew is for a list of n endpoints, or when the pool may want others than it has: the
// first list begins the pool's housekeeping, and later the pool wants more of it for a
// while. Called under mu.
func (p *policy) sweepAnew(n int) {
	switch {
	case p.swept:
		p.news++
		p.sweeper.Reset(0)
	case p.sweeper == nil && n > 0:
		p.sweeper = time.AfterFunc(sweepFirst, p.sweep)
	}
}

// sweep does the pool's housekeeping and comes back when the pool wants it.
func (p *policy) sweep() {
	p.mu.Lock()
	pool, news, subsetting := p.pool, p.news, p.subsetting
	p.mu.Unlock()
	var next time.Time
	now := time.Now()
	if subsetting {
		next = p.sweepSubset()
	} else {
		next = pool.Sweep(now) // without a lock: the pool has its own; one that was replaced meanwhile is closed
	}
	p.look(pool, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swept = true
	p.wake()                         // somebody may be back for those who wait
	if p.news == news && !p.closed { // else next is out of date, and another sweep is due
		p.sweeper.Reset(time.Until(next))
	}
}

// sweepSubset is a sweep that may select other endpoints: those that come in get a child, and
// those that leave lose theirs.
func (p *policy) sweepSubset() (next time.Time) {
	p.calls.Lock()
	defer p.calls.Unlock()
	next = p.pool.Sweep(time.Now())
	if p.closed || p.pool.Generation() == p.generation {
		return next
	}
	left, _ := p.updateChildren(false) // a child that refuses its endpoint reports that, too
	closeAll(left)
	p.mu.Lock()
	err := p.resolverErr
	p.mu.Unlock()
	p.endUpdate(err)
	return next
}
