package grpcbalancer

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// endpoint is one member with the child that owns its connection. It is the
// ClientConn of that child: all but UpdateState goes on to the policy's own.
type endpoint struct {
	balancer.ClientConn

	policy *policy
	key    string

	// state is the child's latest report, never nil. Written under policy.mu, read by
	// picks without it: a pick finds the child's newest picker even through a pool
	// that has not been told yet.
	state atomic.Pointer[balancer.State]

	// Guarded by policy.calls.
	child balancer.Balancer
	told  resolver.Endpoint // what the child knows of its endpoint

	// Guarded by policy.mu.
	left  bool // no member any more: nothing it says counts
	dirty bool // in policy.dirty
}

// A child is connecting until it says something.
var unheard = balancer.State{ConnectivityState: connectivity.Connecting, Picker: queue{}}

func newEndpoint(p *policy, key string) *endpoint {
	e := &endpoint{ClientConn: p.cc, policy: p, key: key}
	e.state.Store(&unheard)
	return e
}

// UpdateState takes the child's report. It comes from the channel's serializer, from
// pick_first's happy-eyeballs timer, from an RPC that met an idle picker, or inline
// from any call of the child, in all cases under the child's own lock: so nothing
// here may call a child, or wait for somebody who does.
func (e *endpoint) UpdateState(s balancer.State) {
	if s.ConnectivityState > connectivity.TransientFailure || s.ConnectivityState < 0 || s.Picker == nil {
		return // SHUTDOWN is no report about an endpoint
	}
	e.policy.report(e, s)
}

// is reports whether the child's latest report is s. For use under policy.mu.
func (e *endpoint) is(s connectivity.State) bool { return e.state.Load().ConnectivityState == s }
