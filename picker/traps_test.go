package picker_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

// fleet drives a registry in virtual time: arrivals at a constant pace, each endpoint
// answering as its function says. It has no queues: the traps need none.
type fleet struct {
	tb       testing.TB
	registry *picker.Registry
	policy   picker.Policy
	snapshot *picker.Snapshot
	now      int64
	events   ends
	counts   map[string]int
	kind     picker.Kind
}

// end is one request's end to come.
type end struct {
	at     int64
	pick   picker.Pick
	result picker.Result
}

type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

func newFleet(tb testing.TB, policy picker.Policy, list []picker.Endpoint, seed uint64) *fleet {
	tb.Helper()
	g, s := build(tb, policy, list, rand.New(rand.NewPCG(seed, 99)).Uint64)
	return &fleet{tb: tb, registry: g, policy: policy, snapshot: s, counts: map[string]int{}}
}

func (f *fleet) update(list []picker.Endpoint) {
	f.tb.Helper()
	m, err := f.registry.Members(list, f.now)
	if err != nil {
		f.tb.Fatal(err)
	}
	f.snapshot = picker.NewSnapshot(m, nil, f.policy, f.policy.Build(m, nil))
}

// run sends rate requests a second for d; answer says how the endpoint at an index
// answers one sent at an instant: after how long, and with what.
func (f *fleet) run(d time.Duration, rate int64, answer func(i int, now int64) (time.Duration, picker.Outcome)) {
	f.tb.Helper()
	step := int64(time.Second) / rate
	sweep := f.now
	for until := f.now + int64(d); f.now < until; f.now += step {
		f.finish(f.now)
		if f.now >= sweep {
			f.registry.Sweep(f.now)
			sweep = f.now + int64(time.Second)
		}
		p, i, err := f.snapshot.Pick(picker.Request{Kind: f.kind}, f.now)
		if err != nil {
			f.tb.Fatal(err)
		}
		f.counts[p.Record().ID()]++
		after, outcome := answer(i, f.now)
		heap.Push(&f.events, end{f.now + int64(after), p, picker.Result{Outcome: outcome}})
	}
}

// finish ends what ends up to instant now.
func (f *fleet) finish(now int64) {
	for len(f.events) > 0 && f.events[0].at <= now {
		e := heap.Pop(&f.events).(end)
		e.pick.Done(e.at, e.result)
	}
}

func (f *fleet) share(id string) float64 {
	total := 0
	for _, n := range f.counts {
		total += n
	}
	return float64(f.counts[id]) / float64(total)
}

const usual = 20 * time.Millisecond

func healthy(int, int64) (time.Duration, picker.Outcome) { return usual, picker.Success }

func TestT02ColdEndpointIsNotStarved(t *testing.T) {
	for _, factor := range []time.Duration{1, 3} { // as fast as the others, and slower
		f := newFleet(t, picker.P2C{}, endpoints(10), 2)
		f.run(5*time.Second, 1000, healthy)
		f.update(endpoints(11))
		clear(f.counts)
		f.run(time.Minute, 1000, func(i int, _ int64) (time.Duration, picker.Outcome) {
			if i == 10 {
				return factor * usual, picker.Success
			}
			return usual, picker.Success
		})
		if f.counts["e10"] < 20 {
			t.Errorf("a newcomer %d times slower got %d requests in a minute", factor, f.counts["e10"])
		}
	}
}

func TestT03FailingFastIsNotPreferred(t *testing.T) {
	for _, policy := range []picker.Policy{picker.P2C{}, picker.P2C{Choices: 5}, picker.Least{Signal: picker.Latency}, picker.P2C{Signal: picker.PeakHold}} {
		f := newFleet(t, policy, endpoints(10), 3)
		f.run(10*time.Second, 2000, healthy)
		clear(f.counts)
		f.run(30*time.Second, 2000, func(i int, _ int64) (time.Duration, picker.Outcome) {
			if i == 0 {
				return time.Millisecond, picker.Failure
			}
			return usual, picker.Success
		})
		if got := f.share("e0"); got > 0.002 {
			t.Errorf("%#v: the failing endpoint gets %.2f %%", policy, 100*got)
		}
	}
}

func TestT04RateLimitedIsNotPreferred(t *testing.T) {
	f := newFleet(t, picker.P2C{}, endpoints(10), 4)
	f.run(20*time.Second, 2000, func(i int, _ int64) (time.Duration, picker.Outcome) {
		if i == 0 {
			return time.Millisecond, picker.Overload
		}
		return usual, picker.Success
	})
	if got := f.share("e0"); got > 0.002 {
		t.Errorf("the rate-limited endpoint gets %.2f %%", 100*got)
	}
}

// The slow endpoint is tried now and then, and no more: fading is a budget.
func TestT05IdleSlowEndpointDoesNotLookFastest(t *testing.T) {
	for _, tc := range []struct {
		policy picker.Policy
		most   float64
	}{{picker.P2C{}, 0.01}, {picker.P2C{Signal: picker.PeakHold}, 0.02}} {
		f := newFleet(t, tc.policy, endpoints(5), 5)
		f.run(30*time.Minute, 2, func(i int, _ int64) (time.Duration, picker.Outcome) {
			if i == 0 {
				return time.Second, picker.Success
			}
			return usual, picker.Success
		})
		if got := f.share("e0"); got > tc.most {
			t.Errorf("%#v: an idle pool sends the slow endpoint %.1f %%", tc.policy, 100*got)
		}
	}
}

func TestT06HungEndpointLosesItsShareBeforeTheFirstTimeout(t *testing.T) {
	f := newFleet(t, picker.P2C{}, endpoints(10), 6)
	f.run(10*time.Second, 2000, healthy)
	clear(f.counts)
	f.run(20*time.Second, 2000, func(i int, _ int64) (time.Duration, picker.Outcome) {
		if i == 0 {
			return 30 * time.Second, picker.Timeout // its first comes after the run
		}
		return usual, picker.Success
	})
	if got := f.counts["e0"]; got > 30 {
		t.Errorf("a hung endpoint got %d of 40,000 requests", got)
	}
}

func TestT07WorstEndpointNeverWins(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		_, s := build(t, picker.P2C{Signal: picker.InFlight}, endpoints(n), rand.New(rand.NewPCG(7, 7)).Uint64)
		hold(t, s, n-1)
		for range 10_000 {
			p, i, _ := s.Pick(picker.Request{}, 0)
			if i == n-1 {
				t.Fatalf("n = %d: the busiest endpoint won", n)
			}
			p.Done(0, picker.Result{})
		}
	}
}

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

func TestT10SuccessRecoversCompletely(t *testing.T) {
	f := newFleet(t, picker.P2C{}, endpoints(2), 10)
	f.run(10*time.Second, 2000, func(int, int64) (time.Duration, picker.Outcome) { return usual, picker.Failure })
	f.run(2*time.Minute, 2000, healthy)
	for i := range 2 {
		if got := f.snapshot.Record(i).Success(f.now); got < 0.99999 {
			t.Errorf("endpoint %d: success %v two minutes after an outage", i, got)
		}
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

func TestT15ChoicesUseCountsOfThisInstant(t *testing.T) {
	for _, tc := range []struct {
		policy picker.Policy
		most   func(k int64) int64 // how far apart counts of about k may be
	}{
		{picker.P2C{Signal: picker.InFlight}, func(int64) int64 { return 1 }},
		{picker.P2C{}, func(k int64) int64 { return 1 + k/10 }}, // the band of ties
	} {
		_, s := build(t, tc.policy, endpoints(2), nil)
		for k := range int64(1000) {
			if _, _, err := s.Pick(picker.Request{}, 0); err != nil {
				t.Fatal(err)
			}
			d := s.Record(0).InFlight() - s.Record(1).InFlight()
			if d = max(d, -d); d > tc.most(k/2) {
				t.Fatalf("%#v: after %d picks in one instant the counts differ by %d", tc.policy, k+1, d)
			}
		}
	}
}

func TestT16FewEndpointsDoNotOscillate(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		f := newFleet(t, picker.P2C{}, endpoints(n), 16)
		r := rand.New(rand.NewPCG(16, 17))
		worst := int64(0)
		f.run(30*time.Second, 500, func(int, int64) (time.Duration, picker.Outcome) {
			least, most := int64(math.MaxInt64), int64(0)
			for i := range n {
				k := f.snapshot.Record(i).InFlight()
				least, most = min(least, k), max(most, k)
			}
			worst = max(worst, most-least)
			return time.Duration(r.ExpFloat64() * float64(usual)), picker.Success
		})
		if worst > 15 { // ten in flight on average: the spread of a random split
			t.Errorf("n = %d: counts differ by %d", n, worst)
		}
	}
}

func TestT17IdenticalEndpointsShareEqually(t *testing.T) {
	f := newFleet(t, picker.P2C{}, endpoints(4), 17)
	r := rand.New(rand.NewPCG(17, 18))
	f.run(5*time.Minute, 50, func(int, int64) (time.Duration, picker.Outcome) {
		return time.Duration((0.8 + 0.4*r.Float64()) * float64(usual)), picker.Success
	})
	for i := range 4 {
		id := f.snapshot.Record(i).ID()
		if got := f.share(id); got < 0.2 || got > 0.32 {
			t.Errorf("%s gets %.0f %% of four equal ones", id, 100*got)
		}
	}
}

func TestT18IdlePoolIsSpread(t *testing.T) {
	f := newFleet(t, picker.P2C{}, endpoints(4), 18)
	f.run(10*time.Minute, 10, healthy) // never two at once
	for i := range 4 {
		id := f.snapshot.Record(i).ID()
		if got := f.share(id); math.Abs(got-0.25) > 0.04 {
			t.Errorf("%s gets %.1f %% of sequential requests", id, 100*got)
		}
	}
}

func TestT19TiesAreNotDecidedByOrder(t *testing.T) {
	for _, tc := range comparing {
		_, s := build(t, tc.policy, endpoints(3), rand.New(rand.NewPCG(19, 20)).Uint64)
		counts := make([]int, 3)
		for range 30_000 {
			p, i, _ := s.Pick(picker.Request{}, 0)
			counts[i]++
			p.Done(0, picker.Result{})
		}
		for i, n := range counts {
			if math.Abs(float64(n-10_000)) > 5*math.Sqrt(30_000*2.0/9) {
				t.Errorf("%s: endpoint %d got %d of 30,000", tc.name, i, n)
			}
		}
	}
}

// Uniform draws of two would cap the heavy one at 20 %. With few requests in flight the
// light ones, idle, still win some comparisons; with many, counts settle by weight.
func TestT20HeavyEndpointIsNotCappedByTwoDraws(t *testing.T) {
	list := weighted(1, 1, 1, 1, 1, 1, 1, 1, 1, 91)
	for _, tc := range []struct {
		rate  int64
		least float64
	}{{10, 0.80}, {1000, 0.6}, {20_000, 0.88}} {
		f := newFleet(t, picker.P2C{Signal: picker.InFlight}, list, 20)
		f.run(10*time.Second, tc.rate, healthy)
		if got := f.share("e9"); got < tc.least {
			t.Errorf("at %d a second 91 %% of the weight gets %.1f %% of the requests", tc.rate, 100*got)
		}
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

func TestT27HintsEndAtDifferentInstantsAndRecoveryIsSlow(t *testing.T) {
	least, most := time.Duration(math.MaxInt64), time.Duration(0)
	for seed := range uint64(50) { // fifty clients with the same hint
		f := newFleet(t, picker.P2C{}, endpoints(10), seed)
		p := hold(t, f.snapshot, 0)
		p.Done(0, picker.Result{Outcome: picker.Overload, RetryAfter: 10 * time.Second})
		d := f.snapshot.Record(0).AvoidFor(0)
		least, most = min(least, d), max(most, d)
	}
	if most-least < time.Second {
		t.Errorf("fifty clients come back within %v of each other", most-least)
	}
	f := newFleet(t, picker.P2C{}, endpoints(10), 27)
	f.run(2*time.Second, 1000, healthy)
	p := hold(t, f.snapshot, 0)
	p.Done(f.now, picker.Result{Outcome: picker.Overload, RetryAfter: time.Second})
	f.run(1100*time.Millisecond, 1000, healthy) // until the hint is over
	clear(f.counts)
	f.run(time.Second, 1000, healthy)
	if got := f.counts["e0"]; got > 50 {
		t.Errorf("it got %d in the first second after its hint, fair would be 100", got)
	}
	f.run(10*time.Second, 1000, healthy)
	clear(f.counts)
	f.run(5*time.Second, 1000, healthy)
	if got := f.share("e0"); got < 0.07 {
		t.Errorf("ten seconds later it has %.1f %%, fair is 10", 100*got)
	}
}

func TestBug1NewcomerStartsAtTheMedianAndOthersKeepTheirs(t *testing.T) {
	f := newFleet(t, picker.P2C{}, endpoints(2), 101)
	f.run(5*time.Second, 200, func(i int, _ int64) (time.Duration, picker.Outcome) {
		return []time.Duration{50 * time.Millisecond, 30 * time.Millisecond}[i], picker.Success
	})
	f.finish(math.MaxInt64)
	f.registry.Sweep(f.now)
	cost := func(i int) float64 {
		return ewma.Exp2(picker.Latency.Cost(f.snapshot.Record(i), f.now)) / 1e6
	}
	before := [2]float64{cost(0), cost(1)}
	f.update(endpoints(3))
	if cost(0) != before[0] || cost(1) != before[1] {
		t.Errorf("costs were %v, are %v and %v", before, cost(0), cost(1))
	}
	if got := cost(2); got < 30 || got > 50 {
		t.Errorf("the newcomer starts at %.1f ms, want between 30 and 50", got)
	}
	clear(f.counts)
	f.run(500*time.Millisecond, 200, func(i int, _ int64) (time.Duration, picker.Outcome) {
		return []time.Duration{50 * time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond}[i], picker.Success
	})
	if f.counts["e2"] > 40 {
		t.Errorf("the newcomer got %d of the first 100", f.counts["e2"])
	}
}

func TestBug47RequestsCountFromThePick(t *testing.T) {
	// One of two endpoints takes 3 s to connect: nothing is known of it yet, but what
	// waits for it is counted.
	_, s := build(t, picker.P2C{Signal: picker.InFlight}, endpoints(2), nil)
	for range 100 {
		if _, _, err := s.Pick(picker.Request{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		if got := s.Record(i).InFlight(); got != 50 {
			t.Errorf("endpoint %d has %d of 100 requests", i, got)
		}
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
