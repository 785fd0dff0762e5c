package grpcbalancer

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// endpoint is one endpoint of the resolver's list, and its handle in the pool. Those that
// are selected, all without subsets, have a child that owns the connection.
type endpoint struct {
	policy *policy
	key    string

	// state is the child's latest report, never nil. Written under policy.mu, read by
	// picks without it: a pick finds the child's newest picker even through a pool
	// that has not been told yet.
	state atomic.Pointer[balancer.State]

	// Guarded by policy.calls.
	listed resolver.Endpoint // in the last list
	told   resolver.Endpoint // what the child knows of it

	// Written under policy.calls and policy.mu, read under either; never nil.
	seat *seat

	// Guarded by policy.mu.
	dirty bool // in policy.dirty
	held  bool // not to be picked yet, though READY: see hold
}

// seat is one stay of an endpoint among those that are selected, with the child of that
// time, whose ClientConn it is: all but UpdateState and NewSubConn goes on to the policy's own.
type seat struct {
	balancer.ClientConn

	endpoint *endpoint
	child    balancer.Balancer // guarded by policy.calls; nil until it is first told something
	left     bool              // guarded by policy.mu; over: nothing the child says counts

	links sync.Mutex

	// Guarded by links.
	ready     *conn // the endpoint's connection, nil if none is READY
	followers []follower
	lost      []func() // what ends each of them, while there is a connection
	over      bool     // the seat is left: nobody follows anything
}

// A child is connecting until it says something.
var unheard = balancer.State{ConnectivityState: connectivity.Connecting, Picker: queue{}}

// noSeat is that of endpoints that were never selected.
var noSeat = &seat{left: true}

func newEndpoint(p *policy, key string) *endpoint {
	e := &endpoint{policy: p, key: key, seat: noSeat}
	e.state.Store(&unheard)
	return e
}

// UpdateState takes the child's report. It comes from the channel's serializer, from
// pick_first's happy-eyeballs timer, from an RPC that met an idle picker, or inline
// from any call of the child, in all cases under the child's own lock: so nothing
// here may call a child, or wait for somebody who does.
func (c *seat) UpdateState(s balancer.State) {
	if s.ConnectivityState > connectivity.TransientFailure || s.ConnectivityState < 0 || s.Picker == nil {
		return // SHUTDOWN is no report about an endpoint
	}
	c.endpoint.policy.report(c, s)
}

// is reports whether the child's latest report is s. For use under policy.mu.
func (e *endpoint) is(s connectivity.State) bool { return e.state.Load().ConnectivityState == s }
