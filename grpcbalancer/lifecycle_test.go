package grpcbalancer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// phases are the moments at which the channel may do anything.
var phases = []struct {
	name  string
	enter func(*rig)
}{
	{"new", func(*rig) {}},
	{"resolver error", func(r *rig) { r.policy.ResolverError(errors.New("x")) }},
	{"empty list", func(r *rig) { _ = r.send(nil) }},
	{"connecting", func(r *rig) { r.manual = true; r.update(each("a", "b")...) }},
	{"events queued", func(r *rig) { _ = r.send(each("a", "b")) }},
	{"ready", func(r *rig) { r.up(each("a", "b")...) }},
	{"window open", func(r *rig) { r.update(each("a", "b", "c", "d", "e", "f", "g", "h")...) }},
	{"failing", func(r *rig) {
		r.dial = func(string) error { return errors.New("refused") }
		r.up(each("a", "b")...)
	}},
	{"idle", func(r *rig) {
		r.up(each("a", "b")...)
		r.conn("a").becomes(connectivity.Idle, nil)
		r.pump()
	}},
}

// actions are what the channel may do.
var actions = []struct {
	name string
	do   func(*rig)
}{
	{"list", func(r *rig) { _ = r.send(each("b", "c")) }},
	{"empty list", func(r *rig) { _ = r.send(nil) }},
	{"resolver error", func(r *rig) { r.policy.ResolverError(errors.New("y")) }},
	{"exit idle", func(r *rig) { r.policy.ExitIdle() }},
	{"sub conn state", func(r *rig) { r.policy.UpdateSubConnState(nil, balancer.SubConnState{}) }},
	{"close", func(r *rig) { r.policy.Close() }},
}

func TestEveryCallInEveryPhase(t *testing.T) {
	for _, phase := range phases {
		for _, action := range actions {
			t.Run(phase.name+"/"+action.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, "")
					phase.enter(r)
					action.do(r)
					r.settle()
					r.passWindow()
					if p := r.latest().Picker; p != nil {
						_, _ = r.pick()
					}
					r.policy.Close()
					r.settle()
					if n := r.openConns(); n != 0 {
						t.Errorf("%d connections are open after Close", n)
					}
				})
			})
		}
	}
}

func TestNothingHappensAfterClose(t *testing.T) {
	for _, phase := range phases {
		t.Run(phase.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "")
				phase.enter(r)
				r.policy.Close()
				before, opened := r.publications(), r.opened
				for _, action := range actions {
					action.do(r)
				}
				for _, a := range []string{"a", "b"} {
					if c := r.conn(a); c != nil {
						c.becomes(connectivity.Ready, nil)
					}
				}
				r.settle()
				time.Sleep(time.Hour)
				r.settle()
				if r.publications() != before || r.opened != opened {
					t.Errorf("%d publications and %d connections after Close",
						r.publications()-before, r.opened-opened)
				}
				// A call that still holds the old picker waits for the next policy's.
				if p := r.latest().Picker; p != nil && r.state() == connectivity.Ready {
					if _, err := r.pick(); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
						t.Errorf("pick: %v, want to wait", err)
					}
				}
			})
		})
	}
}

// An attempt that outlives its policy is still counted off its record.
func TestDoneAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(at("a"))
		_, done := r.picked()
		r.policy.Close()
		done(succeeded)
		if s := r.stats("a"); s.InFlight != 0 {
			t.Errorf("%d in flight", s.InFlight)
		}
	})
}

// A publication may come while the lock of the child that reports is held, and the
// channel's: a pick needs none of them, and no child is called from within.
func TestLocksWhilePublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.onConnect = func() {
			if stack := callers(); strings.Contains(stack, "(*policy).report") {
				t.Errorf("a child is called from within a report:\n%s", stack)
			}
		}
		r.onPublish = func(s balancer.State) {
			if s.ConnectivityState == connectivity.Ready {
				if _, err := s.Picker.Pick(balancer.PickInfo{}); err != nil {
					t.Errorf("pick within the publication: %v", err)
				}
			}
		}
		r.up(each("a", "b", "c")...)
		for _, a := range []string{"a", "b", "c"} {
			r.conn(a).becomes(connectivity.Idle, nil)
		}
		r.settle()
		r.wantState(connectivity.Ready)
	})
}

func callers() string {
	buf := make([]byte, 16<<10)
	return string(buf[:runtime.Stack(buf, false)])
}

// Every event that a channel can deliver, in random order: after each, the picker
// serves the READY endpoints and no others, and at the end nothing is left.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomEvents(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func randomEvents(t *testing.T, rnd *rand.Rand) {
	r := newRig(t, `{"policy": "round_robin"}`)
	r.manual = true
	names := strings.Split("abcdefghij", "")
	for range 300 {
		switch c := r.conn(names[rnd.IntN(len(names))]); {
		case rnd.IntN(4) == 0:
			rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			_ = r.send(each(names[:rnd.IntN(len(names)+1)]...))
		case rnd.IntN(20) == 0:
			r.policy.ResolverError(errors.New("resolver"))
		case rnd.IntN(20) == 0:
			r.policy.ExitIdle()
		case c == nil:
		default:
			next := []connectivity.State{connectivity.Idle, connectivity.Connecting, connectivity.Ready,
				connectivity.TransientFailure}[rnd.IntN(4)]
			c.becomes(next, errors.New("connection"))
		}
		if rnd.IntN(3) > 0 {
			r.settle()
			r.passWindow()
			checkAgainstChildren(t, r)
		}
	}
	r.policy.Close()
	r.settle()
	if n := r.openConns(); n != 0 {
		t.Errorf("%d connections are open after Close", n)
	}
}

// checkAgainstChildren compares counts, pool and picker with what the children said,
// read one by one.
func checkAgainstChildren(t *testing.T, r *rig) {
	t.Helper()
	counts := map[connectivity.State]int{}
	ready := 0
	for key, e := range r.policy.children {
		counts[e.state.Load().ConnectivityState]++
		if got := r.stats(key).State; got != poolState(e) {
			t.Fatalf("%s is %v and the pool has state %v", key, e.state.Load().ConnectivityState, got)
		}
		if e.is(connectivity.Ready) {
			ready++
		}
	}
	for s, n := range r.policy.counts {
		if counts[connectivity.State(s)] != n {
			t.Fatalf("%v endpoints are counted as %v, want %v", n, connectivity.State(s), counts[connectivity.State(s)])
		}
	}
	if !r.policy.hasShown {
		return
	}
	if want := r.policy.aggregate(); r.state() != want {
		t.Fatalf("the channel shows %v, want %v", r.state(), want)
	}
	if ready > 0 {
		if got := r.shares(3 * ready); len(got) != ready {
			t.Fatalf("%d endpoints are picked, want the %d that are READY", len(got), ready)
		}
	}
}

// gRPC promises to make its calls one by one. Where a parent breaks that, nothing may
// break here.
func TestCallsThatOverlap(t *testing.T) {
	for range 20 {
		c := newFakeChannel()
		p := builder{}.Build(c, balancer.BuildOptions{}).(*policy)
		var all sync.WaitGroup
		for i, do := range []func(){
			func() { _ = p.UpdateClientConnState(stateOf(each("a", "b", "c"))) },
			func() { _ = p.UpdateClientConnState(stateOf(each("b", "c", "d"))) },
			func() { _ = p.UpdateClientConnState(stateOf(nil)) },
			func() { p.ResolverError(errors.New("x")) },
			p.ExitIdle,
			c.pump,
			func() { pickOnce(c) },
			p.Close,
		} {
			all.Go(func() {
				for range 20 {
					do()
					if i == 7 {
						return
					}
				}
			})
		}
		all.Wait()
		c.pump()
		if n := c.openConns(); n != 0 {
			t.Fatalf("%d connections are open after Close", n)
		}
	}
}

func stateOf(list []resolver.Endpoint) balancer.ClientConnState {
	return balancer.ClientConnState{ResolverState: resolver.State{Endpoints: list}}
}

func pickOnce(c *fakeChannel) {
	s := c.latest()
	if s.Picker == nil {
		return
	}
	if result, err := s.Picker.Pick(balancer.PickInfo{}); err == nil {
		result.Done(succeeded)
	}
}
