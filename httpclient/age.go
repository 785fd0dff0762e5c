package httpclient

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"time"
)

const (
	minConnAge = time.Second
	maxConnAge = 30 * 24 * time.Hour
	// A fifth of the age is left to chance, so that connections that were made together do not end together.
	ageJitter = 5
	// One endpoint in so many may be replacing its connections at a time.
	ageShare = 20
	// What making the new ones may take.
	warmTime = 10 * time.Second
	// net/http puts a connection among those that have no request a moment after it is made.
	warmDelay = 10 * time.Millisecond
	// Requests that chose their connections before they were replaced, and have not asked for one yet, are waited for.
	formerLeast = time.Minute
)

// aging is what a Transport says of the age of connections.
type aging struct {
	limit time.Duration // 0: none
	every time.Duration // between two looks at a target
	drain time.Duration // what requests on old connections have left; 0: all that they need
	rand  func() uint64
	conns int // that an endpoint's http.Transport keeps without a request
}

// agingOf returns what t, with that template, says.
func agingOf(t *Transport, tmpl *http.Transport) (a aging, err error) {
	d := t.MaxConnAge
	if d != 0 && (d < minConnAge || d > maxConnAge) {
		return a, fmt.Errorf("httpclient: MaxConnAge is %v, want 0 or %v to %v", d, minConnAge, maxConnAge)
	}
	if tmpl == nil || tmpl.DisableKeepAlives || tmpl.MaxIdleConnsPerHost < 0 {
		return a, nil // a connection has one request
	}
	a = aging{limit: d, every: sweepEvery, drain: t.Config.DrainTimeout, rand: t.rand, conns: tmpl.MaxIdleConnsPerHost}
	if a.rand == nil {
		a.rand = rand.Uint64
	}
	for _, most := range []int{tmpl.MaxIdleConns, tmpl.MaxConnsPerHost} {
		if most > 0 {
			a.conns = min(a.conns, most)
		}
	}
	if p := tmpl.Protocols; p != nil && !p.HTTP1() && !p.HTTP2() {
		a.conns = 1 // without TLS it is HTTP/2, too
	}
	return a, nil
}

// ages is what a target does about the age of its connections. Guarded by the group's mu, but for what is set at
// construction.
type ages struct {
	aging // set at construction
	ctx   context.Context

	looked   time.Time
	underway int // endpoints that are replacing their connections
	replaced uint64
	failures uint64
	lastErr  error // nil after one that was replaced
}

// endpointAge is what an endpoint knows of its connections' ages. Guarded by the group's mu.
type endpointAge struct {
	replacing bool
	notBefore time.Time // after a failure
}

// life draws how old connections may become.
func (a *aging) life() time.Duration {
	span := uint64(a.limit / ageJitter)
	return a.limit - time.Duration(a.rand()%(span+1))
}

// late is an endpoint whose connections are too old.
type late struct {
	e     *endpoint
	by    time.Duration
	conns int // that are to be made
}

// due returns the endpoints whose connections are to be replaced now, those first that are most overdue, and
// notes that they are. The group's mu is held.
func (g *group) due(now time.Time) (list []late) {
	a := &g.ages
	if a.limit == 0 || now.Sub(a.looked) < a.every {
		return nil
	}
	a.looked = now
	var all []late
	selected := 0
	for _, e := range g.endpoints {
		if !e.selected {
			continue
		}
		selected++
		if by, due := g.overdue(e, now); due {
			all = append(all, late{e: e, by: by})
		}
	}
	slices.SortFunc(all, func(x, y late) int { return cmp.Compare(y.by, x.by) })
	for _, l := range all[:min(len(all), max(0, max(1, selected/ageShare)-a.underway))] {
		l.e.age.replacing = true
		old, _ := l.e.tracked()
		l.conns = max(1, min(old.busy, a.conns))
		a.underway++
		list = append(list, l)
	}
	return list
}

// overdue returns by how much an endpoint's oldest connection is too old, if it is. The group's mu is held.
func (g *group) overdue(e *endpoint, now time.Time) (by time.Duration, due bool) {
	l, ok := e.tracked()
	if !ok || e.age.replacing || g.leaving.all[e.addr] != nil || now.Before(e.age.notBefore) {
		return 0, false
	}
	open, used, oldest := l.conns.state()
	// Of a busy second something is remembered for some ten.
	l.busy = min(max(used, l.busy-(l.busy+7)/8), open)
	if open == 0 {
		return 0, false
	}
	if l.lives == 0 {
		l.lives = g.ages.life()
	}
	by = now.Sub(oldest) - l.lives
	return by, by >= 0
}

// renew gives an endpoint new connections: they are made, then they are used, and then the old ones end as their
// requests do. If none can be made, the old ones stay.
func (g *group) renew(e *endpoint, n int) {
	old, _ := e.tracked()
	next := e.newLeaf(e.addr).(*trackedLeaf) // as the old one
	ctx, cancel := context.WithTimeout(g.ages.ctx, warmTime)
	made, err := warm(ctx, next, g.target, n)
	if made > 0 {
		pause(ctx, warmDelay, time.Time{}, nil)
	}
	cancel()
	if g.adopt(e, old, next, made, err) {
		old.CloseIdleConnections()
		return
	}
	next.CloseIdleConnections() // and those that are being made
	for _, c := range next.conns.cut() {
		_ = c.Close() // nobody has used it
	}
}

// adopt puts an endpoint's new connections in the place of the old ones, if they are of use.
func (g *group) adopt(e *endpoint, old, next *trackedLeaf, made int, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := &g.ages
	a.underway--
	e.age.replacing = false
	now := time.Now()
	switch {
	case g.closed || !e.selected || g.leaving.all[e.addr] != nil:
		return false // nobody needs them
	case made == 0:
		a.failures++
		a.lastErr = err
		e.age.notBefore = now.Add(max(a.limit/ageShare, a.every))
		g.hint()
		return false
	}
	a.replaced++
	a.lastErr = nil
	f := former{trackedLeaf: old, since: now}
	if a.drain > 0 {
		f.until = now.Add(a.drain)
	}
	e.making.Lock()
	defer e.making.Unlock()
	e.former = append(e.former, f)
	var l leaf = next
	e.made.Store(&l)
	return true
}

// former are connections that were replaced.
type former struct {
	*trackedLeaf
	since time.Time
	until time.Time // zero: whenever their requests have ended
}

// tidy lets go of former connections that have ended, adds those of an endpoint that may have ended to idle, and those that
// have had their time to p. next is when there will be such.
func (e *endpoint) tidy(now time.Time, p *parting, next time.Time) time.Time {
	e.making.Lock()
	defer e.making.Unlock()
	if len(e.former) == 0 {
		return next
	}
	e.former = slices.DeleteFunc(e.former, func(f former) bool {
		open, _, _ := f.conns.state()
		return open == 0 && now.Sub(f.since) >= formerLeast
	})
	for i := range e.former {
		f := &e.former[i]
		p.former = append(p.former, f.trackedLeaf)
		switch {
		case f.until.IsZero():
		case !now.Before(f.until):
			p.conns = append(p.conns, f.conns.cut()...)
		case f.until.Before(next):
			next = f.until
		}
	}
	return next
}

// tidy does that for all endpoints that may have any. mu is held.
func (g *group) tidy(now time.Time, p *parting, next time.Time) time.Time {
	if g.ages.limit == 0 {
		return next
	}
	for _, e := range g.endpoints {
		next = e.tidy(now, p, next)
	}
	for id, e := range g.leaving.all {
		if g.endpoints[id] != e {
			next = e.tidy(now, p, next)
		}
	}
	return next
}

// tracked returns the endpoint's connections, if it has any and there is a grip on them.
func (e *endpoint) tracked() (*trackedLeaf, bool) {
	l := e.made.Load()
	if l == nil {
		return nil, false
	}
	t, ok := (*l).(*trackedLeaf)
	return t, ok
}

// formers returns those of its connections that were replaced.
func (e *endpoint) formers() []former {
	e.making.Lock()
	defer e.making.Unlock()
	return slices.Clone(e.former)
}

// cutAll refuses new connections and returns all that are open.
func (e *endpoint) cutAll() (open []net.Conn) {
	if t, ok := e.tracked(); ok {
		open = t.conns.cut()
	}
	for _, f := range e.formers() {
		open = append(open, f.conns.cut()...)
	}
	return open
}
