package httpclient

import (
	"net"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

// leaving are a group's endpoints that get nothing new: they left the list, or are not selected of it any more, or are
// drained while they are in it. Guarded by the group's mu.
type leaving struct {
	// Set at construction.
	limit  time.Duration // of requests in flight; 0: none
	origin time.Time     // of instants

	all map[string]*endpoint // by ID
}

// farewell is what an endpoint knows of its leaving. Guarded by the group's mu.
type farewell struct {
	health.Departure
	over bool // its connections were closed for good; of one that is drained and still listed
}

// parting is what has to be closed once the group's mu is free.
type parting struct {
	idle   []*endpoint
	former []*trackedLeaf // whose idle connections are to be closed
	conns  []net.Conn
}

func (p parting) close() {
	for _, c := range p.conns {
		_ = c.Close() // nobody reads from it any more, and an error changes nothing
	}
	for _, l := range p.former {
		l.CloseIdleConnections()
	}
	for _, e := range p.idle {
		if e.retired.Load() {
			e.closeIdle() // its last request does it once more, see release
		} else {
			e.closeEnded()
		}
	}
}

// endpoint returns the one with that ID, which is not in the list: the one that is leaving, with its
// connections, or a new one. mu is held, as for all of the group's methods here but where it says otherwise.
func (g *group) endpoint(id string) *endpoint {
	if e := g.leaving.all[id]; e != nil {
		return e
	}
	e := &endpoint{addr: id, classify: g.classify}
	e.newLeaf = func(addr string) leaf { return g.bounded(e, g.newLeaf(addr)) }
	return e
}

// depart lets those of list and who is drained leave from now on, lets those stay that are back, and returns what is
// to be closed: the idle connections of who has nothing in flight any more, and all of who has had
// its time.
func (g *group) depart(list []*endpoint, now time.Time) (p parting) {
	l := &g.leaving
	drained := g.pool.Drained()
	if len(list)+len(drained)+len(l.all) == 0 {
		return p
	}
	at := int64(now.Sub(l.origin))
	stays := make(map[*endpoint]bool, len(drained))
	for _, e := range drained {
		stays[e] = true
	}
	for id, e := range l.all {
		switch {
		case g.endpoints[id] == e && e.selected && !stays[e]:
			e.stay()
			delete(l.all, id)
		case !e.farewell.over:
			g.part(e, at, &p)
		case !e.selected: // now it is not listed either
			delete(l.all, id)
		}
	}
	for _, e := range slices.Concat(list, drained) {
		if l.all[e.addr] == nil && e.made.Load() != nil {
			e.farewell.Begin(at, int64(l.limit))
			l.all[e.addr] = e
			g.part(e, at, &p)
		}
	}
	return p
}

// part closes what is left of an endpoint whose requests have ended, or that has had its time. One that is still
// selected stays among those that leave, as it would begin to again. A request that chose the endpoint in the moment
// in which it left, and is not counted yet, has no limit of time; its connection closes with it, see release.
func (g *group) part(e *endpoint, at int64, p *parting) {
	open := g.pool.InFlight(e.addr)
	if !e.farewell.Over(at, open) {
		return
	}
	if open > 0 {
		e.cut.Store(true)
		p.conns = append(p.conns, e.cutAll()...)
	}
	p.idle = append(p.idle, e)
	if e.farewell.over = e.selected; !e.selected {
		delete(g.leaving.all, e.addr)
	}
}

// stay takes back that the endpoint leaves.
func (e *endpoint) stay() {
	e.farewell = farewell{}
	e.restore()
}

// restore lets an endpoint be connected to that was cut off.
func (e *endpoint) restore() {
	if !e.cut.Load() {
		return
	}
	e.cut.Store(false)
	if t, ok := e.tracked(); ok {
		t.conns.restore()
	}
}

// restore lets those of a list that is about to be in force be connected to that are not drained by it, and
// returns them.
func (g *group) restore(list []evenkeel.Member[*endpoint]) (back []*endpoint) {
	used := func(m evenkeel.Member[*endpoint]) bool { return m.Weight != drained }
	none := !slices.ContainsFunc(list, used) // then all are
	for _, m := range list {
		if (none || used(m)) && m.Handle.cut.Load() {
			m.Handle.restore()
			back = append(back, m.Handle)
		}
	}
	return back
}

// nextCut returns when somebody has had its time, if that is before next.
func (g *group) nextCut(next time.Time) time.Time {
	if g.leaving.limit <= 0 {
		return next
	}
	for _, e := range g.leaving.all {
		if e.farewell.over {
			continue
		}
		if at := g.leaving.origin.Add(time.Duration(e.farewell.Next())); at.Before(next) {
			next = at
		}
	}
	return next
}

// parts reports whether an endpoint that leaves has a request in flight. mu is not held.
func (g *group) parts() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.leaving.all {
		if g.pool.InFlight(id) > 0 {
			return true
		}
	}
	return false
}

// Drain keeps new requests off the endpoint at addr, written as in [Address], in each target that lists it now;
// those in flight go on, for Config.DrainTimeout at most. Its connections close when the last has ended. It
// returns whether a target lists it, which none does before its first request or [Transport.WaitReady]. It ends
// with [Transport.Resume], or when the endpoint leaves the list.
func (t *Transport) Drain(addr string) bool { return t.drain(addr, true) }

// Resume takes back a [Transport.Drain]. It returns whether a target lists the endpoint.
func (t *Transport) Resume(addr string) bool { return t.drain(addr, false) }

func (t *Transport) drain(addr string, drained bool) (found bool) {
	f := t.running()
	if f == nil {
		return false
	}
	for _, g := range *f.groups.Load() {
		at, err := locate([]Address{{Addr: addr}}, g.target.port())
		if err == nil && g.drain(at[0].String(), drained) {
			found = true
		}
	}
	return found
}

func (g *group) drain(id string, drained bool) (found bool) {
	var p parting
	g.mu.Lock()
	if drained {
		found = g.pool.Drain(id)
	} else {
		if e := g.endpoints[id]; e != nil {
			e.restore() // before a request can choose it
		}
		found = g.pool.Resume(id)
	}
	if found && !g.closed {
		p = g.depart(nil, time.Now())
		g.announce() // it may have to be cut off before the next round
	}
	g.mu.Unlock()
	p.close()
	return found
}
