package grpcbalancer

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/randomsubsetting" // a parent
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const retries = `"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.001s",
	"maxBackoff": "0.01s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]`

func TestServersShareTheCalls(t *testing.T) {
	for _, config := range []string{"{}", `{"policy": "round_robin"}`, `{"policy": "random"}`} {
		t.Run(config, func(t *testing.T) {
			servers := fleet(t, 4)
			c := connect(t, lbConfigOf(config), servers)
			c.calls(200)
			for _, s := range servers {
				if s.calls.Load() == 0 {
					t.Errorf("%s got none of 200 calls", s.addr)
				}
			}
			c.waitAtRest()
		})
	}
}

func TestServerKilledInFlight(t *testing.T) {
	servers := fleet(t, 2)
	c := connect(t, lbConfigOf(`{"policy": "round_robin"}`), servers)
	for _, s := range servers {
		s.answers(hangs)
	}
	const calls = 8
	codesOf := make(chan codes.Code, calls)
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { codesOf <- status.Code(c.call()) })
	}
	eventually(t, "all calls have arrived", func() bool {
		return servers[0].calls.Load()+servers[1].calls.Load() == calls
	})
	servers[0].stop()
	for range calls / 2 {
		if code := <-codesOf; code != codes.Unavailable {
			t.Errorf("code %v, want Unavailable", code)
		}
	}
	servers[1].answers(func(context.Context) error { return nil })
	eventually(t, "the dead server has nothing in flight", func() bool { return c.inFlight()[servers[0].addr] == 0 })
	if n := c.inFlight()[servers[1].addr]; n != calls/2 {
		t.Errorf("%d in flight on the other server, want %d", n, calls/2)
	}
	// Nobody waits for the connection that is gone.
	c.waitReady(1)
	c.calls(20)
	servers[1].stop()
	all.Wait()
	c.waitAtRest()
}

func TestGracefulRestartsFailNoCall(t *testing.T) {
	servers := fleet(t, 3)
	c := connect(t, `{`+retries+`, "loadBalancingConfig": [{"`+spiedName+`": {}}]}`, servers)
	load := startLoad(c, 4)
	for i, s := range servers {
		s.server.GracefulStop()
		servers[i] = start(t, s.addr)
		c.waitReady(3)
	}
	load.stop(t)
}

// Servers that limit the age of connections send GOAWAY again and again.
func TestConnectionsThatAgeFailNoCall(t *testing.T) {
	servers := fleet(t, 3, grpc.KeepaliveParams(keepalive.ServerParameters{
		MaxConnectionAge: 30 * time.Millisecond, MaxConnectionAgeGrace: time.Minute,
	}))
	c := connect(t, `{`+retries+`, "loadBalancingConfig": [{"`+spiedName+`": {}}]}`, servers)
	load := startLoad(c, 4)
	eventually(t, "each server has had five connections", func() bool {
		for _, s := range servers {
			if s.conns.Load() < 5 {
				return false
			}
		}
		return true
	})
	load.stop(t)
}

// load keeps calling until it is stopped.
type load struct {
	client *client
	done   atomic.Bool
	made   atomic.Int64
	failed atomic.Pointer[error]
	all    sync.WaitGroup
}

func startLoad(c *client, callers int) *load {
	l := &load{client: c}
	for range callers {
		l.all.Go(func() {
			for !l.done.Load() {
				if err := c.call(); err != nil {
					l.failed.Store(&err)
				}
				l.made.Add(1)
			}
		})
	}
	return l
}

// stop ends the load, of which nothing may have failed and nothing may remain.
func (l *load) stop(t *testing.T) {
	t.Helper()
	l.done.Store(true)
	l.all.Wait()
	if err := l.failed.Load(); err != nil {
		t.Errorf("a call of %d failed: %v", l.made.Load(), *err)
	}
	l.client.waitAtRest()
}

func TestStreamStaysCountedOverAReconnect(t *testing.T) {
	old := start(t, "", grpc.KeepaliveParams(keepalive.ServerParameters{
		MaxConnectionAge: 50 * time.Millisecond, MaxConnectionAgeGrace: time.Minute,
	}))
	servers := []*backend{old, start(t, "")}
	c := connect(t, lbConfigOf(`{"policy": {"p2c": {"signal": "in_flight"}}}`), servers,
		grpc.WithChainStreamInterceptor(StreamInterceptor))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const streams = 50
	open := func() {
		for range streams {
			s := c.open(ctx)
			t.Cleanup(func() { _, _ = s.Recv() })
		}
	}
	open()
	before := old.conns.Load()
	eventually(t, "the connection was replaced", func() bool { return old.conns.Load() > before+1 })
	c.waitReady(2)
	open()
	for addr, n := range c.inFlight() {
		if n < streams-2 || n > streams+2 {
			t.Errorf("%s holds %d of %d streams, want half: the old ones were forgotten", addr, n, 2*streams)
		}
	}
	cancel()
	c.waitAtRest()
}

func TestWhatCancelledAndTimedOutCallsTeach(t *testing.T) {
	server := start(t, "")
	c := connect(t, lbConfigOf("{}"), []*backend{server}, grpc.WithChainUnaryInterceptor(UnaryInterceptor))
	c.calls(1)
	success := func() float64 {
		t.Helper()
		c.waitAtRest()
		return statsOf(c.policy())[server.addr].Success
	}
	server.answers(hangs)

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := c.EmptyCall(ctx, &testgrpc.Empty{})
		ended <- err
	}()
	eventually(t, "the call has arrived", func() bool { return server.calls.Load() == 2 })
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Fatalf("error %v", err)
	}
	if s := success(); s != 1 {
		t.Errorf("success %v after a caller left, want 1", s)
	}

	before := statsOf(c.policy())[server.addr].Latency
	late, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	if _, err := c.EmptyCall(late, &testgrpc.Empty{}); status.Code(err) != codes.DeadlineExceeded {
		t.Fatalf("error %v", err)
	}
	if s := success(); s >= 1 {
		t.Errorf("success %v after a deadline passed, want less than 1", s)
	}
	if l := statsOf(c.policy())[server.addr].Latency; l <= before {
		t.Errorf("latency %v, want more than %v: the call took at least as long as its deadline", l, before)
	}
}

// A call that waited in vain for a stream of its own never reached the server.
func TestWaitingForAStreamBlamesNobody(t *testing.T) {
	server := start(t, "", grpc.MaxConcurrentStreams(1))
	c := connect(t, lbConfigOf("{}"), []*backend{server})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := c.open(ctx)
	late, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	if _, err := c.EmptyCall(late, &testgrpc.Empty{}); status.Code(err) != codes.DeadlineExceeded {
		t.Fatalf("error %v", err)
	}
	eventually(t, "the call is counted off", func() bool { return c.inFlight()[server.addr] == 1 })
	if got := statsOf(c.policy())[server.addr]; got.Success != 1 || got.Picks != 2 {
		t.Errorf("%+v, want two picks and no failure", got)
	}
	cancel()
	_, _ = s.Recv()
	c.waitAtRest()
}

func TestEachRetryIsAnAttemptOfItsOwn(t *testing.T) {
	server := start(t, "")
	var n atomic.Int64
	server.answers(func(context.Context) error {
		if n.Add(1) < 3 {
			return status.Error(codes.Unavailable, "again")
		}
		return nil
	})
	c := connect(t, `{`+retries+`, "loadBalancingConfig": [{"`+spiedName+`": {}}]}`, []*backend{server})
	c.calls(1)
	c.waitAtRest()
	if s := statsOf(c.policy())[server.addr]; s.Picks != 3 || s.Success == 1 {
		t.Errorf("%d picks and success %v, want 3 and two failures", s.Picks, s.Success)
	}
}

// random_subsetting marshals the config of its child and parses it again.
func TestConfigReachesTheChildOfAParent(t *testing.T) {
	servers := fleet(t, 3)
	c := dial(t, `{"loadBalancingConfig": [{"random_subsetting_experimental": {"subsetSize": 2,
		"childPolicy": [{"`+spiedName+`": {"policy": "round_robin"}}]}}]}`)
	c.resolver.InitialState(endpointsOf(servers...))
	c.cc.Connect()
	c.waitReady(2)
	c.calls(20)
	for _, s := range servers {
		if n := s.calls.Load(); n != 0 && n != 10 {
			t.Errorf("%s got %d of 20 calls, want half or none: the default policy is not that even", s.addr, n)
		}
	}
}

func TestClientSideHealthChecks(t *testing.T) {
	servers := fleet(t, 2)
	c := connect(t, `{"healthCheckConfig": {"serviceName": ""},
		"loadBalancingConfig": [{"`+spiedName+`": {}}]}`, servers)
	servers[0].health.SetServingStatus("", healthgrpc.HealthCheckResponse_NOT_SERVING)
	c.waitReady(1)
	before := servers[0].calls.Load()
	c.calls(50)
	if n := servers[0].calls.Load() - before; n != 0 {
		t.Errorf("%d calls went to a server that does not serve", n)
	}
	servers[0].health.SetServingStatus("", healthgrpc.HealthCheckResponse_SERVING)
	c.waitReady(2)
}

// Switching policies, to and fro, under load: an old picker sends calls to the new one.
func TestSwitchingPoliciesFailsNoCall(t *testing.T) {
	servers := fleet(t, 3)
	c := connect(t, lbConfigOf("{}"), servers)
	load := startLoad(c, 4)
	for i := range 10 {
		own, state := c.policy(), endpointsOf(servers...)
		config := lbConfigOf("{}")
		if i%2 == 0 {
			config = `{"loadBalancingConfig": [{"round_robin": {}}]}`
		}
		state.ServiceConfig = c.resolver.CC().ParseServiceConfig(config)
		c.resolver.UpdateState(state)
		made := load.made.Load()
		eventually(t, "calls were made, and the old policy is closed", func() bool {
			own.calls.Lock()
			defer own.calls.Unlock()
			return load.made.Load() > made+50 && (i%2 == 1 || own.closed)
		})
	}
	load.stop(t)
}

// A channel that idles drops the policy and makes another one.
func TestChannelThatIdles(t *testing.T) {
	servers := fleet(t, 2)
	c := dial(t, lbConfigOf("{}"), grpc.WithIdleTimeout(30*time.Millisecond))
	c.resolver.InitialState(endpointsOf(servers...))
	c.calls(5) // who waits for connections without calling may find the channel idle
	first := c.policy()
	for range 3 {
		eventually(t, "the channel idles", func() bool { return c.cc.GetState() == connectivity.Idle })
		c.calls(5)
	}
	first.calls.Lock()
	defer first.calls.Unlock()
	if !first.closed || c.policy() == first {
		t.Error("the policy outlived its channel's idleness")
	}
}
