package picker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// All fail for ten seconds, and come back one after the other. Failures count for little as
// long as more than a quarter of them fail: otherwise whoever is back first would get all of
// the traffic, whatever waits in front of it. Before and after, a failure counts in full.
func TestFailuresCountForLittleInAnOutage(t *testing.T) {
	const n = 8
	for _, policy := range []picker.Policy{picker.P2C{}, picker.Adaptive{}, picker.Least{Signal: picker.Latency}} {
		g, s := build(t, policy, endpoints(n), nil)
		now := int64(0)
		second := func(fails func(i int) bool) {
			for range 100 {
				now += 10 * ms
				for i := range n {
					p := holdAt(t, s, i, now)
					outcome := picker.Success
					if fails(i) {
						outcome = picker.Failure
					}
					p.Done(now+5*ms, picker.Result{Outcome: outcome})
				}
			}
			g.Sweep(now)
		}
		for range 5 {
			second(func(int) bool { return false })
		}
		for _, step := range []struct {
			back   int // how many work
			outage bool
		}{{7, false}, {4, false}, {0, true}, {1, true}, {3, true}, {5, true}, {6, false}, {4, false}, {3, true}, {7, false}} {
			for range 10 {
				second(func(i int) bool { return i >= step.back })
			}
			penalty := doublings(picker.Latency.Cost(s.Record(n-1), now), picker.Latency.Cost(s.Record(0), now))
			if step.back == 0 {
				continue // nobody to compare with
			}
			if most := 5.1; step.outage && penalty > most {
				t.Errorf("%#v: of %d, %d are back, and others cost %.1f doublings more, want %.1f at most", policy, n, step.back, penalty, most)
			} else if least := 10.0; !step.outage && penalty < least {
				t.Errorf("%#v: of %d, %d work, and others cost %.1f doublings more, want %.1f at least", policy, n, step.back, penalty, least)
			}
		}
	}
}

// Half of the endpoints failing is no outage: they are avoided as one is.
func TestHalfOfThemFailingIsNoOutage(t *testing.T) {
	for _, policy := range []picker.Policy{picker.P2C{}, picker.Adaptive{}} {
		f := newFleet(t, policy, endpoints(8), 7)
		f.run(5*time.Second, 500, healthy)
		clear(f.counts)
		f.run(20*time.Second, 500, func(i int, _ int64) (time.Duration, picker.Outcome) {
			if i < 4 {
				return time.Millisecond, picker.Failure
			}
			return usual, picker.Success
		})
		failed := 0.0
		for i := range 4 {
			failed += f.share(fmt.Sprintf("e%d", i))
		}
		// Two choices meet two failing ones at 3 of 14 comparisons.
		if most := map[bool]float64{true: 0.22, false: 0.01}[policy == picker.Policy(picker.P2C{})]; failed > most {
			t.Errorf("%#v: the failing half gets %.1f %%", policy, 100*failed)
		}
	}
}

// A pool that ejects knows of failures before scores do, and then keeps requests from whoever fails. Those
// that it ejected are among the failing: without them the others' failures would count in full, and
// everything would go to those that are left.
func TestEjectedEndpointsArePartOfAnOutage(t *testing.T) {
	for _, ejected := range []int{1, 3} {
		g, s := build(t, picker.Adaptive{}, endpoints(10), nil)
		now := int64(0)
		for round := range 100 {
			for i := range 10 {
				now += ms
				p := holdAt(t, s, i, now)
				outcome := picker.Success
				if i < 6 && round >= 40 && (i >= ejected || round == 99) {
					outcome = picker.Failure
				}
				p.Done(now+ms, picker.Result{Outcome: outcome})
			}
		}
		for i := range ejected {
			s.Record(i).RaiseEpoch()
		}
		g.Sweep(now)
		if penalty := doublings(picker.Latency.Cost(s.Record(5), now), picker.Latency.Cost(s.Record(9), now)); penalty > 5.1 {
			t.Errorf("%d ejected: others that fail cost %.1f doublings more, want 5 at most", ejected, penalty)
		}
	}
}
