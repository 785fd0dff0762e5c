package grpcbalancer

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
)

// oracle knows what a policy has to do, from what its children said and what it was told, in the plainest way. It sits
// between the policy and its children, which are gRPC's pick_first, and finds out when one is called as it must not be.
type oracle struct {
	calling atomic.Int32 // calls of children that are under way

	mu sync.Mutex

	// Guarded by mu.
	wrong    []string
	children map[string]*heard // those that are not closed, by key
	links    []*link           // connections ever made
	closed   bool              // the policy

	// What the policy was told last, and took. Of the test's goroutine.
	members  map[string]float64 // key → weight
	config   evenkeel.Config
	resolver string         // what is wrong with the resolver
	told     bool           // there was anything
	open     map[string]int // attempts by key
}

// heard is a child that is overheard.
type heard struct {
	balancer.Balancer

	oracle *oracle
	key    string

	// Guarded by oracle.mu.
	said   connectivity.State
	err    string // what its picker says in TRANSIENT_FAILURE
	told   bool
	closed bool
}

// heardCC is its ClientConn.
type heardCC struct {
	balancer.ClientConn
	child *heard
}

// link is a connection of a child.
type link struct {
	*fakeConn
	child *heard
	is    connectivity.State // the channel's view, by the order in which events were queued
	asked int
}

func newOracle() *oracle {
	return &oracle{children: map[string]*heard{}, members: map[string]float64{}, open: map[string]int{}}
}

func (o *oracle) fault(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faultLocked(format, args...)
}

func (o *oracle) faultLocked(format string, args ...any) {
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// faults returns what was found, and takes it away.
func (o *oracle) faults() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.wrong) == 0 {
		return nil
	}
	err := errors.New(strings.Join(o.wrong, "\n"))
	o.wrong = nil
	return err
}

// newChild is a childBuilderFunc.
func (o *oracle) newChild(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	h := &heard{oracle: o, key: cc.(*seat).endpoint.key, said: connectivity.Connecting}
	h.Balancer = newChild(&heardCC{cc, h}, opts)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.children[h.key] != nil || o.closed {
		o.faultLocked("%s: a second child, or one after Close", h.key)
	}
	o.children[h.key] = h
	return h
}

// enter is called before a method of the child, and what it returns after it.
func (h *heard) enter(method string) (leave func()) {
	if h.oracle.calling.Add(1) != 1 {
		h.oracle.fault("%s: %s while another child is called", h.key, method)
	}
	h.oracle.mu.Lock()
	if h.closed || !h.told && method != "UpdateClientConnState" {
		h.oracle.faultLocked("%s: %s of a child that is closed, or was told nothing", h.key, method)
	}
	h.told = true
	h.oracle.mu.Unlock()
	if stack := callers(); strings.Contains(stack, "(*policy).report") || strings.Contains(stack, "(*policy).publish") {
		h.oracle.fault("%s: %s from within a report:\n%s", h.key, method, stack)
	}
	return func() { h.oracle.calling.Add(-1) }
}

func (h *heard) UpdateClientConnState(s balancer.ClientConnState) error {
	defer h.enter("UpdateClientConnState")()
	if n := len(s.ResolverState.Endpoints); n != 1 || keyOf(s.ResolverState.Endpoints[0]) != h.key {
		h.oracle.fault("%s is told of %d endpoints, %v", h.key, n, s.ResolverState.Endpoints)
	}
	return h.Balancer.UpdateClientConnState(s)
}

func (h *heard) ResolverError(err error) {
	defer h.enter("ResolverError")()
	h.Balancer.ResolverError(err)
}

func (h *heard) ExitIdle() {
	defer h.enter("ExitIdle")()
	h.Balancer.ExitIdle()
}

func (h *heard) Close() {
	defer h.enter("Close")()
	h.oracle.mu.Lock()
	h.closed = true
	if h.oracle.children[h.key] == h {
		delete(h.oracle.children, h.key)
	}
	h.oracle.mu.Unlock()
	h.Balancer.Close()
}

// UpdateState overhears what the child says. Who leaves READY does so for all at once.
func (c *heardCC) UpdateState(s balancer.State) {
	o, h, p := c.child.oracle, c.child, c.ClientConn.(*seat).endpoint.policy
	before := p.cc.(*fakeChannel).publications()
	o.mu.Lock()
	left := h.said == connectivity.Ready && s.ConnectivityState != connectivity.Ready && !h.closed && !o.closed
	h.said, h.err = s.ConnectivityState, ""
	if err := errorOf(&s); err != nil {
		h.err = err.Error()
	}
	o.mu.Unlock()
	c.ClientConn.UpdateState(s)
	if !left {
		return
	}
	p.mu.Lock()
	updating := p.updating
	p.mu.Unlock()
	if !updating && p.cc.(*fakeChannel).publications() == before {
		o.fault("%s left READY, and calls that were sent there wait", h.key)
	}
}

// NewSubConn notes the connection.
func (c *heardCC) NewSubConn(addrs []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	//lint:ignore SA1019 it is what the child called
	sc, err := c.ClientConn.NewSubConn(addrs, opts)
	o := c.child.oracle
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || c.child.closed {
		o.faultLocked("%s: a connection after Close", c.child.key)
	}
	o.links = append(o.links, &link{fakeConn: sc.(*fakeConn), child: c.child, is: connectivity.Idle})
	return sc, err
}

// published is called with each state, under the policy's lock: at that very moment it is right.
func (o *oracle) published(s balancer.State) {
	o.mu.Lock()
	closed := o.closed
	o.mu.Unlock()
	if closed {
		o.fault("%v is published after Close", s.ConnectivityState)
	}
	if s.Picker == nil {
		o.fault("%v without a picker", s.ConnectivityState)
		return
	}
	if key, done := o.finds(s.Picker); done != nil {
		done(phantom)
		if s.ConnectivityState != connectivity.Ready {
			o.fault("%s is picked in %v", key, s.ConnectivityState)
		}
	}
}

// finds picks, and whom it finds has to be READY.
func (o *oracle) finds(p balancer.Picker) (key string, done func(balancer.DoneInfo)) {
	result, err := p.Pick(balancer.PickInfo{FullMethodName: "/s/m"})
	if err != nil {
		if _, isStatus := status.FromError(err); isStatus {
			o.fault("a pick ends with the status %v", err)
		}
		return "", nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.links, func(l *link) bool { return balancer.SubConn(l.fakeConn) == result.SubConn })
	if i < 0 {
		o.faultLocked("picked a connection that is none of the channel's")
		return "", nil
	}
	l := o.links[i]
	if l.child.closed || l.child.said != connectivity.Ready {
		o.faultLocked("picked %s, which is %v (closed: %v)", l.child.key, l.child.said, l.child.closed)
	}
	return l.child.key, result.Done
}

// live returns the children that are not closed with what they say.
func (o *oracle) live() map[string]connectivity.State {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make(map[string]connectivity.State, len(o.children))
	for key, h := range o.children {
		all[key] = h.said
	}
	return all
}

// whole is the state of these together.
func whole(all map[string]connectivity.State) connectivity.State {
	for _, s := range []connectivity.State{connectivity.Ready, connectivity.Connecting, connectivity.Idle} {
		if slices.Contains(slices.Collect(maps.Values(all)), s) {
			return s
		}
	}
	return connectivity.TransientFailure
}

// compare compares all that a policy shows, when nothing moves any more, with what it has to be.
func (o *oracle) compare(r *rig) {
	live := o.live()
	selected := slices.Sorted(maps.Keys(o.members))
	if o.config.Subset != nil && r.policy.pool != nil {
		selected = selected[:0]
		for _, e := range r.policy.pool.Selected() {
			selected = append(selected, e.key)
		}
		slices.Sort(selected)
	}
	if got := slices.Sorted(maps.Keys(live)); !slices.Equal(got, selected) {
		o.fault("children for %v, want %v", got, selected)
	}
	for key, s := range live {
		if s == connectivity.Idle {
			o.fault("%s stays IDLE", key)
		}
	}
	o.compareLinks(r)
	if want := whole(live); o.told && r.state() != want {
		o.fault("the channel shows %v, want %v of %v", r.state(), want, live)
	}
	if len(o.members) > 0 && !reflect.DeepEqual(poolsConfig(r.policy.pool), o.config) {
		o.fault("the pool has %+v, want %+v", poolsConfig(r.policy.pool), o.config)
	}
	if r.policy.pool != nil {
		o.compareEndpoints(r, live)
	}
	if o.told {
		o.comparePicks(r, live)
	}
}

// compareLinks finds connections without a child, and those that are READY whose health nobody listens to: gRPC's
// health checks and its outlier detection would do nothing.
func (o *oracle) compareLinks(r *rig) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.links {
		if !l.shut && (l.child.closed || l.is == connectivity.Ready && l.asked == l.fakeConn.asked && l.health == nil) {
			o.faultLocked("the connection to %s is %v, nobody listens: %v, and its child is closed: %v", l.addr, l.is, l.health == nil, l.child.closed)
		}
	}
}

// compareEndpoints compares the pool's endpoints: their weights, states and attempts.
func (o *oracle) compareEndpoints(r *rig, live map[string]connectivity.State) {
	stats := statsOf(r.policy)
	if len(stats) != len(live) {
		o.fault("%d endpoints in the pool, want %d", len(stats), len(live))
	}
	for key, s := range stats {
		if s.Weight != o.members[key] {
			o.fault("%s has weight %v, want %v", key, s.Weight, o.members[key])
		}
		if want := live[key] == connectivity.Ready; (s.State == evenkeel.Ready) != want {
			o.fault("%s is %v in the pool and %v by its child", key, s.State, live[key])
		}
		if s.InFlight != int64(o.open[key]) || s.Leaked != 0 {
			o.fault("%s has %d in flight, %d leaked, want %d", key, s.InFlight, s.Leaked, o.open[key])
		}
	}
}

// comparePicks picks often enough to meet everybody.
func (o *oracle) comparePicks(r *rig, live map[string]connectivity.State) {
	p, state := r.latest().Picker, r.state()
	got := map[string]bool{}
	for range 3 * (len(live) + 1) {
		key, done := o.finds(p)
		if done == nil {
			o.compareError(p, state)
			continue
		}
		done(phantom)
		got[key] = true
	}
	n := 0
	for _, s := range live {
		if s == connectivity.Ready {
			n++
		}
	}
	// Others than round robin may leave somebody out, and so may that who asked to be left alone.
	all := o.config.Policy == roundRobin && o.config.SlowStart == nil
	if r.policy.pool != nil {
		for _, s := range statsOf(r.policy) {
			all = all && s.Avoided == 0
		}
	}
	if all && len(got) != n || n > 0 && len(got) == 0 {
		o.fault("%v are picked, want %d READY ones of %v", got, n, live)
	}
}

// compareError compares what calls are told that find nobody.
func (o *oracle) compareError(p balancer.Picker, state connectivity.State) {
	_, err := p.Pick(balancer.PickInfo{})
	if state != connectivity.TransientFailure {
		if !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			o.fault("a pick in %v: %v, want to wait", state, err)
		}
		return
	}
	if err == nil || o.resolver != "" && !strings.Contains(err.Error(), o.resolver) {
		o.fault("a pick in failure: %v, want %q in it", err, o.resolver)
		return
	}
	if o.resolver == "" && strings.Contains(err.Error(), fakeTarget.String()) {
		o.fault("a pick in failure: %v, though the resolver is well", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.children {
		if h.err != "" && strings.Contains(err.Error(), h.err) {
			return
		}
	}
	if len(o.children) > 0 {
		o.faultLocked("a pick in failure: %v, want what a child says", err)
	}
}
