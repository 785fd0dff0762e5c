package grpcbalancer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
)

// rememberFor has policies remember during a test, which is in a bubble.
func rememberFor(t *testing.T, d time.Duration) {
	Remember(d)
	t.Cleanup(func() { Remember(0) })
}

// taught is a rig whose policy knows that a is slow and fails, and has an attempt open there.
func taught(t *testing.T, config string) (r *rig, open func(balancer.DoneInfo)) {
	t.Helper()
	r = newRig(t, config)
	r.up(each("a", "b", "c")...)
	for range 10 {
		done := r.pickedOn("a")
		time.Sleep(300 * time.Millisecond)
		done(ended(status.Error(codes.Unavailable, "x"), true, true))
		done = r.pickedOn("b")
		time.Sleep(time.Millisecond)
		done(succeeded)
	}
	return r, r.pickedOn("a")
}

func TestWhatWasLearntOutlastsThePolicy(t *testing.T) {
	for _, config := range []string{`{}`, `{"policy": "round_robin"}`, `{"health": {}}`} {
		synctest.Test(t, func(t *testing.T) {
			rememberFor(t, time.Minute)
			r, open := taught(t, config)
			r.policy.pool.SetStates([]evenkeel.StateChange{{ID: "b", State: evenkeel.Failing, Source: evenkeel.Checks}})
			r.policy.Close()
			if n := r.policy.pool.Stats().Ready; n != 0 {
				t.Errorf("%d endpoints are ready without a connection", n)
			}
			time.Sleep(30 * time.Second)
			again := newRig(t, `{}`) // another config is a change of it
			again.up(each("a", "b", "c", "d")...)
			if again.policy.pool != r.policy.pool {
				t.Fatal("the pool is another one")
			}
			a, b := again.stats("a"), again.stats("b")
			if a.Picks != 11 || a.InFlight != 1 || a.Success == 1 && a.Ejection.Epoch == 0 || a.State != evenkeel.Ready || b.Success != 1 {
				t.Errorf("%s: a is %+v\nb is %+v", config, a, b)
			}
			if n := again.policy.pool.Stats().Ready; n != 4 {
				t.Errorf("%s: %d are ready, want 4", config, n)
			}
			open(succeeded)
			if a := again.stats("a"); a.InFlight != 0 {
				t.Errorf("%d in flight at rest", a.InFlight)
			}
		})
	}
}

func TestNothingIsRememberedUnlessAskedForNorForLonger(t *testing.T) {
	for what, c := range map[string]struct {
		span   time.Duration
		config string
		away   time.Duration
		forget bool
	}{
		"not asked for": {0, `{}`, 0, false},
		"too long":      {time.Minute, `{}`, 61 * time.Second, false},
		"taken back":    {time.Minute, `{}`, 0, true},
		"a subset":      {time.Minute, `{"subset": {"size": 20}}`, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			rememberFor(t, c.span)
			r, open := taught(t, c.config)
			r.policy.Close()
			time.Sleep(c.away)
			synctest.Wait()
			if c.forget {
				Remember(0)
			}
			again := newRig(t, c.config)
			again.up(each("a", "b", "c")...)
			if a := again.stats("a"); a.Picks != 0 {
				t.Errorf("%s: %+v", what, a)
			}
			if _, err := r.policy.pool.Pick(evenkeel.Request{}); !errors.Is(err, evenkeel.ErrClosed) {
				t.Errorf("%s: the old pool is still open: %v", what, err)
			}
			open(succeeded)
		})
	}
}

// A picker that is left over never gives away a connection of another channel, whoever has the pool now.
func TestLatePickersOfAClosedPolicyPickNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rememberFor(t, time.Minute)
		r, open := taught(t, `{}`)
		open(succeeded)
		late := r.latest().Picker
		try := func(when string) {
			t.Helper()
			if _, err := late.Pick(balancer.PickInfo{}); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
				t.Errorf("%s: %v", when, err)
			}
		}
		r.policy.Close()
		try("while nobody has the pool")
		again := newRig(t, `{}`)
		again.up(each("a", "b", "c")...)
		try("while another policy has it")
		if got := again.shares(30); len(got) == 0 {
			t.Error("the other one serves nobody")
		}
		for _, addr := range []string{"a", "b", "c"} {
			if n := again.stats(addr).InFlight; n != 0 {
				t.Errorf("%s has %d in flight at rest", addr, n)
			}
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		m.remember(time.Hour)
		keep := func(name string) *keepsake {
			k, err := newKeepsake(evenkeel.Config{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.keep(memoryKey{Name, name}, k)
			time.Sleep(time.Second)
			return k
		}
		for i := range maxKept + 10 {
			keep(fmt.Sprint(i))
		}
		if len(m.kept) != maxKept || m.take(memoryKey{Name, "9"}) != nil || m.take(memoryKey{Name, "10"}) == nil {
			t.Errorf("%d are kept, and not the last ones", len(m.kept))
		}
		one, two := keep("x"), keep("x")
		if _, err := one.pool.Pick(evenkeel.Request{}); !errors.Is(err, evenkeel.ErrClosed) {
			t.Errorf("what was replaced is not closed: %v", err)
		}
		if m.take(memoryKey{Name, "x"}) != two {
			t.Error("the last one does not count")
		}
		keep("") // whose target is unknown
		if m.take(memoryKey{Name, ""}) != nil {
			t.Error("a channel without a target is kept")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if len(m.kept) != 0 {
			t.Errorf("%d are kept after two hours", len(m.kept))
		}
	})
}

// A real channel that idles, and one that names another policy for a while.
func TestWhatIsKnownSurvivesIdlenessAndOtherPolicies(t *testing.T) {
	Remember(time.Hour)
	defer Remember(0)
	servers := fleet(t, 2)
	c := dial(t, lbConfigOf(`{"policy": "round_robin"}`), grpc.WithIdleTimeout(30*time.Millisecond))
	c.resolver.InitialState(endpointsOf(servers...))
	picks := func() (n uint64) {
		for _, s := range statsOf(c.policy()) {
			n += s.Picks
		}
		return n
	}
	c.calls(10)
	first := c.policy()
	eventually(t, "the channel idles", func() bool { return c.cc.GetState() == connectivity.Idle })
	c.calls(10)
	if n := picks(); n < 20 || c.policy() == first {
		t.Errorf("%d picks, want those from before too", n)
	}
	_ = c.cc.Close()

	c = connect(t, lbConfigOf(`{"policy": "round_robin"}`), servers)
	before := picks() // a channel to the same target, after the other one
	if before < 20 {
		t.Errorf("%d picks, want those of the last channel too", before)
	}
	first = c.policy()
	state := endpointsOf(servers...)
	for _, config := range []string{`{"loadBalancingConfig": [{"round_robin": {}}]}`, lbConfigOf(`{}`)} {
		state.ServiceConfig = c.resolver.CC().ParseServiceConfig(config)
		c.resolver.UpdateState(state)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for ctx.Err() == nil && !closedNow(first) {
			c.calls(1)
		}
	}
	eventually(t, "the policy is back", func() bool { c.calls(1); return c.policy() != first })
	eventually(t, "it has what was known, without calls", func() bool { return picks() >= before })
	eventually(t, "it is in use", func() bool { c.calls(1); return picks() > before })
}

func closedNow(p *policy) bool {
	p.calls.Lock()
	defer p.calls.Unlock()
	return p.closed
}
