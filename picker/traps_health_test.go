package picker_test

import (
	"math"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

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

// The bounds are P2C's: until the mean age of what hangs exceeds the peak of 20 ms it is an endpoint
// like the others, and mean age is half of the time that it has been hanging. So it gets at
// most its fair share of 40 ms: 8 at 2,000 a second, and 1 at 200, where P2C may be one off.
// Counts alone give it one more than the busiest of the others have: 9 or 10, and 3.
func TestT06HungEndpointLosesItsShareBeforeTheFirstTimeout(t *testing.T) {
	for _, policy := range []picker.Policy{picker.P2C{}, picker.Adaptive{}} {
		for _, tc := range []struct {
			rate int64
			most int
		}{{200, 2}, {2000, 8}} {
			for seed := range uint64(5) {
				f := newFleet(t, policy, endpoints(10), seed)
				f.run(10*time.Second, tc.rate, healthy)
				clear(f.counts)
				f.run(20*time.Second, tc.rate, func(i int, _ int64) (time.Duration, picker.Outcome) {
					if i == 0 {
						return 30 * time.Second, picker.Timeout // its first comes after the run
					}
					return usual, picker.Success
				})
				if got := f.counts["e0"]; got > tc.most {
					t.Errorf("%#v: at %d a second a hung endpoint got %d requests, want at most %d", policy, tc.rate, got, tc.most)
				}
			}
		}
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
