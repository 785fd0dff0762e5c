package grpcbalancer

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/probe"
)

// policy is the balancer of one channel, or of one part of a channel under a parent.
//
// Three locks, taken in this order and never in another:
//
//	calls   one call into the children at a time; held over them
//	(the child's own lock)
//	links   of each seat, its connection and who follows that; held over them
//	(the connection's own lock; those who follow end under it)
//	mu      the states and what is published; held over cc.UpdateState, so that
//	        publications cannot overtake each other
//	(the locks of the channel, or of a parent)
//
// The lock of commons is taken under calls alone, and held over the memory's and the pool's, which are taken last.
//
// Children report inline, under their lock, while calls is held: reports take mu
// alone. No method of a child runs under links or mu. A pick takes none.
type policy struct {
	// Set at construction.
	cc       balancer.ClientConn
	opts     balancer.BuildOptions
	name     string
	base     evenkeel.Config // in force where nothing else is said
	random   func() uint64
	newChild childBuilderFunc
	asksFor  func(evenkeel.Config) *outOfBand // outOfBandFor, or the tests' own
	also     []follower                       // the tests' own
	warnings warnings
	lookout  lookout
	meter    meter

	// What calls are sent by, nil if the policy in force uses no keys. Written under calls,
	// read by picks.
	keys atomic.Pointer[affinity]

	// waits says that calls wait because the pool had nobody for them, though endpoints are READY.
	waits atomic.Bool

	// used is who wants to know of calls, nil if nobody does. Written under calls, read by picks.
	used atomic.Pointer[probe.Runner]

	// refused is what was counted of the pool's refusals; nil before it is made. Written under calls.
	refused atomic.Pointer[refusals]

	// reads says that the policy in force goes by the load reports of calls. Written under calls, read
	// when calls end.
	reads atomic.Bool

	calls sync.Mutex

	// Guarded by calls.
	listed     map[string]*endpoint // all endpoints of the last list
	resolved   resolver.State       // what children know of it, without lists
	generation uint64               // of the pool's selection that has children
	checks     *checks              // nil: none
	terms      uint64               // of checks so far
	reports    *outOfBand           // nil: nobody asks for them
	followers  []follower           // of connections; never changed in place
	keepsake   *keepsake            // what the pool is kept with; nil before it is made
	told       *evenkeel.Config     // the config of the last list that had endpoints; nil before it

	// Written under both locks, read under either.
	pool       *evenkeel.Pool[*endpoint] // nil before the first list
	children   map[string]*endpoint      // those selected; nil before the first list
	subsetting bool                      // sweeps may select others
	closed     bool

	mu sync.Mutex

	// Guarded by mu.
	list        []*endpoint // those selected in order; never changed in place
	counts      [connectivity.Shutdown]int
	dirty       []*endpoint // that may be READY in one of state and pool, and not in the other
	held        int         // endpoints that are READY and not to be picked yet
	term        uint64      // of the checks in force; 0: none are
	shown       connectivity.State
	hasShown    bool
	updating    bool // children are being called: reports wait for its end
	owed        bool // something is to be published at that end
	resolverErr error
	idle        []*endpoint // to be told to connect
	connecting  bool        // connectIdle runs
	window      *time.Timer // nil until needed
	waiting     bool        // the window is open
	sweeper     *time.Timer // nil before the first endpoint
	swept       bool        // at least once
	news        uint64      // reasons since then for another one at once
}

// errNoEndpoints is what calls get while the resolver's list has nothing in it.
var errNoEndpoints = errors.New("the name resolver's list has no endpoint with an address")

// UpdateClientConnState takes a list and a config. Endpoints that stay keep their
// connection and all that was learnt about them; those whose addresses and
// attributes are unchanged are not even called. A list without endpoints closes all
// children and is answered with ErrBadResolverState, so that the channel resolves
// again; anything else that is wrong changes nothing.
func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	p.calls.Lock()
	defer p.calls.Unlock()
	if p.closed {
		return nil
	}
	next := distinct(s.ResolverState.Endpoints)
	if err := p.updatePool(s.BalancerConfig, next); err != nil {
		p.refuse(err)
		return fmt.Errorf("%w: %w", balancer.ErrBadResolverState, err)
	}
	all := p.resolved.Attributes != s.ResolverState.Attributes
	p.resolved.Attributes = s.ResolverState.Attributes
	left, err := p.updateChildren(all)
	closeAll(left)
	if len(next) == 0 {
		p.endUpdate(fmt.Errorf("%s%w", p.whose(), errNoEndpoints))
		return balancer.ErrBadResolverState
	}
	p.endUpdate(nil)
	return err
}

// takeWarnings takes over the warnings that a pool had before this policy was told of them.
func (p *policy) takeWarnings(pool *evenkeel.Pool[*endpoint]) {
	for _, text := range pool.Stats().Warnings {
		p.warnings.addOnce(text)
	}
}

// updatePool gives the pool the new config and members: the endpoints there are, and new
// ones. On an error nothing changed.
func (p *policy) updatePool(parsed loadBalancingConfig, next []keyed) error {
	config, err := configOf(parsed, p.base)
	if err != nil {
		return err
	}
	was := p.keepsake
	listed := make(map[string]*endpoint, len(next))
	members := make([]evenkeel.Member[*endpoint], len(next))
	for i, k := range next {
		e := p.listed[k.key]
		if e == nil {
			e = newEndpoint(p, k.key)
		}
		listed[k.key] = e
		members[i] = evenkeel.Member[*endpoint]{
			Endpoint: evenkeel.Endpoint{ID: k.key, Weight: weightOf(k.endpoint)},
			Handle:   e,
			NotReady: true, // until its child is heard of; others keep their state
		}
	}
	keys := p.keys.Swap(affinityOf(config)) // before the policy that may need them
	pool, err := p.replace(config, next, members)
	if err != nil {
		p.keys.Store(keys)
		return err
	}
	if p.keepsake != was {
		p.takeWarnings(pool)
	}
	for _, k := range next {
		if e := listed[k.key]; !sameForChild(e.listed, k.endpoint) {
			e.listed = owned(k.endpoint)
		}
	}
	p.listed = listed
	p.usePool(pool, config.Subset != nil)
	if c, ok := parsed.(*lbConfig); ok {
		for _, path := range c.unknown {
			p.warnings.addOnce("config: " + path + " is not a known field, and has no effect")
		}
	}
	p.reads.Store(config.UsesReports())
	p.reports = p.asksFor(config)
	if err := p.setHealth(config.Health); err != nil {
		return err
	}
	p.refollow()
	return nil
}

// replace gives the pool, which is made if need be, this config and list, and returns it. Called under calls.
func (p *policy) replace(config evenkeel.Config, next []keyed, members []evenkeel.Member[*endpoint]) (pool *evenkeel.Pool[*endpoint], err error) {
	if p.keepsake != nil && p.keepsake.common != nil && p.told == nil && len(next) > 0 {
		p.part() // there was nothing yet to tell by with whom to share
	}
	for {
		if p.keepsake == nil {
			k, err := p.recall(config, next)
			if err != nil {
				return nil, err
			}
			k.tell.Store(&p.warnings)
			p.keepsake = k
			p.refused.Store(k.refused)
		}
		pool = p.keepsake.pool
		if p.keepsake.common == nil {
			err = pool.Replace(config, members)
		} else {
			err = commons.replace(p.keepsake, p.told, config, members)
		}
		if err != errApart {
			break
		}
		p.part()
	}
	if err == nil && len(next) > 0 {
		p.told = &config
	}
	return pool, err
}

// part leaves the pool that is shared. What checks and reports have said is said anew to the next one.
// Called under calls.
func (p *policy) part() {
	_ = p.setHealth(nil) // which cannot fail
	p.reports = nil
	p.refollow()
	p.leave()
	p.keepsake, p.told = nil, nil
}

// usePool makes this the pool in use. One that takes the place of another is told of all that are READY. Called
// under calls.
func (p *policy) usePool(pool *evenkeel.Pool[*endpoint], subsetting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pool != nil && p.pool != pool {
		for _, e := range p.children {
			if e.is(connectivity.Ready) {
				p.touch(e)
			}
		}
		p.owed = true
	}
	p.pool, p.subsetting = pool, subsetting
}

// updateChildren gives those that the pool has selected children, and tells each about its
// endpoint if it does not know: all of them if the resolver's attributes changed. It begins at
// a random one: if all clients went through the list from its head, its head would get all
// their first requests. It returns the seats of those that are no longer selected and the
// first error, and goes on after that. The caller ends the update.
func (p *policy) updateChildren(all bool) (left []*seat, first error) {
	p.generation = p.pool.Generation()
	endpoints := p.pool.Selected()
	left = p.beginUpdate(endpoints)
	p.check(endpoints)
	for i, n := p.start(len(endpoints)), len(endpoints); n > 0; n-- {
		e := endpoints[i]
		if i++; i == len(endpoints) {
			i = 0
		}
		if e.seat.child == nil {
			e.seat.child = p.newChild(e.seat, p.opts)
		} else if !all && sameForChild(e.told, e.listed) {
			continue
		}
		e.told = e.listed
		if err := e.seat.child.UpdateClientConnState(childState(p.resolved, e.told)); err != nil && first == nil {
			first = err
		}
	}
	return left, first
}

// closeAll ends the children of these seats; requests on their connections go on.
func closeAll(left []*seat) {
	for _, c := range left {
		c.end()
		c.child.Close()
	}
}

func (p *policy) start(n int) int {
	if n == 0 {
		return 0
	}
	return int(p.random() % uint64(n))
}

// ResolverError keeps what there is. Children hear of it, and one that fails names
// the error from then on.
func (p *policy) ResolverError(err error) {
	p.calls.Lock()
	defer p.calls.Unlock()
	if p.closed {
		return
	}
	p.mu.Lock()
	p.updating = true
	p.mu.Unlock()
	for _, e := range p.children {
		e.seat.child.ResolverError(err)
	}
	p.endUpdate(resolverError{p.whose(), err.Error()})
}

// whose is what error texts begin with: a process has many channels.
func (p *policy) whose() string {
	if target := p.target(); target != "" {
		return "evenkeel: " + target + ": "
	}
	return "evenkeel: " // a parent's omission
}

// UpdateSubConnState is never called: the children listen to their connections.
func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle connects the children that are idle.
func (p *policy) ExitIdle() {
	p.calls.Lock()
	defer p.calls.Unlock()
	if p.closed {
		return
	}
	for _, e := range p.children {
		if e.is(connectivity.Idle) {
			e.seat.child.ExitIdle()
		}
	}
}

// Close ends the children and the timers. Whatever is called or reported afterwards
// does nothing, and a request that still finds an old picker waits for the new one.
func (p *policy) Close() {
	p.calls.Lock()
	defer p.calls.Unlock()
	if p.closed {
		return
	}
	p.mu.Lock()
	p.closed = true
	for _, t := range []*time.Timer{p.window, p.sweeper} {
		if t != nil {
			t.Stop()
		}
	}
	p.mu.Unlock()
	for _, e := range p.children {
		e.seat.end()
		e.seat.child.Close()
	}
	if p.checks != nil {
		p.checks.runner.Stop() // without waiting: Close must not take long
	}
	if p.keepsake != nil {
		p.leave()
	}
	p.meter.close()
	live.remove(p)
}
