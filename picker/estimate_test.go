package picker_test

import (
	"math"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

// answerEvery gives member i that many answers of latency x, one after the other from instant now
// on, and returns the instant of the last one's end.
func answerEvery(tb testing.TB, s *picker.Snapshot, i, times int, x time.Duration, now int64) int64 {
	tb.Helper()
	for range times {
		p := holdAt(tb, s, i, now)
		now += int64(x)
		p.Done(now, picker.Result{Outcome: picker.Success})
	}
	return now
}

// doublings is the difference of two costs in doublings.
func doublings(a, b int64) float64 { return float64(a-b) / ewma.One }

// A peak counts only by what it exceeds the average by beyond five doublings: a slow answer is
// no news, one that is a hundred times slower is.
func TestPeaksCountBeyondFiveDoublings(t *testing.T) {
	const usual = 10 * time.Millisecond
	for _, tc := range []struct {
		times float64 // the last answer, in usual ones
		want  float64 // doublings of the estimate
		slack float64
	}{
		// One sample moves the average by at most a tenth of its distance.
		{10, 0, 0.1*math.Log2(10) + 0.01},
		{30, 0, 0.1*math.Log2(30) + 0.01},
		// The average is at most 1.3 doublings up.
		{1000, math.Log2(1000) - 5, 0.02},
		{10_000, math.Log2(10_000) - 5, 0.02},
	} {
		_, s, rec := one(t)
		now := answerEvery(t, s, 0, 200, usual, 0)
		now = answerEvery(t, s, 0, 1, time.Duration(tc.times*float64(usual)), now)
		before := ewma.LatencyLog2(int64(usual))
		lg, _ := rec.LatencyLog2(now)
		if got := doublings(lg, before); math.Abs(got-tc.want) > tc.slack {
			t.Errorf("a peak of %v times the average raises the estimate by %.2f doublings, want %.2f ± %.2f",
				tc.times, got, tc.want, tc.slack)
		}
		if got := doublings(picker.Latency.Cost(rec, now), before); math.Abs(got-tc.want) > tc.slack {
			t.Errorf("a peak of %v times the average raises the cost by %.2f doublings, want %.2f ± %.2f",
				tc.times, got, tc.want, tc.slack)
		}
	}
}

// What is not asked any more is forgotten by sweeps alone: the cost of an idle endpoint follows
// its estimate to the median, and that of one that has failed its failures' fading.
func TestIdleEndpointsFadeThroughSweepsAlone(t *testing.T) {
	f := newFleet(t, picker.P2C{}, endpoints(5), 65)
	slow, failed := f.snapshot.Record(0), f.snapshot.Record(1)
	for i := range 5 {
		x := usual
		if i == 0 {
			x = 20 * usual
		}
		f.now = answerEvery(t, f.snapshot, i, 20, x, f.now)
	}
	for range 5 {
		p := holdAt(t, f.snapshot, 1, f.now)
		p.Done(f.now, picker.Result{Outcome: picker.Failure})
	}
	f.sweepAt = f.now
	f.rest(0)
	median := picker.Latency.Cost(f.snapshot.Record(2), f.now)
	start := doublings(picker.Latency.Cost(slow, f.now), median)
	if start < 4 || doublings(picker.Latency.Cost(failed, f.now), median) < 1 {
		t.Fatalf("the slow one costs %.2f doublings more, the failed one %.2f: the scene is not set",
			start, doublings(picker.Latency.Cost(failed, f.now), median))
	}
	began := f.now
	for _, d := range []time.Duration{10 * time.Second, 50 * time.Second, time.Minute, 8 * time.Minute} {
		f.rest(d)
		// With a request a second and less the unit is a second, and estimates fade with 60.
		want := start * math.Exp(-float64(f.now-began)/60e9)
		if got := doublings(picker.Latency.Cost(slow, f.now), median); math.Abs(got-want) > 0.05+0.02*want {
			t.Errorf("after %v the slow one costs %.2f doublings more, want %.2f", time.Duration(f.now-began), got, want)
		}
		lg, _ := slow.LatencyLog2(f.now)
		if got := doublings(picker.Latency.Cost(slow, f.now), lg); math.Abs(got) > 0.01 {
			t.Errorf("after %v the cost is %.2f doublings off the estimate", time.Duration(f.now-began), got)
		}
		left := 3 * -math.Log2(failed.Success(f.now))
		if got := doublings(picker.Latency.Cost(failed, f.now), median); math.Abs(got-left) > 0.05 {
			t.Errorf("after %v the failed one costs %.2f doublings more, want %.2f", time.Duration(f.now-began), got, left)
		}
	}
}
