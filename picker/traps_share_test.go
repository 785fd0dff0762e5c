package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

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

// spreadOf returns the mean difference between the most and the least that two or more endpoints
// have in flight, as requests find it, with ten in flight in the mean and exponential work.
func spreadOf(t *testing.T, policy picker.Policy, n int) float64 {
	f := newFleet(t, policy, endpoints(n), 16)
	r := rand.New(rand.NewPCG(16, 17))
	sum, seen := int64(0), 0
	work := func(_ int, now int64) (time.Duration, picker.Outcome) {
		least, most := int64(math.MaxInt64), int64(0)
		for i := range n {
			k := f.snapshot.Record(i).InFlight()
			least, most = min(least, k), max(most, k)
		}
		if now > int64(2*time.Second) { // by then everybody is known
			sum += most - least
			seen++
		}
		return time.Duration(r.ExpFloat64() * float64(usual)), picker.Success
	}
	f.run(30*time.Second, 500, work)
	return float64(sum) / float64(seen)
}

// The bounds are P2C's by exact counts. Of two endpoints the emptier one gets each request, so
// that with ten in flight at least three events of four bring the counts together: the
// difference d has at most the distribution (4/9)·3^(1-d) for d > 0, of mean 1. Estimates
// of latency may add half a request: a tenth of a doubling is a tie, which is 0.4 of
// five or six in flight. Draws at random have a mean of 2.4 (n = 2) and 3.1 (n = 3), turns 1.7 and 2.2.
func TestT16FewEndpointsDoNotOscillate(t *testing.T) {
	for _, n := range []int{2, 3} {
		exact := spreadOf(t, picker.P2C{Signal: picker.InFlight}, n)
		if n == 2 && exact > 1 {
			t.Errorf("counts of two differ by %.2f in the mean, want at most 1", exact)
		}
		for _, policy := range []picker.Policy{picker.P2C{}, picker.P2C{Choices: 3}, picker.Adaptive{}} {
			if got := spreadOf(t, policy, n); got > exact+0.5 {
				t.Errorf("%#v, n = %d: counts differ by %.2f in the mean, by counts alone %.2f", policy, n, got, exact)
			}
		}
		if got := spreadOf(t, picker.Random{}, n); got <= exact+0.5 {
			t.Errorf("n = %d: counts of draws at random differ by %.2f in the mean: the bound of %.2f tells nothing", n, got, exact+0.5)
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
