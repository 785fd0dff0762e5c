package httpclient

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/limit"
)

// group is one target with its endpoints. It is the Sink of the target's Watch.
type group struct {
	target  Target
	pool    *evenkeel.Pool[*endpoint]
	keys    *affinity // nil: not needed
	checks  *checks   // nil: there are none
	reports reporting
	newLeaf func(addr string) leaf
	hints   chan struct{}      // to the resolver; holds one
	news    chan<- *group      // to the sweeper
	cancel  context.CancelFunc // ends Watch
	settled chan struct{}      // closed when there is a first list, a first error, or no group any more

	// Of retries and hedges, set at construction.
	rules    *rules
	hedge    *hedging
	budget   *limit.Budget
	origin   time.Time // of the budget's instants
	classify func(*http.Response, error) evenkeel.Outcome
	observer Observer
	heals    bool // bodies that callers drop

	pace     pace
	distress atomic.Bool  // requests in flight are limited; only if there is hedging
	calls    atomic.Int64 // that wait to be sent again
	counts   counts

	listed  atomic.Bool  // there has been a list; requests need not wait
	used    atomic.Bool  // there was a request since the last sweep
	waiting atomic.Int64 // requests that wait for the first list

	idleSince time.Time // guarded by the fleet's mu
	swept     bool      // at least once; the sweeper's own

	mu        sync.Mutex
	closed    bool
	endpoints map[string]*endpoint // the current list's, by ID
	leaving   leaving
	ages      ages
	// generation is that of the pool's selection that is marked in endpoints.
	generation uint64
	updates    uint64
	failures   uint64
	lastErr    error // nil after a good list
}

// counts are what Snapshot shows of retries and hedges, and of bodies that were dropped.
type counts struct{ retries, hedges, hedgesWon, healed atomic.Uint64 }

// Update makes list the group's endpoints.
func (g *group) Update(list []Address) error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return ErrClosed
	}
	unused, err := g.replace(list)
	var p parting
	if err != nil {
		g.failed(err)
	} else {
		g.updates++
		g.lastErr = nil
		p = g.depart(unused, time.Now())
		g.listed.Store(true)
		g.settle()
		g.announce()
	}
	g.mu.Unlock()
	p.close()
	return err
}

// replace puts list in force and returns the endpoints that are no longer used, which leave.
// Those that stay keep their connections. On an error nothing changes. mu is
// held.
func (g *group) replace(list []Address) (unused []*endpoint, err error) {
	locations, err := locate(list, g.target.port())
	if err != nil {
		return nil, err
	}
	members := make([]evenkeel.Member[*endpoint], len(list))
	endpoints := make(map[string]*endpoint, len(list))
	hold := g.checks.holds(locations)
	for i, l := range locations {
		id := l.String()
		e := g.endpoints[id]
		if e == nil {
			e = g.endpoint(id)
			members[i].NotReady = hold
		}
		endpoints[id] = e
		members[i].ID, members[i].Weight, members[i].Handle = id, list[i].Weight, e
	}
	back := g.restore(members) // before a request can choose them
	if err := g.pool.Update(members); err != nil {
		for _, e := range back {
			e.cut.Store(true)
			e.cutAll() // nothing is open: nobody was sent there
		}
		return nil, err
	}
	for id, e := range g.endpoints {
		if endpoints[id] == nil {
			e.leave()
			unused = append(unused, e)
		}
	}
	g.endpoints = endpoints
	unused = append(unused, g.reselect()...)
	if hold {
		g.checks.release(members)
	}
	return unused, nil
}

// reselect takes note of whom the pool has selected, and returns those that are listed and no
// longer selected, which leave. mu is held.
func (g *group) reselect() (left []*endpoint) {
	g.generation = g.pool.Generation()
	now := g.pool.Selected()
	g.checks.update(now)
	if len(now) == len(g.endpoints) { // everybody, as without subsets
		for _, e := range now {
			e.join()
		}
		return nil
	}
	selected := make(map[*endpoint]bool, len(now))
	for _, e := range now {
		selected[e] = true
		e.join()
	}
	for _, e := range g.endpoints {
		if e.selected && !selected[e] {
			e.leave()
			left = append(left, e)
		}
	}
	return left
}

// sweep does the pool's housekeeping, and returns when it is due next.
func (g *group) sweep(now time.Time) (next time.Time) {
	next = g.pool.Sweep(now)
	g.mu.Lock()
	g.sweepPace(now)
	var p parting
	var old []late
	if !g.closed {
		var left []*endpoint
		if g.pool.Generation() != g.generation {
			left = g.reselect()
		}
		p = g.depart(left, now)
		next = g.tidy(now, &p, g.nextCut(next))
		old = g.due(now)
	}
	g.mu.Unlock()
	p.close()
	for _, l := range old {
		go g.renew(l.e, l.conns)
	}
	return next
}

// sweepPace works out what retries and hedges go by. mu is held.
func (g *group) sweepPace(now time.Time) {
	if g.hedge == nil {
		g.pace.sweep(now, defaultQuantile)
		return
	}
	g.pace.sweep(now, g.hedge.quantile)
	g.distress.Store(g.pool.Stats().Limit > 0)
}

// Error takes note of a failed lookup.
func (g *group) Error(err error) {
	if err == nil {
		err = errors.New("httpclient: the resolver reported an error without saying which")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.failed(err)
	}
}

func (g *group) failed(err error) {
	g.failures++
	g.lastErr = err
	g.settle()
}

// settle lets the requests go on that wait for the first word. mu is held.
func (g *group) settle() {
	select {
	case <-g.settled:
	default:
		close(g.settled)
	}
}

// announce tells the sweeper of a new list. One that it has no time for is found at its
// next round over all targets.
func (g *group) announce() {
	select {
	case g.news <- g:
	default:
	}
}

// Refresh returns the channel of hints.
func (g *group) Refresh() <-chan struct{} { return g.hints }

// hint tells the resolver that connections fail.
func (g *group) hint() {
	select {
	case g.hints <- struct{}{}:
	default: // it has not read the last one yet
	}
}

// watch runs the resolver until ctx is done or it has no more to say.
func (g *group) watch(ctx context.Context, r Resolver) {
	var updates uint64
	for failures := 0; ; failures++ {
		err := r.Watch(ctx, g.target, g)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if !g.listed.Load() {
				g.Error(errNoList)
			}
			return
		}
		g.Error(err)
		g.mu.Lock()
		if g.updates != updates { // it worked in between
			updates, failures = g.updates, 0
		}
		g.mu.Unlock()
		if !pause(ctx, backoff(failures), time.Time{}, nil) {
			return
		}
	}
}

// close ends the group: its Watch, new requests, and the connections as soon as they
// have no request.
func (g *group) close() {
	g.cancel()
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.closed = true
	g.pool.Close()
	g.checks.stop()
	removed := g.endpoints
	for _, e := range g.leaving.all {
		removed[e.addr] = e
	}
	clear(g.leaving.all)
	g.endpoints = nil
	g.settle()
	g.mu.Unlock()
	for _, e := range removed {
		e.retire()
	}
}

// busy reports whether a request is in flight on an endpoint of the list, or waits for
// one.
func (g *group) busy() bool {
	if g.waiting.Load() > 0 || g.parts() {
		return true
	}
	for _, e := range g.pool.Stats().Endpoints {
		if e.InFlight > 0 {
			return true
		}
	}
	return false
}

// closeIdle closes the connections without a request. New ones are made as needed.
func (g *group) closeIdle() {
	g.mu.Lock()
	leaves := make([]*endpoint, 0, len(g.endpoints))
	for _, e := range g.endpoints {
		leaves = append(leaves, e)
	}
	g.mu.Unlock()
	for _, e := range leaves {
		e.closeIdle()
	}
}
