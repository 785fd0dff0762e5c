package grpcbalancer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
)

// anyConfigs are configurations in which much happens within a second; a channel changes between them.
var anyConfigs = []string{
	``,
	`{"policy": {"round_robin": {}}, "outlier": {"soft": {"consecutive_failures": 2, "probe_backoff": "1ms", "max_probe_backoff": "2ms"}}}`,
	`{"policy": {"p2c": {}}, "outlier": {"mode": "envoy", "interval": "10ms", "base_ejection_time": "5ms", "max_ejection_percent": 60},
		"limit": {"floor": 1, "ceiling": 20}}`,
	`{"policy": {"round_robin": {}}, "outlier": {"mode": "a50", "interval": "10ms", "base_ejection_time": "5ms", "max_ejection_percent": 60,
		"a50": {"failure_percentage": {"threshold": 20, "min_hosts": 1, "request_volume": 5}}}, "subset": {"size": 3, "seed": 5}}`,
	`{"outlier": {"panic": {"fail_fast": true}}, "limit": {"disabled": true}}`,
}

// A policy with everything at once: calls that end in every way, with deadlines and without, of callers that leave; lists of any
// order with weights, configurations, connections that come and go and fail their checks, drains, pictures; and Close at the end.
// Nothing is in flight and no connection is open at rest, and nobody hangs. Run with -race.
func TestEverythingAtOnceOverAChannel(t *testing.T) {
	r := &rig{fakeChannel: newFakeChannel(), t: t}
	var flaky atomic.Uint64
	r.dial = func(string) error {
		if flaky.Add(1)%5 == 0 {
			return errors.New("refused")
		}
		return nil
	}
	r.policy = builder{}.Build(r.fakeChannel, balancer.BuildOptions{Target: fakeTarget}).(*policy)
	f := newFleet(rand.New(rand.NewPCG(5, 5)), 8)
	r.changeAll(f) // which makes the pool
	watchdog := time.AfterFunc(time.Minute, func() {
		buf := make([]byte, 4<<20)
		panic(fmt.Sprintf("somebody waits for ever:\n%s", buf[:runtime.Stack(buf, true)]))
	})
	var over, closed atomic.Bool
	var served atomic.Int64
	var users, others sync.WaitGroup
	for u := range uint64(16) {
		users.Go(func() {
			rnd := rand.New(rand.NewPCG(u, 2))
			var open []func(balancer.DoneInfo)
			for !over.Load() {
				open = r.callAny(rnd, open, &served)
				runtime.Gosched()
			}
			for _, done := range open {
				done(succeeded)
			}
		})
	}
	pool := r.policy.pool
	others.Go(func() { drainAny(t, pool, rand.New(rand.NewPCG(3, 3)), &over) })
	for end := time.Now().Add(1200 * time.Millisecond); time.Now().Before(end); {
		r.changeAll(f)
		runtime.Gosched()
	}
	others.Go(func() { // calls go on while it closes
		for !closed.Load() {
			pickOnce(r.fakeChannel)
		}
	})
	r.policy.Close()
	r.policy.Close()
	closed.Store(true)
	over.Store(true)
	users.Wait()
	others.Wait()
	r.pump()
	for key, s := range statsOf(r.policy) {
		if s.InFlight != 0 || s.Leaked != 0 {
			t.Errorf("%s has %d in flight and %d leaked at rest", key, s.InFlight, s.Leaked)
		}
	}
	if n := r.policy.pool.Stats().Overflowed; n != 0 {
		t.Errorf("%d calls are beyond the limit at rest", n)
	}
	if n := r.openConns(); n != 0 {
		t.Errorf("%d connections are open after Close", n)
	}
	if served.Load() < 100 {
		t.Errorf("%d calls were begun", served.Load())
	}
	watchdog.Stop()
	t.Logf("%d calls", served.Load())
}

// anyEnd is how a call ends.
func anyEnd(rnd *rand.Rand) balancer.DoneInfo {
	if rnd.IntN(2) == 0 {
		return succeeded
	}
	return balancer.DoneInfo{Err: status.Error(codes.Code(rnd.Uint32N(18)), "x"), BytesSent: rnd.IntN(2) == 0, BytesReceived: rnd.IntN(2) == 0}
}

// callAny begins a call of any kind, if there is anybody for it, and ends one of those that are open.
func (r *rig) callAny(rnd *rand.Rand, open []func(balancer.DoneInfo), served *atomic.Int64) []func(balancer.DoneInfo) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rnd.IntN(2) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.IntN(3000))*time.Microsecond)
		defer cancel()
	}
	if p := r.latest().Picker; p != nil {
		result, err := p.Pick(balancer.PickInfo{FullMethodName: "/s/m", Ctx: ctx})
		if err == nil {
			served.Add(1)
			open = append(open, result.Done)
		}
	}
	if rnd.IntN(4) == 0 {
		cancel()
	}
	for len(open) > 4 || len(open) > 0 && rnd.IntN(2) == 0 {
		i := rnd.IntN(len(open))
		open[i](anyEnd(rnd))
		open[i] = open[len(open)-1]
		open = open[:len(open)-1]
	}
	return open
}

// changeAll does what a channel does, one thing after the other.
func (r *rig) changeAll(f *fleetOf) {
	r.config = parse(r.t, anyConfigs[f.rnd.IntN(len(anyConfigs))])
	f.change()
	if err := r.send(f.current()); err != nil {
		r.t.Error(err)
	}
	r.pump()
	switch f.rnd.IntN(6) {
	case 0:
		r.policy.ResolverError(errors.New("no answer"))
	case 1:
		r.policy.ExitIdle()
	case 2:
		_ = r.send(nil)
		if err := r.send(f.current()); err != nil {
			r.t.Error(err)
		}
	}
	for range 3 {
		e := f.list[f.any()]
		c := r.conn(e.Addresses[0].Addr)
		if c == nil {
			continue
		}
		switch f.rnd.IntN(4) {
		case 0:
			c.becomes(connectivity.Idle, nil)
		case 1:
			c.becomes(connectivity.TransientFailure, errors.New("gone"))
		case 2:
			c.healthBecomes(connectivity.TransientFailure, errors.New("ill"))
		case 3:
			c.healthBecomes(connectivity.Ready, nil)
		}
	}
	r.pump()
	r.forget()
}

// drainAny drains and resumes beside the channel, and takes pictures.
func drainAny(t *testing.T, pool *evenkeel.Pool[*endpoint], rnd *rand.Rand, over *atomic.Bool) {
	for !over.Load() {
		id := fmt.Sprintf("e%d", rnd.IntN(40))
		if rnd.IntN(2) == 0 {
			pool.Drain(id)
		} else {
			pool.Resume(id)
		}
		for _, s := range pool.Stats().Endpoints {
			if s.InFlight < 0 || s.Leaked != 0 || !(s.Success >= 0 && s.Success <= 1) {
				t.Errorf("%+v", s)
			}
		}
		runtime.Gosched()
	}
}
