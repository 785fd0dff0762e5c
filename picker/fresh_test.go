package picker_test

import (
	"math"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// Four endpoints answer in half a second, as their queues are long. One that comes back, or
// that is new, answers in 20 ms from an empty queue, which says nothing of a longer one: with
// requests in flight it costs no less than another with as many, for a second and until the
// next sweep. Without, it is as fast as it was.
func TestWhoeverComesBackCountsAsNoFasterThanTheMedianUnderLoad(t *testing.T) {
	const n, last = 5, 4
	others := []int32{0, 1, 2, 3}
	for _, tc := range []struct {
		name string
		away func(t *testing.T, g *picker.Registry, policy picker.Policy, now int64)
	}{
		{"left the list", func(t *testing.T, g *picker.Registry, policy picker.Policy, now int64) {
			show(t, g, policy, endpoints(last), nil, now)
		}},
		{"was not available", func(t *testing.T, g *picker.Registry, policy picker.Policy, now int64) {
			show(t, g, policy, endpoints(n), others, now)
		}},
	} {
		for _, policy := range []picker.Policy{picker.Adaptive{}, picker.P2C{}} {
			g, s := build(t, policy, endpoints(n), nil)
			for i := range last {
				answerEvery(t, s, i, 20, 25*usual, 0)
			}
			now := answerEvery(t, s, last, 20, usual, 0)
			now = max(now, int64(11*time.Second))
			g.Sweep(now)
			dearer := func(s *picker.Snapshot, k int) float64 { return dearerWith(t, s, last, k, now) }
			if got := dearer(s, 3); got > -4 {
				t.Fatalf("%s, %#v: one that is 25 times faster costs %.1f doublings more", tc.name, policy, got)
			}
			show(t, g, policy, endpoints(n), nil, now) // nothing has changed
			if got := dearer(s, 3); got > -4 {
				t.Errorf("%s, %#v: an update costs it %.1f doublings", tc.name, policy, got)
			}
			_, humble := policy.(picker.Adaptive)
			for range 2 { // the second time without a sweep in between
				tc.away(t, g, policy, now)
				s = show(t, g, policy, endpoints(n), nil, now)
				for sweeps, want := range []bool{humble, humble, humble, false} {
					if sweeps > 0 {
						now += int64(5*time.Second) / 2 // the unit is ten latencies
						g.Sweep(now)
					}
					if got := dearer(s, 3); want && math.Abs(got) > 0.2 || !want && got > -4 {
						t.Errorf("%s, %#v: %d sweeps after it is back it costs %.1f doublings more with three in flight", tc.name, policy, sweeps, got)
					}
					if got := dearer(s, 0); got > -4 {
						t.Errorf("%s, %#v: %d sweeps after it is back it costs %.1f doublings more with none in flight", tc.name, policy, sweeps, got)
					}
				}
			}
		}
	}
}

// Of a newcomer the first answer says the same. Those that a pool begins with are compared by
// what they answer, whenever they become available; P2C lets newcomers take part in a growing
// fraction of comparisons instead.
func TestNewcomersCountAsNoFasterThanTheMedianUnderLoad(t *testing.T) {
	const late = 4
	for _, policy := range []picker.Policy{picker.Adaptive{}, picker.P2C{}} {
		g, _ := build(t, policy, endpoints(late), nil)
		s := show(t, g, policy, endpoints(late), []int32{0, 1, 2}, 0)
		for i := range 3 {
			answerEvery(t, s, i, 20, 25*usual, 0)
		}
		now := int64(11 * time.Second)
		g.Sweep(now)
		s = show(t, g, policy, endpoints(late+1), nil, now)
		_, humble := policy.(picker.Adaptive)
		for i, want := range map[int]bool{3: false, late: humble} {
			answerEvery(t, s, i, 1, usual, now)
			got := math.Inf(1)
			for range 200 { // a tenth of the comparisons at least
				got = min(got, dearerWith(t, s, i, 3, now))
			}
			if want && math.Abs(got) > 0.2 || !want && got > -4 {
				t.Errorf("%#v: after its first answer, endpoint %d costs %.1f doublings more than others with three in flight", policy, i, got)
			}
		}
	}
}

// Of one that has failed mostly, what is known is from before.
func TestWhoeverHasFailedMostlyCountsAsNoFasterThanTheMedianUnderLoad(t *testing.T) {
	const last = 4
	for _, policy := range []picker.Policy{picker.Adaptive{}, picker.P2C{}} {
		g, s := build(t, policy, endpoints(last+1), nil)
		for i := range last {
			answerEvery(t, s, i, 20, 25*usual, 0)
		}
		now := max(answerEvery(t, s, last, 20, usual, 0), int64(11*time.Second))
		for range 20 {
			p := holdAt(t, s, last, now)
			p.Done(now, picker.Result{Outcome: picker.Failure})
		}
		g.Sweep(now)
		now += int64(6 * time.Second) // the unit is ten latencies
		g.Sweep(now)
		now = answerEvery(t, s, last, 400, usual, now) // the failures are forgotten
		_, humble := policy.(picker.Adaptive)
		for _, want := range []bool{humble, false} {
			if got := dearerWith(t, s, last, 3, now); want && math.Abs(got) > 0.2 || !want && got > -4 {
				t.Errorf("%#v: it costs %.1f doublings more than others with three in flight", policy, got)
			}
			g.Sweep(now) // eight seconds after the last one
		}
	}
}

// dearerWith is how much more endpoint i costs with k requests in flight than the first does
// with as many, in doublings.
func dearerWith(t *testing.T, s *picker.Snapshot, i, k int, now int64) float64 {
	t.Helper()
	cost := func(i int) int64 {
		picks := make([]picker.Pick, k)
		for j := range picks {
			picks[j] = holdAt(t, s, i, now)
		}
		c := picker.Latency.Cost(s.Record(i), now)
		for j := range picks {
			picks[j].Done(now, picker.Result{}) // teaches nothing
		}
		return c
	}
	return doublings(cost(i), cost(0))
}

// show gives the registry a list, of which those at the given indices are available; nil means all.
func show(t *testing.T, g *picker.Registry, policy picker.Policy, list []picker.Endpoint, available []int32, now int64) *picker.Snapshot {
	t.Helper()
	m, err := g.Members(list, now)
	if err != nil {
		t.Fatal(err)
	}
	return picker.NewSnapshot(m, available, policy, policy.Build(m, nil))
}
