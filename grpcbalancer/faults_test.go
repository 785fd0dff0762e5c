package grpcbalancer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
)

// many is a list of n endpoints.
func many(n int) []resolver.Endpoint {
	list := make([]resolver.Endpoint, n)
	for i := range list {
		list[i] = at(fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255))
	}
	return list
}

func TestTenThousandEndpointsComeUpInFewPublications(t *testing.T) {
	if testcost.Race || testing.Short() {
		t.Skip("slow")
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(many(10_000)...)
		if n := r.policy.pool.Stats().Ready; n != 10_000 {
			t.Fatalf("%d are ready, want 10,000", n)
		}
		if n := r.publications(); n > 2+promptReady+2 {
			t.Errorf("%d publications", n)
		}
	})
}

// One connection of ten thousand is lost and made again: nobody else hears of it, and beyond
// the pool's copies of its list nothing is allocated for the others.
func TestOneChangeAmongTenThousandTouchesOneChild(t *testing.T) {
	if testcost.Race || testing.Short() {
		t.Skip("slow")
	}
	allocations := func(n int) (perFlap float64) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, `{"policy": "round_robin"}`)
			list := many(n)
			r.up(list...)
			r.mu.Lock()
			r.asked = nil
			r.mu.Unlock()
			flap := func() {
				r.conn(list[n/2].Addresses[0].Addr).becomes(connectivity.Idle, nil)
				r.settle()
				r.passWindow()
				r.forget()
			}
			flap()
			perFlap = testing.AllocsPerRun(5, flap)
			flap()
			r.forget()
			before, opened := r.publications(), r.opened
			r.conn(list[n/2].Addresses[0].Addr).becomes(connectivity.Idle, nil)
			r.settle()
			r.passWindow()
			if asked := r.asked; len(asked) != 1 || asked[0] != list[n/2].Addresses[0].Addr {
				t.Errorf("n=%d: %d children were touched, want one", n, len(asked))
			}
			if r.opened != opened || r.publications()-before > 2 {
				t.Errorf("n=%d: %d connections were made anew, and %d publications", n, r.opened-opened, r.publications()-before)
			}
		})
		return perFlap
	}
	small, large := allocations(100), allocations(10_000)
	if large > small+20 {
		t.Errorf("%v allocations for a change among 10,000, %v among 100", large, small)
	}
}

// Ten rolling deployments: each time the bad endpoint is ejected, and leaves the list while it is.
func TestEjectedEndpointsThatLeaveGiveTheirPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": "round_robin", "outlier": {"mode": "envoy", "max_ejection_percent": 10,
			"envoy": {"consecutive_5xx": 5}}}`)
		for generation := range 10 {
			list := make([]resolver.Endpoint, 10)
			for i := range list {
				list[i] = at(fmt.Sprintf("%d.%d", generation, i))
			}
			r.up(list...)
			for range 200 {
				addr, done := r.picked()
				if addr == fmt.Sprintf("%d.0", generation) {
					done(ended(coded(codes.Unavailable), true, true))
				} else {
					done(succeeded)
				}
			}
			if got := r.shares(90)[fmt.Sprintf("%d.0", generation)]; got != 0 {
				t.Fatalf("generation %d: %d of 90 picks went to the bad endpoint", generation, got)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestReconnectWithFiftyStreamsShiftsNoPick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": {"least": {"signal": "in_flight"}}}`)
		r.up(each("a", "b")...)
		held := map[string]int{}
		hold := func(n int) {
			for range n {
				addr, _ := r.picked()
				held[addr]++
			}
		}
		hold(100)
		r.conn("a").becomes(connectivity.Idle, nil) // GOAWAY: the streams go on
		r.settle()
		r.passWindow()
		hold(50)
		if held["a"] != 75 || held["b"] != 75 {
			t.Errorf("%v streams, want 75 each", held)
		}
	})
}

func TestOfTwoEndpointsTheIdleOneIsAlwaysPicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": {"p2c": {"signal": "in_flight"}}}`)
		r.up(each("a", "b")...)
		busy, done := r.picked()
		defer done(succeeded)
		if got := r.shares(100); got[busy] != 0 {
			t.Errorf("%d of 100 picks went to the busy one", got[busy])
		}
	})
}

func TestHashingLeavesNoEndpointOut(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const n, keys = 1000, 60_000
	for _, policy := range []string{"maglev", "ring_hash"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, `{"policy": {"`+policy+`": {"unbounded": true}}}`)
			r.up(many(n)...)
			got := map[string]int{}
			most := 0
			for i := range keys {
				addr, done := r.pickFor(evenkeel.WithKey(context.Background(), fmt.Sprint("key-", i)))
				done(succeeded)
				got[addr]++
				most = max(most, got[addr])
			}
			// gRPC's ring has 4.5 at this size.
			if len(got) != n || most > 2*keys/n {
				t.Errorf("%s: %d of %d endpoints have keys, the most %d times the mean", policy, len(got), n, most*n/keys)
			}
		})
	}
}

func TestFiveHundredEndpointsThatFlapAreAllReadyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		const n = 500
		list := many(n)
		r.up(list...)
		random := rand.New(rand.NewPCG(5, 5))
		for range 5 {
			for range n {
				e := list[random.IntN(n)]
				r.conn(e.Addresses[0].Addr).becomes(connectivity.Idle, nil)
				if random.IntN(50) == 0 {
					r.pump()
				}
			}
			r.settle()
			r.passWindow()
			if s, _ := r.policy.stats(); s.Ready != n || s.Pool.Ready != n {
				t.Fatalf("%d connections are READY, %d endpoints are picked, want %d", s.Ready, s.Pool.Ready, n)
			}
		}
	})
}

// paced sends calls at a steady rate for a while, in virtual time; serve says how long one takes on an
// endpoint and how it ends, forever for 0. It returns how many each endpoint got.
func (r *rig) paced(calls int, every time.Duration, serve func(addr string) (time.Duration, error)) map[string]int {
	got := map[string]int{}
	for range calls {
		addr, done := r.picked()
		got[addr]++
		if took, err := serve(addr); took > 0 {
			time.AfterFunc(took, func() { done(ended(err, true, true)) })
		}
		time.Sleep(every)
		r.settle()
	}
	return got
}

func TestBackendThatFailsFastGainsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b", "c", "d")...)
		got := r.paced(2000, time.Millisecond, func(addr string) (time.Duration, error) {
			if addr == "a" {
				return 100 * time.Microsecond, coded(codes.Unavailable)
			}
			return 10 * time.Millisecond, nil
		})
		if got["a"] > 100 {
			t.Errorf("the one that fails got %d of 2,000 calls: %v", got["a"], got)
		}
	})
}

func TestBackendThatHangsHoldsFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b", "c", "d")...)
		ok := func(string) (time.Duration, error) { return 5 * time.Millisecond, nil }
		r.paced(500, time.Millisecond, ok)
		got := r.paced(2000, time.Millisecond, func(addr string) (time.Duration, error) {
			if addr == "a" {
				return 0, nil
			}
			return 5 * time.Millisecond, nil
		})
		if got["a"] > 40 {
			t.Errorf("%d of 2,000 calls hang", got["a"])
		}
	})
}

func TestSlowEndpointGetsFewOfTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b")...)
		got := r.paced(4000, 2*time.Millisecond, func(addr string) (time.Duration, error) {
			if addr == "a" {
				return 50 * time.Millisecond, nil
			}
			return time.Millisecond, nil
		})
		if got["a"] > 400 {
			t.Errorf("the one that takes 50 times as long got %d of 4,000 calls", got["a"])
		}
	})
}

// A newcomer, of which nothing is known, gets at most about what others get, though its first answers are slow.
func TestNewEndpointIsNotFlooded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		list := []string{"a", "b", "c", "d"}
		r.up(each(list...)...)
		ok := func(string) (time.Duration, error) { return 5 * time.Millisecond, nil }
		r.paced(500, time.Millisecond, ok)
		r.up(each(append(list, "new")...)...)
		got := r.paced(100, time.Millisecond, func(addr string) (time.Duration, error) {
			if addr == "new" {
				return 20 * time.Millisecond, nil
			}
			return 5 * time.Millisecond, nil
		})
		if got["new"] > 20 {
			t.Errorf("the newcomer got %d of its first 100 calls", got["new"])
		}
		r.paced(6000, 10*time.Millisecond, ok) // in an idle fleet it takes a minute until that is forgotten
		if got = r.paced(500, time.Millisecond, ok); got["new"] < 30 {
			t.Errorf("the newcomer got %d of 500 calls, once it is well: %v", got["new"], got)
		}
	})
}

// A call that comes at the very instant at which a connection is lost waits for nothing.
func TestPublishingLeftReadyNeverDelaysACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		list := many(50)
		r.up(list...)
		r.manual = true // whoever is lost stays away
		for i, e := range list[1:] {
			before, start := r.publications(), time.Now()
			lost := r.conn(e.Addresses[0].Addr)
			lost.becomes(connectivity.Idle, nil)
			r.pump()
			if r.publications() == before {
				t.Fatalf("endpoint %d: nothing was published", i)
			}
			addr, done := r.picked()
			if done(succeeded); addr == lost.addr || !time.Now().Equal(start) {
				t.Fatalf("endpoint %d: picked %s, %v later", i, addr, time.Since(start))
			}
		}
	})
}

// The same with a real channel and servers, in virtual time: calls take none at all, though each
// meets connections that were just lost.
func TestCallsOverConnectionsJustLostTakeNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := newPiped(t, 5)
		for i := range 20 {
			fleet.lose(i % 5)
			start := time.Now()
			for range 10 {
				if err := fleet.call(); err != nil {
					t.Fatal(err)
				}
			}
			if d := time.Since(start); d >= coalesceFor {
				t.Errorf("ten calls took %v", d)
			}
			time.Sleep(time.Minute)
		}
	})
}
