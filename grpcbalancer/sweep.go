package grpcbalancer

import "time"

// sweepFirst is the time from the first list to the first sweep. Until then a pool takes
// endpoints that nobody has tried for as good as the best answer, and too early a sweep
// would end that before there are answers.
const sweepFirst = time.Second

// sweepAnew is for a list of n endpoints: the first begins the pool's housekeeping, and
// after a later one the pool wants more of it for a while. Called under mu.
func (p *policy) sweepAnew(n int) {
	switch {
	case p.swept:
		p.lists++
		p.sweeper.Reset(0)
	case p.sweeper == nil && n > 0:
		p.sweeper = time.AfterFunc(sweepFirst, p.sweep)
	}
}

// sweep does the pool's housekeeping and comes back when the pool wants it. It takes no
// lock over it: the pool has its own, and is never replaced.
func (p *policy) sweep() {
	p.mu.Lock()
	pool, list := p.pool, p.lists
	p.mu.Unlock()
	next := pool.Sweep(time.Now())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swept = true
	if p.lists == list && !p.closed { // else next is out of date, and another sweep is due
		p.sweeper.Reset(time.Until(next))
	}
}
