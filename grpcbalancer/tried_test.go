package grpcbalancer

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/picker"
)

// pickFor picks for a call.
func (r *rig) pickFor(ctx context.Context) (addr string, done func(balancer.DoneInfo)) {
	r.t.Helper()
	result, err := r.latest().Picker.Pick(balancer.PickInfo{FullMethodName: "/s/m", Ctx: ctx})
	if err != nil {
		r.t.Fatal(err)
	}
	return result.SubConn.(*fakeConn).addr, result.Done
}

func TestAttemptsOfOneCallGoToEachEndpointBeforeOneTwice(t *testing.T) {
	for _, policy := range append(policyNames(t), signalNames(t)...) {
		config := `{"policy": "` + policy + `"}`
		if _, err := (builder{}).ParseConfig([]byte(config)); err != nil {
			config = `{"policy": {"p2c": {"signal": "` + policy + `"}}}`
		}
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, config)
			r.up(each("a", "b", "c", "d")...)
			for range 30 {
				type key struct{}
				call := &callContext{Context: context.Background(), kind: picker.Unary}
				went := map[string]bool{}
				for i := range 6 {
					// gRPC derives the context of each attempt from the call's.
					addr, done := r.pickFor(context.WithValue(call, key{}, i))
					if went[addr] && i < 4 {
						t.Fatalf("%s: attempt %d went to %s again, though there are others than %v", config, i, addr, went)
					}
					went[addr] = true
					done(succeeded)
				}
			}
		})
	}
}

// Without the interceptors an attempt is a call like any other.
func TestAttemptsOfCallsThatNobodySawArePickedByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": "maglev", "keys": [{"path": true}]}`)
		r.up(each("a", "b", "c", "d")...)
		ctx := context.Background()
		first, done := r.pickFor(ctx)
		done(succeeded)
		for range 10 {
			addr, done := r.pickFor(ctx)
			if done(succeeded); addr != first {
				t.Errorf("the key went to %s, then to %s", first, addr)
			}
		}
	})
}

func TestCallsRememberABoundedNumberOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b", "c")...)
		call := &callContext{Context: context.Background()}
		var all sync.WaitGroup
		for range 4 * maxTried { // nobody should, and nothing comes of it
			all.Go(func() {
				_, done := r.pickFor(call)
				done(succeeded)
			})
		}
		all.Wait()
		var again evenkeel.Request
		call.describe(&again)
		if n := len(again.Avoid); n > maxTried {
			t.Errorf("%d attempts, want at most %d", n, maxTried)
		}
	})
}

// Contexts derived from the call's, cancelled like those of any other, start no goroutines.
func TestCallsHaveTheContextOfTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		parent, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, 7))
		call := &callContext{Context: parent}
		child, stop := context.WithCancel(call)
		defer stop()
		if child.Value(key{}) != 7 || callOf(child) != call || callOf(parent) != nil {
			t.Error("a value is lost, or found where it is not")
		}
		cancel()
		synctest.Wait()
		if child.Err() == nil || call.Err() == nil {
			t.Error("the caller left, and the attempt goes on")
		}
	})
}

// Two servers of three fail each first attempt: with the interceptor two retries always find the third.
func TestRetriesOfRealCallsFindTheServerThatWorks(t *testing.T) {
	servers := fleet(t, 3)
	for _, s := range servers[:2] {
		s.answers(func(context.Context) error { return status.Error(codes.Unavailable, "not here") })
	}
	const threeAttempts = `"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.001s",
		"maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]`
	c := connect(t, `{`+threeAttempts+`, "loadBalancingConfig": [{"`+spiedName+`": {"policy": "random", "outlier": {"mode": "off"}}}]}`, servers,
		grpc.WithChainUnaryInterceptor(UnaryInterceptor))
	c.calls(100)
	c.waitAtRest()
	var picks uint64
	for _, s := range statsOf(c.policy()) {
		picks += s.Picks
	}
	var arrived int64
	for _, s := range servers {
		arrived += s.calls.Load()
	}
	if picks != uint64(arrived) || servers[2].calls.Load() != 100 {
		t.Errorf("%d picks, %d attempts, %d of 100 calls at the server that works", picks, arrived, servers[2].calls.Load())
	}
}

func TestInterceptorsAllocateOnce(t *testing.T) {
	ctx := context.Background()
	var got context.Context
	next := unaryCall(func(ctx context.Context) { got = ctx })
	if n := testing.AllocsPerRun(100, func() { _ = UnaryInterceptor(ctx, "m", nil, nil, nil, next) }); n > 1 {
		t.Errorf("%v allocations, want one", n)
	}
	if testcost.Race {
		return // the race detector makes pools forget
	}
	// Nor does the first attempt of a call allocate more than others.
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b")...)
		if n := testing.AllocsPerRun(100, func() {
			_ = UnaryInterceptor(ctx, "m", nil, nil, nil, next)
			_, done := r.pickFor(got)
			done(succeeded)
		}); n > 2 {
			t.Errorf("%v allocations with a pick, want two", n)
		}
	})
}
