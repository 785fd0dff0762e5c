package picker_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

// What is assumed of an endpoint without answers: the median of the others, the mean for
// Adaptive; less half an e-fold in four minutes for as long as nothing has come back, so that one
// that a slow first answer of somebody hides is tried at last. A failure ends that: it costs,
// and what is assumed afterwards is not less again.
func TestPriorFallsUntilSomethingComesBack(t *testing.T) {
	const fast, slow = 10 * time.Millisecond, 40 * time.Millisecond
	for _, tc := range []struct {
		policy picker.Policy
		prior  time.Duration
	}{
		{picker.P2C{}, 20 * time.Millisecond},
		{picker.Adaptive{}, 25 * time.Millisecond},
	} {
		g, s := build(t, tc.policy, endpoints(3), nil)
		answerEvery(t, s, 0, 1, fast, 0)
		answerEvery(t, s, 1, 1, slow, 0)
		g.Sweep(int64(slow + time.Second)) // before, the best answer counts
		cold, prior := s.Record(2), ewma.LatencyLog2(int64(tc.prior))
		for _, age := range []time.Duration{0, time.Second, 30 * time.Second, time.Minute, 4 * time.Minute, 30 * time.Minute, 24 * time.Hour} {
			want := max(-age.Seconds()/480*math.Log2E, doublings(0, prior))                                // a nanosecond at least
			if got := doublings(picker.Latency.Cost(cold, int64(age)), prior); math.Abs(got-want) > 0.03 { // the others have faded for a second
				t.Errorf("%#v: untried for %v it costs %.3f doublings more than the others, want %.3f", tc.policy, age, got, want)
			}
		}
		now := int64(30 * time.Minute)
		p := holdAt(t, s, 2, now)
		p.Done(now+ms, picker.Result{Outcome: picker.Failure})
		if got := doublings(picker.Latency.Cost(cold, now+ms), prior); got < 10 {
			t.Errorf("%#v: after a first failure it costs %.1f doublings more, want 10 at least", tc.policy, got)
		}
		for _, later := range []time.Duration{5 * time.Minute, 30 * time.Minute} {
			if got := doublings(picker.Latency.Cost(cold, now+int64(later)), prior); math.Abs(got) > 0.03 { // the others have faded for a second
				t.Errorf("%#v: %v after its only, failed, request it costs %.3f doublings more, want 0", tc.policy, later, got)
			}
		}
	}
}

// One of ten fails from its first request on, or from its first after half an hour in
// which it was not ready. The less is known of an endpoint the more it is worth a try; one that
// never succeeds must not win by that.
func TestOneThatNeverSucceedsDoesNotWinInTheEnd(t *testing.T) {
	failing := func(i int, _ int64) (time.Duration, picker.Outcome) {
		if i == 3 {
			return time.Millisecond, picker.Failure
		}
		return usual, picker.Success
	}
	for _, policy := range []picker.Policy{picker.P2C{}, picker.Adaptive{}} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%T/late=%v", policy, late), func(t *testing.T) {
				f := newFleet(t, policy, endpoints(10), 67)
				if late {
					f.show(endpoints(10), []int32{0, 1, 2, 4, 5, 6, 7, 8, 9})
					f.run(30*time.Minute, 100, failing)
					if f.counts["e3"] != 0 {
						t.Fatal("it got requests while it was not ready")
					}
					f.update(endpoints(10))
				}
				f.run(time.Minute, 100, failing)
				for k := range 29 { // no minute is an exception, the last ones least of all
					clear(f.counts)
					f.run(time.Minute, 100, failing)
					if got := f.share("e3"); got > 0.02 {
						t.Fatalf("in minute %d it has %.1f %% of the requests", k+1, 100*got)
					}
				}
			})
		}
	}
}
