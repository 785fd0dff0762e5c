package grpcbalancer

import "time"

// sweep does the pool's housekeeping and comes back when the pool wants it, about
// once a second. It takes no lock over it: the pool has its own, and is there before
// the first sweep is due and never replaced.
func (p *policy) sweep() {
	now := time.Now()
	next := p.pool.Sweep(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.sweeper.Reset(min(max(next.Sub(now), sweepEvery/10), sweepEvery))
	}
}
