package picker_test

import (
	"math"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

func TestT08LookingChangesNothing(t *testing.T) {
	f := newFleet(t, picker.P2C{}, endpoints(3), 8)
	f.run(time.Second, 1000, healthy)
	r := f.snapshot.Record(0)
	before := state(r, f.now+int64(time.Minute))
	for k := range int64(1000) {
		for _, sig := range []picker.Signal{picker.InFlight, picker.Latency, picker.PeakHold, picker.LogMean} {
			sig.Cost(r, f.now+k*ms)
		}
	}
	if after := state(r, f.now+int64(time.Minute)); before != after {
		t.Errorf("before %s, after %s", before, after)
	}
}

func TestT09SamplesInAnyOrderAndAtOneInstant(t *testing.T) {
	cost := func(order []int) int64 {
		_, s := build(t, picker.P2C{Signal: picker.PeakHold}, endpoints(1), nil)
		samples := []int64{10 * ms, 40 * ms, 20 * ms}
		for _, k := range order { // all end at the same instant
			one := picker.NewSnapshot(s.Members(), nil, picker.P2C{}, fixed{})
			p, _, _ := one.Pick(picker.Request{}, 100*ms-samples[k])
			p.Done(100*ms, picker.Result{Outcome: picker.Success})
		}
		return picker.PeakHold.Cost(s.Record(0), 100*ms)
	}
	if a, b := cost([]int{0, 1, 2}), cost([]int{1, 2, 0}); a != b {
		t.Errorf("the order of samples matters: %d and %d", a, b)
	}
}

// Penalties are sums of bounded logarithms: however bad an endpoint is, one more
// request in flight still makes it worse.
func TestT11PenaltiesDoNotSwallowCounts(t *testing.T) {
	_, s := build(t, picker.P2C{}, endpoints(1), nil)
	for range 50 {
		p := hold(t, s, 0)
		p.Done(math.MaxInt64/4, picker.Result{Outcome: picker.Timeout})
	}
	last := int64(0)
	for range 100 {
		hold(t, s, 0)
		c := picker.Latency.Cost(s.Record(0), math.MaxInt64/4)
		if c <= last {
			t.Fatalf("cost %d after %d with one more in flight", c, last)
		}
		last = c
	}
}

// A signal that is silently off shows: somebody who never calls Done sees it in the
// counts, and a policy that learns nothing says so.
func TestT24SignalsSayWhatTheyNeed(t *testing.T) {
	for _, tc := range []struct {
		policy picker.Policy
		want   picker.Need
	}{
		{picker.RoundRobin{}, 0},
		{picker.P2C{Signal: picker.InFlight}, 0},
		{picker.P2C{}, picker.NeedLatency | picker.NeedAge | picker.NeedSuccess | picker.NeedRamp},
		{picker.P2C{Signal: picker.PeakEWMA{Plain: true}}, picker.NeedLatency | picker.NeedEstimator},
	} {
		if got := tc.policy.Needs(); got != tc.want {
			t.Errorf("%#v needs %b, want %b", tc.policy, got, tc.want)
		}
	}
	_, s := build(t, picker.P2C{Signal: picker.InFlight}, endpoints(1), nil)
	for range 5 {
		if _, _, err := s.Pick(picker.Request{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.Record(0); r.InFlight() != 5 || r.Picks() != 5 {
		t.Errorf("in flight %d, picks %d; want 5 and 5", r.InFlight(), r.Picks())
	}
}

func TestBug53LosingCopiesOfHedgesAreNeutral(t *testing.T) {
	_, s := build(t, picker.P2C{}, endpoints(2), nil)
	now := int64(0)
	for range 1000 {
		now += 100 * ms
		a, b := holdAt(t, s, 0, now), holdAt(t, s, 1, now)
		a.Done(now+20*ms, picker.Result{Outcome: picker.Success})
		b.Done(now+20*ms, picker.Result{Outcome: picker.Canceled})
	}
	if r := s.Record(1); r.Success(now) != 1 || r.InFlight() != 0 {
		t.Errorf("the loser: success %v, in flight %d", r.Success(now), r.InFlight())
	}
}
