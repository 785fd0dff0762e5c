package picker_test

import (
	"math"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

// A majority that was slow, and has recovered, is asked again: what estimates fade to lies between
// the median over endpoints, which would be the majority's own, and what requests meet.
func TestAMajorityThatWasSlowComesBack(t *testing.T) {
	for _, policy := range []picker.Policy{picker.Adaptive{}, picker.P2C{}} {
		for _, n := range []int{3, 5, 10} {
			fast := n/2 - 1 + n%2 // a minority
			f := newFleet(t, policy, endpoints(n), 7)
			answer := func(i int, now int64) (time.Duration, picker.Outcome) {
				if i >= fast && now < int64(2*time.Minute) {
					return 10 * usual, picker.Success
				}
				return usual, picker.Success
			}
			f.run(12*time.Minute, 100, answer)
			clear(f.counts)
			f.run(3*time.Minute, 100, answer)
			for i := range n {
				id := f.snapshot.Record(i).ID()
				if got := f.share(id) * float64(n); got < 0.5 || got > 1.7 {
					t.Errorf("%#v, n = %d: %s gets %.2f of its fair share after ten minutes", policy, n, id, got)
				}
			}
		}
	}
}

// What estimates fade to is a quarter of the way from the median over endpoints to what requests
// meet. All of the way, an endpoint that nobody dares to ask, since it fails, would come to
// look better than most.
func TestEstimatesFadeToBetweenEndpointsAndRequests(t *testing.T) {
	g, s := build(t, picker.Adaptive{}, endpoints(5), nil)
	times := []time.Duration{usual, 2 * usual, 2 * usual, 2 * usual, 16 * usual}
	now := int64(0)
	for second := range int64(900) {
		now = second * int64(time.Second)
		for i, x := range times {
			n := 1
			if i == 0 {
				n = 20 // most of the traffic
			}
			if i < 4 || second == 0 { // the last one is asked once
				answerEvery(t, s, i, n, x, now)
			}
		}
		g.Sweep(now + int64(time.Second) - 1)
	}
	lg, _ := s.Record(4).LatencyLog2(now)
	if got, want := doublings(lg, ewma.LatencyLog2(int64(2*usual))), -0.25; math.Abs(got-want) > 0.03 {
		t.Errorf("a quarter of an hour without requests, it is thought to take %.2f doublings more than the median, want %.2f", got, want)
	}
}
