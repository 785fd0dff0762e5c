package grpcbalancer

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/evenkeel/evenkeel"
)

// ChannelStats is a picture of one policy, for people and tests: that of a channel, or of a part of one under a
// parent, as under xDS each locality has its own.
type ChannelStats struct {
	// Target is the channel's, "" where a parent policy does not tell it.
	Target string
	// Policy is the policy's name.
	Policy string
	// State is what the policy told the channel last; IDLE before it told anything.
	State connectivity.State
	// Ready, Connecting, Idle and Failing are how many endpoints' connections are in that state; Failing are
	// those in TRANSIENT_FAILURE, by a failed connection, gRPC's health checks or its outlier detection.
	Ready, Connecting, Idle, Failing int
	// Connections are those of the endpoints in the order of the list: all of it, or the
	// channel's subset.
	Connections []ConnectionStats
	// Resolver is what is wrong with the name resolver or its list; nil if nothing is.
	Resolver error
	// Pool is what is known of the endpoints: their shares, latencies, failures, ejections. With [Share] the counts in it are
	// those of all channels that share.
	Pool evenkeel.Stats
	// Warnings are what is allowed and may not be what is meant, since the policy began, the first 64:
	// fields of the config that are not known, servers that do not answer health checks, and those of
	// Pool.
	Warnings []string
}

// ConnectionStats is a picture of the connection of one endpoint.
type ConnectionStats struct {
	// Endpoint is the endpoint's identity, its addresses, as in Pool.
	Endpoint string
	// State is that of its pick_first.
	State connectivity.State
	// Err says why it is in TRANSIENT_FAILURE; nil otherwise.
	Err error
}

// Stats returns pictures of all policies of this package that the process has now, in the order in which they
// were made. Each channel whose service config names one has one, unless it is idle; a target with several
// channels is there several times. It takes locks that picks do not, and O(n) for the endpoints of all.
func Stats() []ChannelStats {
	all := live.policies()
	list := make([]ChannelStats, 0, len(all))
	for _, p := range all {
		if s, open := p.stats(); open {
			list = append(list, s)
		}
	}
	return list
}

// live are the policies of the process that are not closed.
var live registry

type registry struct {
	mu    sync.Mutex
	next  uint64
	known map[*policy]uint64 // with the order in which they came
}

func (r *registry) add(p *policy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[*policy]uint64{}
	}
	r.next++
	r.known[p] = r.next
}

func (r *registry) remove(p *policy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, p)
}

func (r *registry) policies() []*policy {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Keys(r.known), func(a, b *policy) int { return cmp.Compare(r.known[a], r.known[b]) })
}

// target is the channel's as it is shown, "" if a parent omits it.
func (p *policy) target() string {
	if p.opts.Target.URL.Scheme == "" {
		return ""
	}
	return p.opts.Target.String()
}

// stats returns a picture of the policy; false if it is closed.
func (p *policy) stats() (s ChannelStats, open bool) {
	p.mu.Lock()
	pool, closed := p.pool, p.closed
	s = ChannelStats{
		Target: p.target(), Policy: p.name, State: connectivity.Idle,
		Ready: p.counts[connectivity.Ready], Connecting: p.counts[connectivity.Connecting],
		Idle: p.counts[connectivity.Idle], Failing: p.counts[connectivity.TransientFailure],
		Resolver: p.resolverErr,
	}
	if p.hasShown {
		s.State = p.shown
	}
	list := p.list // never changed in place
	p.mu.Unlock()
	if closed {
		return ChannelStats{}, false
	}
	s.Connections = make([]ConnectionStats, len(list))
	for i, e := range list {
		state := e.state.Load()
		s.Connections[i] = ConnectionStats{Endpoint: e.key, State: state.ConnectivityState, Err: errorOf(state)}
	}
	if pool != nil {
		s.Pool = pool.Stats()
	}
	s.Warnings = p.warnings.list()
	return s, true
}

// errorOf is what a child in TRANSIENT_FAILURE says of that, nil in other states. Others may not be asked: an
// idle one would connect.
func errorOf(s *balancer.State) error {
	if s.ConnectivityState != connectivity.TransientFailure {
		return nil
	}
	_, err := s.Picker.Pick(balancer.PickInfo{})
	return err
}
