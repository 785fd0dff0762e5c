package grpcbalancer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

// A rebuild of the picker makes fresh records, and all that was learnt is gone.
func TestBug2_ConnectionThatComesBackChangesNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b", "c")...)
		ends := map[string]func(balancer.DoneInfo){}
		for i, name := range []string{"a", "b", "c"} {
			done := r.pickedOn(name)
			time.Sleep(time.Duration(i+1) * 10 * time.Millisecond)
			done(succeeded)
		}
		for _, name := range []string{"a", "b", "c"} {
			if name == "b" {
				r.pickedOn(name)(balancer.DoneInfo{Err: status.Error(codes.Internal, "x"), BytesSent: true})
			}
			ends[name] = r.pickedOn(name)
		}
		before := statsOf(r.policy)
		r.conn("a").becomes(connectivity.Idle, nil)
		r.settle()
		r.wantState(connectivity.Ready)
		for name, s := range statsOf(r.policy) {
			if s != before[name] {
				t.Errorf("%s was %+v\nand is %+v", name, before[name], s)
			}
			if s.InFlight != 1 || s.Latency == 0 {
				t.Errorf("%s: %d in flight with latency %v, want 1 and a latency", name, s.InFlight, s.Latency)
			}
		}
		for name, done := range ends {
			done(succeeded)
			if s := r.stats(name); s.InFlight != 0 {
				t.Errorf("%s has %d in flight: the attempt from before ended on another record", name, s.InFlight)
			}
		}
	})
}

// Requests before the first list fail instead of waiting.
func TestBug15_CallsBeforeTheFirstListWait(t *testing.T) {
	server := start(t, "")
	c := dial(t, lbConfigOf("{}"))
	c.cc.Connect()
	short, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	if _, err := c.EmptyCall(short, &testgrpc.Empty{}, grpc.WaitForReady(true)); status.Code(err) != codes.DeadlineExceeded {
		t.Fatalf("error %v, want to have waited until the deadline", err)
	}
	ended := make(chan error, 2)
	for _, wait := range []bool{true, false} {
		go func() { ended <- c.call(grpc.WaitForReady(wait)) }()
	}
	c.resolver.UpdateState(endpointsOf(server))
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("a call failed: %v", err)
		}
	}
}

func TestBug15_FailureBeforeTheFirstListIsTyped(t *testing.T) {
	server := start(t, "")
	c := dial(t, lbConfigOf("{}"))
	c.cc.Connect()
	waiting := make(chan error, 1)
	go func() { waiting <- c.call(grpc.WaitForReady(true)) }()
	c.resolver.CC().ReportError(errors.New("no such host"))
	err := c.call()
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("error %v, want Unavailable with the resolver's reason", err)
	}
	// An empty list, and then one whose server is not there: the same.
	c.resolver.CC().UpdateState(endpointsOf())
	if err := c.call(); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v, want Unavailable", err)
	}
	dead := start(t, "")
	dead.stop()
	c.resolver.UpdateState(endpointsOf(dead))
	eventually(t, "the connection has failed", func() bool { return c.cc.GetState() == connectivity.TransientFailure })
	if err := c.call(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), dead.addr) {
		t.Errorf("error %v, want Unavailable with the connection's reason", err)
	}
	// A call that waits for ready outlives all of that.
	c.resolver.UpdateState(endpointsOf(server))
	if err := <-waiting; err != nil {
		t.Errorf("the call that waits for ready failed: %v", err)
	}
}

// Zero and "not set" are mixed up. The attribute has no explicit zero: 0 is what an
// absent one reads as, so both count as 1 and neither takes an endpoint out.
func TestBug19_WeightZeroIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": "round_robin"}`)
		r.up(weight.Set(at("zero"), weight.EndpointInfo{}), at("absent"), weight.Set(at("one"), weight.EndpointInfo{Weight: 1}))
		if got := r.shares(90); got["zero"] != 30 || got["absent"] != 30 || got["one"] != 30 {
			t.Errorf("shares %v, want equal ones", got)
		}
		for name, s := range statsOf(r.policy) {
			if s.Weight != 1 {
				t.Errorf("%s has weight %v, want 1", name, s.Weight)
			}
		}
	})
}

// Close leaves a goroutine that waits for a stopped ticker. TestMain looks for them.
func TestBug57_OpenedAndClosedAThousandTimes(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 1000 {
		c := newFakeChannel()
		p := builder{}.Build(c, balancer.BuildOptions{}).(*policy)
		if i%3 > 0 {
			if err := p.UpdateClientConnState(stateOf(each("a", "b", "c"))); err != nil {
				t.Fatal(err)
			}
		}
		if i%3 == 1 {
			c.pump()
			c.conn("a").becomes(connectivity.Idle, nil)
			c.pump()
		}
		p.Close()
		p.Close()
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

// Two first uses that race build two balancers, and one is never closed.
func TestBug58_RacingFirstCallsShareOnePolicy(t *testing.T) {
	servers := fleet(t, 2)
	c := dial(t, lbConfigOf("{}"))
	c.resolver.InitialState(endpointsOf(servers...))
	before := builds.Load()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if err := c.call(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c.waitReady(2)
	if n := builds.Load() - before; n != 1 {
		t.Errorf("%d policies were built, want 1", n)
	}
	if n := servers[0].conns.Load() + servers[1].conns.Load(); n != 2 {
		t.Errorf("%d connections were made, want 2", n)
	}
}

// Close races with an update that removes a child, and the child leaks.
func TestBug58_CloseRacingUpdatesAndPicks(t *testing.T) {
	rounds := 10_000
	if testcost.Race {
		rounds = 1000
	}
	lists := [][]string{{"a", "b"}, {"b", "c"}, nil}
	for i := range rounds {
		c := newFakeChannel()
		p := builder{}.Build(c, balancer.BuildOptions{}).(*policy)
		_ = p.UpdateClientConnState(stateOf(each("a", "b")))
		c.pump()
		var closed atomic.Bool
		var all sync.WaitGroup
		all.Go(func() {
			_ = p.UpdateClientConnState(stateOf(each(lists[i%3]...)))
			c.pump()
		})
		all.Go(func() {
			p.Close()
			closed.Store(true)
		})
		all.Go(func() {
			for !closed.Load() {
				pickOnce(c)
			}
		})
		all.Wait()
		c.pump()
		if n := c.openConns(); n != 0 {
			t.Fatalf("round %d: %d connections are open after Close", i, n)
		}
		_, err := ready{p, p.pool}.Pick(balancer.PickInfo{})
		if !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			t.Fatalf("round %d: pick after Close: %v, want to wait for the successor", i, err)
		}
	}
}

// A registry keeps all that ever was when lists go empty and come back.
func TestBug60_ListsThatGoEmptyAndComeBackLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		rounds := 10_000
		if testcost.Race {
			rounds = 1000
		}
		round := func(i int) {
			names := []string{"a", "b", fmt.Sprint("once", i)} // one of them never seen again
			if err := r.send(each(names...)); err != nil {
				t.Fatal(err)
			}
			r.pump()
			_, done := r.picked()
			done(succeeded)
			_ = r.send(nil)
			r.forget()
			if i%100 == 0 {
				time.Sleep(2 * time.Minute) // longer than a leaver is remembered
			}
		}
		for i := range rounds / 10 {
			round(i + rounds)
		}
		before := heap()
		for i := range rounds {
			round(i)
		}
		time.Sleep(2 * time.Minute)
		if grown := heap() - before; grown > 256<<10 {
			t.Errorf("the heap grew by %d kB over %d rounds", grown>>10, rounds)
		}
		if n := len(r.policy.children); n != 0 {
			t.Errorf("%d children are left", n)
		}
		if n := r.openConns(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}

func heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
