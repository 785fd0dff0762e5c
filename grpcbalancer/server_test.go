package grpcbalancer

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// backend is a real server on loopback.
type backend struct {
	testgrpc.UnimplementedTestServiceServer

	addr   string
	health *health.Server
	server *grpc.Server
	served <-chan struct{} // closed when the listener is
	calls  atomic.Int64
	conns  atomic.Int64
	// unary answers a call; nil answers at once.
	unary atomic.Pointer[func(context.Context) error]
}

// start starts a backend, on addr if that is not empty.
func start(t *testing.T, addr string, options ...grpc.ServerOption) *backend {
	t.Helper()
	return startWith(t, addr, func(b *backend) { healthgrpc.RegisterHealthServer(b.server, b.health) }, options...)
}

// startWith starts a backend with other services than health.
func startWith(t *testing.T, addr string, register func(*backend), options ...grpc.ServerOption) *backend {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{addr: listener.Addr().String(), health: health.NewServer(), server: grpc.NewServer(options...)}
	testgrpc.RegisterTestServiceServer(b.server, b)
	register(b)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = b.server.Serve(&counted{Listener: listener, accepted: &b.conns})
	}()
	b.served = served
	t.Cleanup(b.stop)
	return b
}

// stop ends the backend. Stop alone, before Serve has begun, leaves the listener to it.
func (b *backend) stop() {
	b.server.Stop()
	<-b.served
}

func fleet(t *testing.T, n int, options ...grpc.ServerOption) []*backend {
	t.Helper()
	list := make([]*backend, n)
	for i := range list {
		list[i] = start(t, "", options...)
	}
	return list
}

// counted counts the connections that a listener accepts.
type counted struct {
	net.Listener
	accepted *atomic.Int64
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

// answers makes the backend's unary calls end with f.
func (b *backend) answers(f func(context.Context) error) { b.unary.Store(&f) }

func (b *backend) EmptyCall(ctx context.Context, _ *testgrpc.Empty) (*testgrpc.Empty, error) {
	b.calls.Add(1)
	if f := b.unary.Load(); f != nil {
		if err := (*f)(ctx); err != nil {
			return nil, err
		}
	}
	return &testgrpc.Empty{}, nil
}

// UnaryCall answers with as much as it is asked for.
func (b *backend) UnaryCall(_ context.Context, r *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	b.calls.Add(1)
	return &testgrpc.SimpleResponse{Payload: &testgrpc.Payload{Body: make([]byte, r.GetResponseSize())}}, nil
}

// FullDuplexCall answers each message with one.
func (b *backend) FullDuplexCall(s testgrpc.TestService_FullDuplexCallServer) error {
	b.calls.Add(1)
	for {
		if _, err := s.Recv(); err != nil {
			return nil // the client is done, or gone
		}
		if err := s.Send(&testgrpc.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// hangs blocks a call until its client gives up.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func endpointsOf(backends ...*backend) resolver.State {
	var s resolver.State
	for _, b := range backends {
		s.Endpoints = append(s.Endpoints, at(b.addr))
	}
	return s
}

// spiedName is the policy under a name of its own, which lets a test look inside.
const spiedName = "evenkeel_spied"

type spiedBuilder struct{ builder }

var (
	spied  sync.Map     // target → *policy
	builds atomic.Int64 // of spied policies
)

func init() { balancer.Register(spiedBuilder{builder{name: spiedName}}) }

func (spiedBuilder) Name() string { return spiedName }

func (s spiedBuilder) Build(cc balancer.ClientConn, o balancer.BuildOptions) balancer.Balancer {
	p := s.builder.Build(cc, o)
	builds.Add(1)
	spied.Store(o.Target.String(), p)
	return p
}

// client is a channel with a manual resolver.
type client struct {
	testgrpc.TestServiceClient

	t        *testing.T
	cc       *grpc.ClientConn
	resolver *manual.Resolver
}

// lbConfigOf is a service config with the spied policy and this config.
func lbConfigOf(config string) string {
	return `{"loadBalancingConfig": [{"` + spiedName + `": ` + config + `}]}`
}

// dial returns a channel that has no list yet.
func dial(t *testing.T, serviceConfig string, options ...grpc.DialOption) *client {
	t.Helper()
	if !json.Valid([]byte(serviceConfig)) {
		t.Fatalf("not JSON: %s", serviceConfig)
	}
	r := manual.NewBuilderWithScheme("manual")
	cc, err := grpc.NewClient("manual:///"+t.Name(), append([]grpc.DialOption{
		grpc.WithResolvers(r),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.5, MaxDelay: 50 * time.Millisecond},
			MinConnectTimeout: 5 * time.Second,
		}),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return &client{TestServiceClient: testgrpc.NewTestServiceClient(cc), t: t, cc: cc, resolver: r}
}

// connect dials, hands over the backends and waits until all are READY.
func connect(t *testing.T, serviceConfig string, backends []*backend, options ...grpc.DialOption) *client {
	t.Helper()
	c := dial(t, serviceConfig, options...)
	c.resolver.InitialState(endpointsOf(backends...))
	c.cc.Connect()
	c.waitReady(len(backends))
	return c
}

// policy is the one that the channel has now, nil before its first.
func (c *client) policy() *policy {
	p, ok := spied.Load(c.cc.CanonicalTarget())
	if !ok {
		return nil
	}
	return p.(*policy)
}

func (c *client) waitReady(n int) {
	c.t.Helper()
	eventually(c.t, "endpoints are READY", func() bool {
		p := c.policy()
		if p == nil {
			return false
		}
		p.calls.Lock()
		defer p.calls.Unlock()
		return p.pool != nil && p.pool.Stats().Ready == n
	})
}

// call makes a unary call that may take ten seconds.
func (c *client) call(options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := c.EmptyCall(ctx, &testgrpc.Empty{}, options...)
	return err
}

func (c *client) calls(n int) {
	c.t.Helper()
	for range n {
		if err := c.call(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// open opens a stream and waits for its first answer.
func (c *client) open(ctx context.Context) testgrpc.TestService_FullDuplexCallClient {
	c.t.Helper()
	s, err := c.FullDuplexCall(ctx)
	if err == nil {
		err = echo(s)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// echo sends a message over a stream and waits for the answer.
func echo(s testgrpc.TestService_FullDuplexCallClient) error {
	if err := s.Send(&testgrpc.StreamingOutputCallRequest{}); err != nil {
		return err
	}
	_, err := s.Recv()
	return err
}

// inFlight returns how many attempts are counted per address.
func (c *client) inFlight() map[string]int64 {
	got := map[string]int64{}
	for key, s := range statsOf(c.policy()) {
		got[key] = s.InFlight
	}
	return got
}

func (c *client) waitAtRest() {
	c.t.Helper()
	eventually(c.t, "nothing is in flight", func() bool {
		for _, n := range c.inFlight() {
			if n != 0 {
				return false
			}
		}
		return true
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Second, errors.New("waited too long"))
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, context.Cause(ctx))
		}
	}
}
