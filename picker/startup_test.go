package picker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// waiting are the policies that go by the expected wait.
var waiting = []picker.Policy{
	picker.P2C{}, picker.P2C{Choices: 5}, picker.Adaptive{}, picker.Least{Signal: picker.Latency},
	picker.P2C{Signal: picker.PeakHold}, picker.P2C{Signal: picker.LogMean}, picker.P2C{Signal: picker.PeakEWMA{}},
}

// In the first second of a new client, before any sweep, one endpoint fails in 1 ms from its
// first request on, and the others take 30 ms. Nothing is known of anybody but that failure.
func TestFirstOneToFailIsLeftAloneBeforeAnySweep(t *testing.T) {
	for _, policy := range waiting {
		for _, n := range []int{3, 10} {
			for _, tc := range []struct {
				rate int64
				most int // below the fair share of ten, and far below that of three
			}{{10, 1}, {100, 5}, {1000, 15}} {
				for seed := range uint64(10) {
					f := newFleet(t, policy, endpoints(n), seed)
					f.sweepAt = never
					f.run(time.Second, tc.rate, func(i int, _ int64) (time.Duration, picker.Outcome) {
						if i == 0 {
							return time.Millisecond, picker.Failure
						}
						return 30 * time.Millisecond, picker.Success
					})
					if got := f.counts["e0"]; got > tc.most {
						t.Errorf("%#v, n = %d, seed %d: the one that fails got %d of %d, want at most %d",
							policy, n, seed, got, tc.rate, tc.most)
					}
				}
			}
		}
	}
}

// While nobody has answered, one that has failed is behind those that nobody has tried, also
// when its failure is long ago.
func TestUntriedComeBeforeThoseThatOnlyFailed(t *testing.T) {
	for _, policy := range waiting {
		_, s := build(t, policy, endpoints(2), nil)
		p := holdAt(t, s, 0, 0)
		p.Done(ms, picker.Result{Outcome: picker.Failure})
		for _, age := range []time.Duration{time.Millisecond, time.Minute, time.Hour} {
			for range 20 {
				p, i, err := s.Pick(picker.Request{}, int64(age))
				if err != nil || i != 1 {
					t.Fatalf("%#v: picked %d (%v) %v after the other has failed, want the untried one", policy, i, err, age)
				}
				p.Done(int64(age), picker.Result{})
			}
		}
	}
}

// The first answer of all is slow, as first answers are, and the ones after it are not. What
// is assumed of endpoints that nobody has tried must not be the first answer for long: the
// second endpoint would look faster than all of them, and get everything.
func TestSlowFirstAnswerDoesNotHideTheUntried(t *testing.T) {
	for _, policy := range waiting {
		for _, n := range []int{3, 5, 10} {
			for _, early := range []int64{never, 10 * ms} { // no sweep at all, or as a Pool's
				for seed := range uint64(5) {
					counts := slowFirst(t, policy, n, seed, early)
					tried := 0
					for _, c := range counts {
						if c > 0 {
							tried++
						}
					}
					if tried != n {
						t.Errorf("%#v, sweeps from %v, seed %d: %d of %d endpoints were tried in %d requests",
							policy, time.Duration(early), seed, tried, n, 20*n)
					}
				}
			}
		}
	}
}

// slowFirst sends 20·n requests, one at a time, of which the first takes 2 s, with sweeps from the
// instant sweep on, the time between them doubling up to a second.
func slowFirst(t *testing.T, policy picker.Policy, n int, seed uint64, sweep int64) (counts []int) {
	t.Helper()
	g, s := build(t, policy, endpoints(n), rand.New(rand.NewPCG(seed, 71)).Uint64)
	counts = make([]int, n)
	now, x := int64(0), 2*int64(time.Second)
	for range 20 * n {
		p, i, err := s.Pick(picker.Request{}, now)
		if err != nil {
			t.Fatal(err)
		}
		counts[i]++
		for now += x; sweep <= now; sweep += min(sweep, int64(time.Second)) {
			g.Sweep(sweep)
			s.Sweep(sweep)
		}
		p.Done(now, picker.Result{Outcome: picker.Success})
		x = int64(usual)
	}
	return counts
}
