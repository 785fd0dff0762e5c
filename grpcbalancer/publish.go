package grpcbalancer

import (
	"fmt"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/evenkeel/evenkeel"
)

// promptReady is up to how many READY endpoints each new one is published at once,
// so that the first calls of a channel are not all sent to the first endpoint.
const promptReady = 4

// beginUpdate makes endpoints the ones that have children, and returns the seats of those
// that had one and are no longer among them. From here to endUpdate reports are taken and
// not published.
func (p *policy) beginUpdate(endpoints []*endpoint) (left []*seat) {
	children := make(map[string]*endpoint, len(endpoints))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.updating = true
	for _, e := range endpoints {
		children[e.key] = e
		if p.children[e.key] == nil {
			e.seat = &seat{ClientConn: p.cc, endpoint: e, followers: p.followers}
			p.counts[e.state.Load().ConnectivityState]++
			p.owed = true
		}
	}
	var gone []evenkeel.StateChange
	for key, e := range p.children {
		if children[key] == nil {
			e.seat.left = true
			was := e.state.Swap(&unheard).ConnectivityState
			p.counts[was]--
			if e.held && was == connectivity.Ready {
				p.held--
			}
			e.held = false
			p.owed = true
			left = append(left, e.seat)
			gone = append(gone, evenkeel.StateChange{ID: key, State: evenkeel.NotReady})
		}
	}
	// A publication in between may have told the pool what a child said that is leaving.
	p.pool.SetStates(gone)
	p.children, p.list = children, endpoints
	p.sweepAnew(len(endpoints))
	return left
}

// endUpdate publishes what became of an update, if anything did. err is what is wrong
// with the resolver, nil if all is well.
func (p *policy) endUpdate(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.updating = false
	news := err != nil || p.resolverErr != nil
	p.noticeResolver(err)
	p.resolverErr = err
	if p.owed || !p.hasShown || news && p.aggregate() == connectivity.TransientFailure {
		p.publish()
	}
}

// refuse shows why a list was refused, if there is nothing else to go by.
func (p *policy) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		err = fmt.Errorf("%s%w", p.whose(), err)
		p.noticeResolver(err)
		p.resolverErr = err
		p.publish()
	}
}

// report takes a child's state in O(1) and publishes it when somebody may wait for
// it: at once if the state of the whole changed, or if calls may have been sent to
// a connection that is gone and now wait for a new picker; within coalesceFor if
// it can only get better. Most reports change nothing that a pick could see.
func (p *policy) report(c *seat, s balancer.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || c.left {
		return
	}
	e := c.endpoint
	was, is := e.state.Swap(&s).ConnectivityState, s.ConnectivityState
	p.counts[was]--
	p.counts[is]++
	p.noticeReport(e, was, &s)
	if (was == connectivity.Ready) != (is == connectivity.Ready) {
		p.touch(e)
		switch {
		case !e.held:
		case is == connectivity.Ready:
			p.held++
		default:
			p.held--
		}
	}
	if is == connectivity.Idle {
		p.connect(e)
	}
	if was == connectivity.Ready && is != was && p.subsetting {
		p.sweepAnew(len(p.list)) // others may have to be connected in its place
	}
	whole := p.aggregate()
	switch {
	case !p.hasShown || whole != p.shown,
		was == connectivity.Ready,
		is == connectivity.Ready && p.counts[is] <= promptReady:
		p.publishSoon(0)
	case is == connectivity.Ready,
		// Calls that wait for a connection keep the latest error to show.
		is == connectivity.TransientFailure && whole == is:
		p.publishSoon(coalesceFor)
	}
}

// aggregate is the state of the whole: the best of READY, CONNECTING, IDLE and
// TRANSIENT_FAILURE that an endpoint has. Called under mu.
func (p *policy) aggregate() connectivity.State {
	for _, s := range [...]connectivity.State{connectivity.Ready, connectivity.Connecting, connectivity.Idle} {
		if p.counts[s] > 0 {
			return s
		}
	}
	return connectivity.TransientFailure
}

// publishSoon publishes after d, or at the end of the update if one is going on.
// Called under mu.
func (p *policy) publishSoon(d time.Duration) {
	switch {
	case p.updating:
		p.owed = true
	case d == 0:
		p.publish()
	case p.waiting:
	case p.window == nil:
		p.waiting = true
		p.window = time.AfterFunc(d, p.windowOver)
	default:
		p.waiting = true
		p.window.Reset(d)
	}
}

func (p *policy) windowOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !p.waiting { // stopped too late
		return
	}
	p.waiting = false
	p.publishSoon(0)
}

// publish brings the pool up to date and gives the channel a new picker, which wakes
// the calls that wait for one. Called under mu, while not closed.
func (p *policy) publish() {
	if p.waiting {
		p.waiting = false
		p.window.Stop()
	}
	p.owed = false
	p.releaseAll()
	changes := make([]evenkeel.StateChange, 0, len(p.dirty))
	for _, e := range p.dirty {
		e.dirty = false
		if !e.seat.left {
			changes = append(changes, evenkeel.StateChange{ID: e.key, State: poolState(e)})
		}
	}
	clear(p.dirty)
	p.dirty = p.dirty[:0]
	if len(changes) > 0 {
		p.pool.SetStates(changes)
	}
	whole := p.aggregate()
	if !p.hasShown || whole != p.shown {
		p.emit(Connectivity, "", whole.String())
	}
	p.shown, p.hasShown = whole, true
	p.meter.connections(p.counts)
	p.cc.UpdateState(balancer.State{ConnectivityState: p.shown, Picker: p.picker()})
}

func poolState(e *endpoint) evenkeel.State {
	if e.is(connectivity.Ready) && !e.held {
		return evenkeel.Ready
	}
	return evenkeel.NotReady
}

// wake gives calls that were left to the next picker, though endpoints are READY, another look. Called
// under mu.
func (p *policy) wake() {
	if !p.closed && p.shown == connectivity.Ready && p.waits.Swap(false) {
		p.publishSoon(0)
	}
}

// picker returns the picker for the state shown. Called under mu.
func (p *policy) picker() balancer.Picker {
	switch p.shown {
	case connectivity.Ready:
		return ready{p, p.pool}
	case connectivity.TransientFailure:
		return &failing{endpoints: p.list, resolver: p.resolverErr}
	default:
		return queue{}
	}
}
