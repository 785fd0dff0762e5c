package grpcbalancer

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
)

// fakeChannel stands in for the channel. Like the real one it delivers what happens
// to connections one event after the other, from outside of the policy's calls; a
// test pumps them. Anything that it does not implement ends the test.
type fakeChannel struct {
	balancer.ClientConn

	// onPublish is called for each state, with the lock of the policy held.
	onPublish func(balancer.State)
	// onConnect is called when a connection is asked for.
	onConnect func()
	// dial says how a connection attempt ends; nil succeeds.
	dial func(addr string) error
	// manual leaves connections that were asked for in CONNECTING.
	manual bool
	// calls is what a connection's own calls meet; nil: it offers none.
	calls func(addr string) grpc.ClientConnInterface

	mu        sync.Mutex
	events    []func()
	published []balancer.State
	conns     map[string]*fakeConn // by address: the latest
	asked     []string             // addresses that Connect was called for
	opened    int                  // connections made
	open      int                  // and not shut down
}

func newFakeChannel() *fakeChannel { return &fakeChannel{conns: map[string]*fakeConn{}} }

type noMetrics struct {
	stats.UnimplementedMetricsRecorder
}

func (c *fakeChannel) MetricsRecorder() stats.MetricsRecorder               { return noMetrics{} }
func (c *fakeChannel) ResolveNow(resolver.ResolveNowOptions)                {}
func (c *fakeChannel) Target() string                                       { return "fake:///" }
func (c *fakeChannel) UpdateAddresses(balancer.SubConn, []resolver.Address) {}

func (c *fakeChannel) UpdateState(s balancer.State) {
	c.mu.Lock()
	c.published = append(c.published, s)
	on := c.onPublish
	c.mu.Unlock()
	if on != nil {
		on(s)
	}
}

func (c *fakeChannel) NewSubConn(addrs []resolver.Address, o balancer.NewSubConnOptions) (balancer.SubConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &fakeConn{channel: c, addr: addrs[0].Addr, listener: o.StateListener}
	c.conns[s.addr] = s
	c.opened++
	c.open++
	return s, nil
}

func (c *fakeChannel) later(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, f)
}

// pump delivers what is queued and what comes of it.
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

func (c *fakeChannel) conn(addr string) *fakeConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[addr]
}

func (c *fakeChannel) publications() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.published)
}

// latest returns the state that the channel has now.
func (c *fakeChannel) latest() balancer.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.published) == 0 {
		return balancer.State{ConnectivityState: -1}
	}
	return c.published[len(c.published)-1]
}

// forget drops all but the latest state and the connections that are open, so that
// long runs stay small.
func (c *fakeChannel) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.published); n > 1 {
		c.published = append([]balancer.State(nil), c.published[n-1])
	}
	c.asked = nil
	for addr, s := range c.conns {
		if s.shut {
			delete(c.conns, addr)
		}
	}
}

func (c *fakeChannel) openConns() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// fakeConn is one connection.
type fakeConn struct {
	balancer.SubConn

	channel  *fakeChannel
	addr     string
	listener func(balancer.SubConnState)

	// Guarded by channel.mu.
	health func(balancer.SubConnState)
	shut   bool
	asked  int // calls of Connect

	producing sync.Mutex
	producers []func() // what ends them; guarded by producing
}

// GetOrBuildProducer is that of a wrapper which has none, unless the channel has calls: the nil in it is called.
func (s *fakeConn) GetOrBuildProducer(b balancer.ProducerBuilder) (balancer.Producer, func()) {
	if s.channel.calls == nil {
		return s.SubConn.GetOrBuildProducer(b)
	}
	s.producing.Lock()
	defer s.producing.Unlock()
	p, end := b.Build(s.channel.calls(s.addr))
	end = sync.OnceFunc(end)
	s.producers = append(s.producers, end)
	return p, end
}

// endProducers ends them with the lock held, like the channel.
func (s *fakeConn) endProducers() {
	s.producing.Lock()
	defer s.producing.Unlock()
	for _, end := range s.producers {
		end()
	}
	s.producers = nil
}

func (s *fakeConn) Connect() {
	s.channel.mu.Lock()
	s.asked++
	s.channel.asked = append(s.channel.asked, s.addr)
	dial, manual, on := s.channel.dial, s.channel.manual, s.channel.onConnect
	s.channel.mu.Unlock()
	if on != nil {
		on()
	}
	s.becomes(connectivity.Connecting, nil)
	if manual {
		return
	}
	if dial != nil {
		if err := dial(s.addr); err != nil {
			s.becomes(connectivity.TransientFailure, err)
			return
		}
	}
	s.becomes(connectivity.Ready, nil)
}

// becomes queues a change of state, as the channel does for a change of a connection.
func (s *fakeConn) becomes(state connectivity.State, err error) {
	s.channel.later(func() {
		s.endProducers()
		s.channel.mu.Lock()
		shut := s.shut
		s.health = nil
		s.channel.mu.Unlock()
		if !shut {
			s.listener(balancer.SubConnState{ConnectivityState: state, ConnectionError: err})
		}
	})
}

func (s *fakeConn) RegisterHealthListener(f func(balancer.SubConnState)) {
	s.channel.mu.Lock()
	s.health = f
	s.channel.mu.Unlock()
	s.healthBecomes(connectivity.Ready, nil)
}

// healthBecomes queues news of the health check.
func (s *fakeConn) healthBecomes(state connectivity.State, err error) {
	s.channel.later(func() {
		s.channel.mu.Lock()
		f := s.health
		s.channel.mu.Unlock()
		if f != nil {
			f(balancer.SubConnState{ConnectivityState: state, ConnectionError: err})
		}
	})
}

func (s *fakeConn) Shutdown() {
	s.endProducers()
	s.channel.mu.Lock()
	defer s.channel.mu.Unlock()
	if !s.shut {
		s.shut = true
		s.channel.open--
	}
}
