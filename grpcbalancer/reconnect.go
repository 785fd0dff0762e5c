package grpcbalancer

// connect asks for a connection of an endpoint that went idle. It is called under
// mu from within the child's report, where the child cannot be called: a goroutine
// does it, one at most however many endpoints go idle. Called under mu.
func (p *policy) connect(e *endpoint) {
	p.idle = append(p.idle, e)
	if !p.connecting {
		p.connecting = true
		go p.connectIdle()
	}
}

// connectIdle runs until nothing is left to connect. Close ends it: it takes calls
// before each round, and finds the policy closed.
func (p *policy) connectIdle() {
	for p.connectSome() {
	}
}

func (p *policy) connectSome() (more bool) {
	p.calls.Lock()
	defer p.calls.Unlock()
	p.mu.Lock()
	batch := p.idle
	p.idle = nil
	p.connecting = len(batch) > 0 && !p.closed
	more = p.connecting
	p.mu.Unlock()
	if !more {
		return false
	}
	for _, e := range batch {
		if p.children[e.key] == e { // one that left meanwhile is closed
			e.seat.child.ExitIdle()
		}
	}
	return true
}
