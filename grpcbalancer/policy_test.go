package grpcbalancer

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
)

func TestFirstListConnectsAndServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		if err := r.send(each("a", "b")); err != nil {
			t.Fatal(err)
		}
		// The channel assumes nothing: the policy has to say at once that it connects.
		r.wantState(connectivity.Connecting)
		if n := r.publications(); n != 1 {
			t.Errorf("%d publications, want 1 for the update", n)
		}
		if _, err := r.pick(); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			t.Fatalf("pick while connecting: %v, want to wait", err)
		}
		r.settle()
		r.wantState(connectivity.Ready)
		if got := r.shares(100); got["a"] == 0 || got["b"] == 0 {
			t.Fatalf("shares %v, want both", got)
		}
	})
}

// The whole is the best of its parts, in gRPC's order.
func TestStateOfTheWhole(t *testing.T) {
	const (
		idle, connecting = connectivity.Idle, connectivity.Connecting
		ready, failure   = connectivity.Ready, connectivity.TransientFailure
	)
	for _, c := range []struct {
		children []connectivity.State
		want     connectivity.State
	}{
		{nil, failure},
		{[]connectivity.State{failure}, failure},
		{[]connectivity.State{failure, idle}, idle},
		{[]connectivity.State{failure, idle, connecting}, connecting},
		{[]connectivity.State{failure, idle, connecting, ready}, ready},
		{[]connectivity.State{ready, ready}, ready},
		{[]connectivity.State{idle, connecting}, connecting},
	} {
		t.Run(fmt.Sprint(c.children), func(t *testing.T) {
			p := &policy{}
			for _, s := range c.children {
				p.counts[s]++
			}
			if got := p.aggregate(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestLostConnectionIsLeftAtOnceAndMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": "round_robin"}`)
		r.up(each("a", "b")...)
		r.manual = true
		r.conn("a").becomes(connectivity.Idle, nil)
		before := r.publications()
		r.pump()
		if r.publications() == before {
			t.Fatal("leaving READY was not published at once")
		}
		if got := r.shares(100); got["b"] != 100 {
			t.Fatalf("shares %v, want b alone", got)
		}
		r.settle()
		if asked := r.conn("a").asked; asked != 2 {
			t.Fatalf("Connect was called %d times, want once more without anybody asking", asked)
		}
		r.conn("a").becomes(connectivity.Ready, nil)
		r.settle()
		r.passWindow()
		if got := r.shares(100); got["a"] != 50 {
			t.Fatalf("shares %v, want halves", got)
		}
	})
}

func TestAllLostQueuesUntilOneIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b")...)
		r.manual = true
		for _, a := range []string{"a", "b"} {
			r.conn(a).becomes(connectivity.Idle, nil)
		}
		r.settle()
		r.wantState(connectivity.Connecting)
		if _, err := r.pick(); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			t.Fatalf("pick: %v, want to wait", err)
		}
		r.conn("b").becomes(connectivity.Ready, nil)
		r.settle()
		r.wantState(connectivity.Ready)
	})
}

// A failing endpoint stays failing until it is READY (gRFC A62), and calls get the
// errors of all endpoints in turn.
func TestFailureRotatesOverTheErrorsOfTheEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.dial = func(addr string) error { return errors.New("cannot reach " + addr) }
		r.up(each("a", "b", "c")...)
		r.wantState(connectivity.TransientFailure)
		seen := map[string]int{}
		for range 6 {
			_, err := r.pick()
			seen[fmt.Sprint(err)]++
		}
		for _, a := range []string{"a", "b", "c"} {
			if seen["cannot reach "+a] != 2 {
				t.Errorf("errors %v, want each twice", seen)
			}
		}
		// Its back-off over, a connection goes idle, is asked for again and connects.
		r.manual = true
		r.conn("a").becomes(connectivity.Idle, nil)
		r.settle()
		r.wantState(connectivity.TransientFailure)
		r.conn("a").becomes(connectivity.Ready, nil)
		r.settle()
		r.wantState(connectivity.Ready)
	})
}

func TestNewErrorsReachCallsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.dial = func(string) error { return errors.New("first") }
		r.up(at("a"))
		before := r.publications()
		for range 5 {
			r.conn("a").becomes(connectivity.TransientFailure, errors.New("second"))
		}
		r.settle()
		r.passWindow()
		if n := r.publications() - before; n != 1 {
			t.Errorf("%d publications, want 1 for all", n)
		}
		if _, err := r.pick(); err == nil || err.Error() != "second" {
			t.Errorf("error %v, want the latest", err)
		}
	})
}

func TestEndpointWithSeveralAddressesIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.dial = func(addr string) error {
			if addr == "v6" {
				return errors.New("no route")
			}
			return nil
		}
		r.up(at("v6", "v4"), at("b"))
		if got := r.shares(100); got["v4"] == 0 || got["b"] == 0 || len(got) != 2 {
			t.Fatalf("shares %v, want the reachable address and b", got)
		}
		if s := r.stats("v4,v6"); s.Picks == 0 || len(statsOf(r.policy)) != 2 {
			t.Fatalf("%+v", statsOf(r.policy))
		}
	})
}

func TestOfDuplicatesTheFirstCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		first := weight.Set(at("a", "b"), weight.EndpointInfo{Weight: 7})
		second := weight.Set(at("b", "a", "a"), weight.EndpointInfo{Weight: 9})
		r.up(first, second, at("c"), resolver.Endpoint{}, at("c"))
		if all := statsOf(r.policy); len(all) != 2 || all["a,b"].Weight != 7 || all["c"].Weight != 1 {
			t.Fatalf("%+v", all)
		}
	})
}

func TestUpdateThatChangesNothingDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b", "c")...)
		before, opened := r.publications(), r.opened
		r.up(each("c", "a", "b")...)
		if r.publications() != before || r.opened != opened {
			t.Errorf("%d publications and %d connections more, want none",
				r.publications()-before, r.opened-opened)
		}
	})
}

func TestWeightIsReadOnEachUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		weighted := func(w uint32) resolver.Endpoint {
			return weight.Set(at("a"), weight.EndpointInfo{Weight: w})
		}
		done := func() func(balancer.DoneInfo) {
			r.up(weighted(3), at("b"))
			return r.pickedOn("a")
		}()
		for _, c := range []struct {
			endpoint resolver.Endpoint
			want     float64
		}{
			{weighted(3), 3},
			{weighted(1 << 31), 1 << 31}, // xDS sends fractions of 2^31
			{weighted(0), 1},             // how an absent one reads
			{at("a"), 1},
		} {
			r.up(c.endpoint, at("b"))
			if s := r.stats("a"); s.Weight != c.want || s.InFlight != 1 {
				t.Errorf("weight %v with %d in flight, want %v with 1", s.Weight, s.InFlight, c.want)
			}
		}
		if r.opened != 2 {
			t.Errorf("%d connections were made, want 2", r.opened)
		}
		done(succeeded)
	})
}

func TestFailedHealthCheckTakesOutAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b")...)
		r.conn("a").healthBecomes(connectivity.TransientFailure, errors.New("not serving"))
		r.settle()
		if got := r.shares(100); got["a"] != 0 {
			t.Fatalf("shares %v, want none for a", got)
		}
		r.conn("a").healthBecomes(connectivity.Ready, nil)
		r.settle()
		r.passWindow()
		if got := r.shares(100); got["a"] == 0 {
			t.Fatalf("shares %v, want a back", got)
		}
	})
}

func TestExitIdleConnectsIdleChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.policy.ExitIdle() // before the first list: nothing to do
		r.up(each("a", "b")...)
		r.conn("a").becomes(connectivity.Idle, nil)
		r.pump()
		r.policy.ExitIdle()
		r.settle()
		r.passWindow()
		if got := r.shares(100); got["a"] == 0 {
			t.Fatalf("shares %v, want a back", got)
		}
	})
}

// If all clients began at the head of the list, its head would get all the first
// requests.
func TestConnectingStartsAtARandomEndpoint(t *testing.T) {
	first := map[string]bool{}
	for i := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			r := newSeededRig(t, "", func() uint64 { return i })
			if err := r.send(each("a", "b", "c")); err != nil {
				t.Fatal(err)
			}
			first[r.asked[0]] = true
			if len(r.asked) != 3 {
				t.Errorf("%d connections were asked for, want 3", len(r.asked))
			}
		})
	}
	if len(first) != 3 {
		t.Errorf("first were %v, want each once", first)
	}
}

// What a parent does with its slices after the call is its own affair.
func TestListIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		list := each("a", "b")
		r.up(list...)
		list[0].Addresses[0].ServerName = "changed in place"
		r.up(list...)
		if r.opened != 3 {
			t.Errorf("%d connections were made, want one more for the changed address", r.opened)
		}
	})
}

func TestConfigCanChangeAndRecordsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": "random"}`)
		r.up(each("a", "b", "c")...)
		done := r.pickedOn("a")
		r.config = parse(t, `{"policy": "round_robin"}`)
		r.up(each("a", "b", "c")...)
		if got := r.shares(300); got["a"] != 100 || got["b"] != 100 {
			t.Errorf("shares %v, want thirds", got)
		}
		if s := r.stats("a"); s.InFlight != 1 {
			t.Errorf("%d in flight, want the attempt from before", s.InFlight)
		}
		done(succeeded)
	})
}

func TestThousandEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		list := make([]resolver.Endpoint, 1000)
		for i := range list {
			list[i] = at(fmt.Sprintf("10.0.%d.%d:80", i/256, i%256))
		}
		r.up(list...)
		if n := r.policy.pool.Stats().Ready; n != 1000 {
			t.Fatalf("%d are ready, want 1000", n)
		}
		// One for CONNECTING, one for each of the first, and the windows.
		if n := r.publications(); n > 2+promptReady+2 {
			t.Errorf("%d publications for 1,000 endpoints that came up together", n)
		}
		got := r.shares(20_000)
		if len(got) < 990 {
			t.Errorf("%d endpoints got requests", len(got))
		}
	})
}
