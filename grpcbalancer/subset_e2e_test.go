package grpcbalancer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/stats"
)

// doors counts the connections of a fleet of servers as they see them.
type doors struct{ opened, closed atomic.Int64 }

func (*doors) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*doors) HandleRPC(context.Context, stats.RPCStats)                         {}
func (*doors) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (d *doors) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		d.opened.Add(1)
	case *stats.ConnEnd:
		d.closed.Add(1)
	}
}

// want waits for the counts, and for nothing else: both only grow.
func (d *doors) want(t *testing.T, what string, opened, closed int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s: %d opened and %d closed, want %d and %d", what, d.opened.Load(), d.closed.Load(), opened, closed),
		func() bool { return d.opened.Load() == opened && d.closed.Load() == closed })
}

// subsetted is a client of a fleet that uses a part of it.
type subsetted struct {
	*client
	*doors
	servers []*backend
}

func newSubsetted(t *testing.T, n, ready int, config string) *subsetted {
	t.Helper()
	d := &doors{}
	s := &subsetted{doors: d, servers: fleet(t, n, grpc.StatsHandler(d))}
	s.client = dial(t, lbConfigOf(config))
	s.client.resolver.InitialState(endpointsOf(s.servers...))
	s.client.cc.Connect()
	s.waitReady(ready)
	s.want(t, "at first", int64(ready), 0)
	return s
}

// selected returns the servers that the pool has selected, and the others.
func (s *subsetted) selected() (in, out []*backend) {
	p := s.policy()
	p.calls.Lock()
	defer p.calls.Unlock()
	for _, b := range s.servers {
		if p.children[b.addr] != nil {
			in = append(in, b)
		} else {
			out = append(out, b)
		}
	}
	return in, out
}

func without(list []*backend, gone *backend) []*backend {
	return slices.DeleteFunc(slices.Clone(list), func(b *backend) bool { return b == gone })
}

// Whatever a resolver says about endpoints besides who they are, the servers see no connection
// come or go.
func TestAttributeUpdatesOpenAndCloseNoConnection(t *testing.T) {
	type key struct{}
	for _, config := range []string{
		`{"subset": {"size": 4, "min_available": -1}}`,
		`{"subset": {"size": 4, "client_index": 2, "min_available": -1}}`,
		`{"subset": {"size": 4, "client_index": 2, "algorithm": "rocksteadier"}, "policy": "maglev"}`,
	} {
		d := &doors{}
		servers := fleet(t, 16, grpc.StatsHandler(d))
		c := dial(t, lbConfigOf(config))
		c.resolver.InitialState(endpointsOf(servers...))
		c.cc.Connect()
		var n int
		eventually(t, "all selected are READY", func() bool {
			p := c.policy()
			if p == nil {
				return false
			}
			p.calls.Lock()
			defer p.calls.Unlock()
			n = len(p.children)
			return n > 0 && p.pool.Stats().Ready == n
		})
		if n >= len(servers) {
			t.Fatalf("%s: all %d are selected", config, n)
		}
		d.want(t, config, int64(n), 0)
		held := c.open(t.Context())
		for i := range 60 {
			state := endpointsOf(servers...)
			for k := range state.Endpoints {
				e := &state.Endpoints[k]
				switch i % 4 {
				case 0: // half of them change
					e.Attributes = attributes.New(key{}, i*(k%2))
				case 1: // equal values behind new pointers
					e.Attributes = attributes.New(key{}, 1)
					//lint:ignore SA1019 resolvers still set it, and it counts in other people's subsets
					e.Addresses[0].BalancerAttributes = attributes.New(key{}, i)
				case 2:
					*e = weight.Set(*e, weight.EndpointInfo{Weight: uint32(1 + i*k)})
				case 3:
					state.Attributes = attributes.New(key{}, i)
				}
			}
			slices.Reverse(state.Endpoints[i%8:])
			c.resolver.UpdateState(state)
			c.calls(3)
			if err := echo(held); err != nil {
				t.Fatalf("%s, update %d: %v", config, i, err)
			}
		}
		if o, x := d.opened.Load(), d.closed.Load(); o != int64(n) || x != 0 {
			t.Errorf("%s: 60 updates later %d were opened and %d closed, want %d and 0", config, o, x, n)
		}
		t.Logf("%s: %d connections, 60 updates of attributes, %d opened, %d closed", config, n, d.opened.Load()-int64(n), d.closed.Load())
		_ = c.cc.Close()
	}
}

func TestMembershipUpdatesOpenOnlyWhatTheyMust(t *testing.T) {
	s := newSubsetted(t, 16, 4, fourOf)
	in, out := s.selected()

	s.resolver.UpdateState(endpointsOf(without(s.servers, out[0])...))
	s.calls(20)
	s.want(t, "one gone that was not selected", 4, 0)

	s.resolver.UpdateState(endpointsOf(s.servers...))
	s.calls(20)
	s.want(t, "back", 4, 0)

	s.resolver.UpdateState(endpointsOf(without(s.servers, in[0])...))
	s.want(t, "one gone that was selected", 5, 1)
	s.waitReady(4)

	s.resolver.UpdateState(endpointsOf(s.servers...))
	s.want(t, "that one back", 6, 2) // it takes its place again
	s.waitReady(4)
	for _, b := range in {
		s.resolver.UpdateState(endpointsOf(without(s.servers, b)...))
		s.resolver.UpdateState(endpointsOf(s.servers...))
	}
	s.waitReady(4)
	if now, _ := s.selected(); !slices.Equal(now, in) {
		t.Error("the subset of the same list is another one")
	}
}

// A stream on a connection that leaves goes on to its end, and then the connection closes.
func TestConnectionsOfLeavingMembersDrain(t *testing.T) {
	s := newSubsetted(t, 8, 4, fourOf)
	var streams []testgrpc.TestService_FullDuplexCallClient
	for range 40 { // some on each
		streams = append(streams, s.open(t.Context()))
	}
	two := s.resolver.CC().ParseServiceConfig(lbConfigOf(`{"subset": {"size": 2, "seed": 9, "min_available": -1}}`))
	s.resolver.UpdateState(resolver.State{Endpoints: endpointsOf(s.servers...).Endpoints, ServiceConfig: two})
	if in, _ := s.selected(); len(in) != 2 {
		t.Fatalf("%d are selected, want 2", len(in))
	}
	s.calls(20)
	for _, stream := range streams {
		if err := echo(stream); err != nil {
			t.Fatalf("a stream of a connection that drains: %v", err)
		}
	}
	if n := s.closed.Load(); n != 0 {
		t.Errorf("%d connections were closed under their streams", n)
	}
	for _, stream := range streams {
		_ = stream.CloseSend()
		if _, err := stream.Recv(); err != io.EOF {
			t.Errorf("at the end of a stream: %v", err)
		}
	}
	s.want(t, "the streams have ended", 4, 2)
	s.waitAtRest()
}

func TestKilledMembersAreReplaced(t *testing.T) {
	s := newSubsetted(t, 16, 4, fourOf)
	in, _ := s.selected()
	eventually(t, "the first sweep", func() bool {
		p := s.policy()
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.swept
	})
	for _, b := range in[:3] {
		b.stop()
	}
	s.want(t, "three of four were killed", 5, 3)
	s.waitReady(2)
	more, _ := s.selected()
	s.calls(50)
	if len(more) != 5 {
		t.Errorf("%d are selected, want the four and another", len(more))
	}
	for _, b := range more {
		if !slices.Contains(in, b) && b.calls.Load() == 0 {
			t.Error("the one that was added got no call")
		}
	}
}

// random_subsetting marshals the config of its child and parses it again.
func TestSubsetServesBelowAParent(t *testing.T) {
	d := &doors{}
	servers := fleet(t, 12, grpc.StatsHandler(d))
	c := dial(t, fmt.Sprintf(`{"loadBalancingConfig": [{"random_subsetting_experimental": {"subsetSize": 10,
		"childPolicy": [{%q: %s}]}}]}`, spiedName, fourOf))
	c.resolver.InitialState(endpointsOf(servers...))
	c.cc.Connect()
	c.waitReady(4)
	c.calls(50)
	d.want(t, "below a parent", 4, 0)
}
