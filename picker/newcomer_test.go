package picker_test

import (
	"math"
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
