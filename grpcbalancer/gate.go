package grpcbalancer

import "google.golang.org/grpc/connectivity"

// hold keeps the seat's endpoint from being picked though its child becomes READY: for gRFC A17 it is
// as good as not connected until something is known of its health. Others have to serve meanwhile:
// while none does, nobody is held. An endpoint that is READY already stays what it is.
func (p *policy) hold(c *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := c.endpoint; !c.left && !e.is(connectivity.Ready) {
		e.held = true
	}
}

// release ends that.
func (p *policy) release(c *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := c.endpoint
	if c.left || !e.held {
		return
	}
	e.held = false
	if !e.is(connectivity.Ready) {
		return
	}
	p.held--
	p.touch(e)
	switch {
	case p.closed:
	case p.counts[connectivity.Ready]-p.held <= promptReady:
		p.publishSoon(0)
	default:
		p.publishSoon(coalesceFor)
	}
}

// releaseAll releases everybody if nobody else is there. Called under mu.
func (p *policy) releaseAll() {
	if p.held == 0 || p.held < p.counts[connectivity.Ready] {
		return
	}
	p.held = 0
	for _, e := range p.list {
		if e.held && e.is(connectivity.Ready) {
			e.held = false
			p.touch(e)
		}
	}
}

// touch has the pool told of an endpoint with the next publication. Called under mu.
func (p *policy) touch(e *endpoint) {
	if !e.dirty {
		e.dirty = true
		p.dirty = append(p.dirty, e)
	}
}
