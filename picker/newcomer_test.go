package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

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

// In a pool of long streams nobody has a sample, if first bytes are not reported. Whoever has ended a
// stream has not failed by that: a newcomer gets no more than makes its count that of the others.
func TestNewcomerAmongLongStreamsIsNotFlooded(t *testing.T) {
	const rate = 50
	long := func(int, int64) (time.Duration, picker.Outcome) { return 20 * time.Second, picker.Success }
	for _, kind := range []picker.Kind{picker.Stream, picker.UnknownKind} {
		for _, policy := range waiting {
			f := newFleet(t, policy, endpoints(10), 93)
			f.kind = kind
			f.run(2*time.Minute, rate, long)
			f.update(endpoints(11))
			f.run(20*time.Second, rate, long)
			fair := 20 * rate / 11.0
			// A tie is within a tenth of a doubling, 7 %, of two counts that differ by one anyway.
			if got := float64(f.snapshot.Record(10).InFlight()); got > fair*1.15+1 {
				t.Errorf("%v, %#v: the newcomer has %.0f streams, %.0f would be fair", kind, policy, got, fair)
			}
		}
	}
}

// Clients that send little have found somebody good before others join. Adaptive takes a
// newcomer for a little better than the mean until something has come back, so that it is
// tried; those that a pool begins with are compared on equal terms.
func TestAdaptiveTakesNewcomersForALittleBetterThanTheMean(t *testing.T) {
	for _, tc := range []struct {
		policy picker.Policy
		want   float64 // doublings above what all others take
	}{{picker.Adaptive{}, -0.2}, {picker.P2C{}, 0}} {
		g, s := build(t, tc.policy, endpoints(4), nil)
		for i := range 3 { // the fourth is untried, and of the first list
			answerEvery(t, s, i, 3, usual, 0)
		}
		now := int64(time.Second)
		g.Sweep(now)
		m, err := g.Members(endpoints(5), now)
		if err != nil {
			t.Fatal(err)
		}
		cost := func(i int) float64 {
			var c int64
			for range 4 { // one comparison in 256 takes a newcomer for free
				c = max(c, picker.Latency.Cost(m.Record(i), now))
			}
			return doublings(c, picker.Latency.Cost(m.Record(0), now))
		}
		// The fourth has waited for a second.
		if got := cost(3); math.Abs(got) > 0.01 {
			t.Errorf("%#v: one of the first list costs %.3f doublings more than the others, want 0", tc.policy, got)
		}
		if got := cost(4); math.Abs(got-tc.want) > 0.01 {
			t.Errorf("%#v: a newcomer costs %.3f doublings more than the others, want %.1f", tc.policy, got, tc.want)
		}
		s = picker.NewSnapshot(m, nil, tc.policy, tc.policy.Build(m, nil))
		p := holdAt(t, s, 4, now)
		if got := cost(4); got < 20 {
			t.Errorf("%#v: a second request to a newcomer costs %.1f doublings more than to the others, want 20", tc.policy, got)
		}
		p.Done(now, picker.Result{Outcome: picker.Canceled})
		if got := cost(4); math.Abs(got-tc.want) > 0.01 {
			t.Errorf("%#v: a newcomer whose caller left costs %.3f doublings more, want %.1f", tc.policy, got, tc.want)
		}
		p = holdAt(t, s, 4, now)
		p.Done(now, picker.Result{Outcome: picker.Failure})
		now += int64(30 * time.Minute) // the failure has faded
		if got := cost(4); math.Abs(got) > 0.01 {
			t.Errorf("%#v: a newcomer that once failed costs %.3f doublings more than the others, want 0", tc.policy, got)
		}
	}
}

// Whatever else there is, one in 256 comparisons tries a newcomer until something has come back.
func TestOneIn256ComparisonsTriesANewcomer(t *testing.T) {
	const picks = 40_000
	now := int64(time.Second)
	tries := func(s *picker.Snapshot, newcomer int) (n int) {
		for range picks {
			p, i, err := s.Pick(picker.Request{}, now)
			if err != nil {
				t.Fatal(err)
			}
			if i == newcomer {
				n++
			}
			p.Done(now, picker.Result{}) // teaches nothing
		}
		return n
	}
	for _, tc := range []struct {
		policy picker.Policy
		want   int
	}{{picker.Adaptive{}, picks / 256}, {picker.Least{Signal: picker.Latency}, 0}} {
		g, s := build(t, tc.policy, endpoints(4), rand.New(rand.NewPCG(7, 8)).Uint64)
		for i := range 3 { // one is much faster than the mean; the fourth is untried, and of the first list
			answerEvery(t, s, i, 1, usual<<(3*i), 0)
		}
		g.Sweep(now + int64(time.Second))
		if got := tries(s, 3); got > 0 {
			t.Errorf("%#v: one of the first list is tried %d times beside one that is fast", tc.policy, got)
		}
		m, err := g.Members(endpoints(5), now)
		if err != nil {
			t.Fatal(err)
		}
		s = picker.NewSnapshot(m, nil, tc.policy, tc.policy.Build(m, nil))
		// Four deviations of the binomial.
		if got, room := tries(s, 4), 4*math.Sqrt(float64(tc.want)); math.Abs(float64(got-tc.want)) > room {
			t.Errorf("%#v: a newcomer is tried %d times, want %d ± %.0f", tc.policy, got, tc.want, room)
		}
		p := holdAt(t, s, 4, now)
		if got := tries(s, 4); got > 0 {
			t.Errorf("%#v: a newcomer that is being tried is tried %d times more", tc.policy, got)
		}
		p.Done(now, picker.Result{Outcome: picker.Failure})
		if got := tries(s, 4); got > 0 {
			t.Errorf("%#v: a newcomer that has failed is tried %d times", tc.policy, got)
		}
	}
}
