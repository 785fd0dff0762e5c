package grpcbalancer

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
)

// The context of the first check ends all those after it, and every endpoint is unhealthy for ever.
func TestBug41_ChecksGoOnAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": "round_robin", "health": {"protocol": "tcp", "interval": "100ms", "jitter": 0.01}}`)
		var mu sync.Mutex
		dials := map[string]int{}
		r.policy.opts.Dialer = func(_ context.Context, addr string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			dials[addr]++
			here, there := net.Pipe()
			_ = there.Close()
			return here, nil
		}
		r.up(each("a", "b", "c")...)
		for range 200 {
			_, done := r.picked()
			done(succeeded)
			time.Sleep(10 * time.Millisecond)
		}
		r.wantServing("after two seconds", "a", "b", "c")
		for _, a := range []string{"a", "b", "c"} {
			if n := dials[a]; n < 18 || n > 23 {
				t.Errorf("%s was checked %d times in two seconds, want each 100 ms", a, n)
			}
		}
		if got := r.policy.checks.runner.Details()["a"]; got != "connected" {
			t.Errorf("the last check: %q", got)
		}
	})
}

// Checker and balancer take their locks in two orders, and a Close that meets a change of state hangs.
func TestBug41_CloseDuringAChangeOfStateDoesNotHang(t *testing.T) {
	rounds := 10_000
	if testcost.Race {
		rounds = 1000
	}
	names := []string{"a", "b", "c"}
	configs := []loadBalancingConfig{parse(t, watched), parse(t, `{"health": {"protocol": "tcp", "interval": "10ms"}, "subset": {"size": 2}}`),
		parse(t, strings.Replace(watched, `"timeout"`, `"service": "x", "timeout"`, 1))}
	for i := range rounds {
		c, s := newFakeChannel(), newSayings()
		c.calls = s.calls
		p := builder{}.Build(c, balancer.BuildOptions{Dialer: refuse}).(*policy)
		state := stateOf(each(names...))
		state.BalancerConfig = configs[i%3]
		_ = p.UpdateClientConnState(state)
		c.pump()
		var all sync.WaitGroup
		all.Go(func() {
			for _, a := range names {
				s.say(a, notServing)
				s.say(a, serving)
			}
		})
		all.Go(func() {
			for _, a := range names {
				if conn := c.conn(a); conn != nil {
					conn.becomes(connectivity.Idle, errors.New("lost"))
				}
			}
			c.pump()
			state := stateOf(each("b", "d"))
			state.BalancerConfig = configs[i/3%3]
			_ = p.UpdateClientConnState(state)
			c.pump()
		})
		all.Go(func() {
			pickOnce(c)
			p.Close()
		})
		all.Wait()
		c.pump()
		if n := s.open(); n != 0 {
			t.Fatalf("round %d: %d streams are open after Close", i, n)
		}
		if n := c.openConns(); n != 0 {
			t.Fatalf("round %d: %d connections are open after Close", i, n)
		}
	}
}

// A second source lifts an endpoint that fails its check.
func TestBug44_TheWorseOfTwoSourcesWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		for _, a := range []string{"a", "b", "c", "d"} {
			s.say(a, serving)
		}
		r.up(each("a", "b", "c", "d")...)
		s.say("a", notServing)
		r.settle()
		r.conn("a").healthBecomes(connectivity.TransientFailure, errors.New("gRPC's own check"))
		r.settle()
		r.wantServing("both say no", "b", "c", "d")
		r.conn("a").healthBecomes(connectivity.Ready, nil)
		r.settle()
		r.wantServing("one of them says yes", "b", "c", "d")
		r.wantStanding("a", evenkeel.Failing, evenkeel.Checks)
		s.say("a", serving)
		r.policy.pool.Drain("a")
		r.settle()
		r.wantServing("drained", "b", "c", "d")
		r.policy.pool.Resume("a")
		r.wantServing("all say yes", "a", "b", "c", "d")
	})
}

// The same with checks: none of their goroutines is left. TestMain looks for them, too.
func TestBug57_OpenedAndClosedAThousandTimesWithChecks(t *testing.T) {
	before := runtime.NumGoroutine()
	configs := []loadBalancingConfig{parse(t, watched), parse(t, `{"health": {"interval": "10ms"}}`), parse(t, `{"health": {"protocol": "http"}}`)}
	var dials atomic.Int64
	for i := range 1000 {
		c, s := newFakeChannel(), newSayings()
		c.calls = s.calls
		p := builder{}.Build(c, balancer.BuildOptions{Dialer: func(ctx context.Context, _ string) (net.Conn, error) {
			if dials.Add(1)%2 == 0 {
				<-ctx.Done()
			}
			return nil, net.ErrClosed
		}}).(*policy)
		state := stateOf(each("a", "b", "c"))
		state.BalancerConfig = configs[i%3]
		if err := p.UpdateClientConnState(state); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			c.pump()
			c.conn("a").becomes(connectivity.Idle, nil)
			c.pump()
		}
		p.Close()
		p.Close()
		if n := s.open(); n != 0 {
			t.Fatalf("%d streams are open after Close", n)
		}
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}
