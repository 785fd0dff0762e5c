package main

import (
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// fakeChannel is a channel whose connections come up at once, each by an event of its own, as a real one's do.
type fakeChannel struct {
	balancer.ClientConn
	config serviceconfig.LoadBalancingConfig

	mu        sync.Mutex
	events    []func()
	latest    balancer.State
	published int
	asked     int // calls of Connect
	conns     map[string]*fakeConn
}

func newFakeChannel(c serviceconfig.LoadBalancingConfig) *fakeChannel {
	return &fakeChannel{config: c, conns: map[string]*fakeConn{}}
}

type noMetrics struct {
	stats.UnimplementedMetricsRecorder
}

func (c *fakeChannel) MetricsRecorder() stats.MetricsRecorder               { return noMetrics{} }
func (c *fakeChannel) ResolveNow(resolver.ResolveNowOptions)                {}
func (c *fakeChannel) Target() string                                       { return "fake:///" }
func (c *fakeChannel) UpdateAddresses(balancer.SubConn, []resolver.Address) {}

func (c *fakeChannel) UpdateState(s balancer.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = s
	c.published++
}

// picker is the present one.
func (c *fakeChannel) picker() balancer.Picker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest.Picker
}

func (c *fakeChannel) publications() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.published
}

func (c *fakeChannel) NewSubConn(addrs []resolver.Address, o balancer.NewSubConnOptions) (balancer.SubConn, error) {
	s := &fakeConn{channel: c, listener: o.StateListener}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[addrs[0].Addr] = s
	return s, nil
}

// hand hands a list over.
func (c *fakeChannel) hand(b balancer.Balancer, list []resolver.Endpoint) error {
	return b.UpdateClientConnState(balancer.ClientConnState{ResolverState: resolver.State{Endpoints: list}, BalancerConfig: c.config})
}

func (c *fakeChannel) later(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, f)
}

// pump delivers all events.
func (c *fakeChannel) pump() {
	for {
		c.mu.Lock()
		events := c.events
		c.events = nil
		c.mu.Unlock()
		if len(events) == 0 {
			return
		}
		for _, f := range events {
			f()
		}
	}
}

// fakeConn is one connection.
type fakeConn struct {
	balancer.SubConn
	channel  *fakeChannel
	listener func(balancer.SubConnState)
}

func (s *fakeConn) Shutdown() {}

func (s *fakeConn) Connect() {
	s.channel.mu.Lock()
	s.channel.asked++
	s.channel.mu.Unlock()
	s.becomes(connectivity.Connecting)
	s.becomes(connectivity.Ready)
}

func (s *fakeConn) becomes(state connectivity.State) {
	s.channel.later(func() { s.listener(balancer.SubConnState{ConnectivityState: state}) })
}

func (s *fakeConn) RegisterHealthListener(f func(balancer.SubConnState)) {
	s.channel.later(func() { f(balancer.SubConnState{ConnectivityState: connectivity.Ready}) })
}
