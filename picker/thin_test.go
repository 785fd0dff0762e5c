package picker_test

import (
	"math"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// With 64 endpoints and a request a minute an endpoint is asked once in an hour. What it
// showed then has to last until the next time, and not for ever: the unit is eight minutes,
// failures fade with ten of it and estimates with sixty.
func TestThinTrafficIsRememberedAndForgiven(t *testing.T) {
	const n, unit = 64, 480.0
	f := newFleet(t, picker.Adaptive{}, endpoints(n), 73)
	f.every = 20 * time.Second
	slow, failed, plain := f.snapshot.Record(0), f.snapshot.Record(1), f.snapshot.Record(2)
	for k := range 10 * n { // each in turn: the slow one and the failing one are first in each round
		f.sweepUpTo(f.now)
		x, outcome := usual, picker.Success
		switch k % n {
		case 0:
			x = 16 * usual
		case 1:
			outcome = picker.Failure
		}
		p := holdAt(t, f.snapshot, k%n, f.now)
		p.Done(f.now+int64(x), picker.Result{Outcome: outcome})
		f.rest(time.Minute)
	}
	slower := func() float64 {
		return doublings(picker.Latency.Cost(slow, f.now), picker.Latency.Cost(plain, f.now))
	}
	failure := func() float64 { return 1 - failed.Success(f.now) }
	// Their last results are an hour old. In ten rounds each sample has moved the estimate by a
	// tenth at least, against an eighth that fades from one to the next: 1.9 of 4 doublings.
	began, slowest, worst := f.now, slower(), failure()
	if slowest < 1.9 || worst < math.Exp(-63*60/(9.3*unit)) {
		t.Errorf("after an hour the slow one costs %.2f doublings more, and the failure score is %.3f", slowest, worst)
	}
	for _, d := range []time.Duration{time.Hour, 3 * time.Hour, 20 * time.Hour, 48 * time.Hour} {
		f.rest(d)
		age := float64(f.now-began) / 1e9
		// The unit is published in steps of a sixteenth.
		least, most := slowest*math.Exp(-age/(56*unit)), slowest*math.Exp(-age/(64*unit))
		if got := slower(); got < least-0.05 || got > most+0.05 {
			t.Errorf("%v later the slow one costs %.2f doublings more, want %.2f to %.2f", time.Duration(f.now-began), got, least, most)
		}
		least, most = worst*math.Exp(-age/(9.3*unit)), worst*math.Exp(-age/(10.7*unit))
		if got := failure(); got < least-0.001 || got > most+0.001 {
			t.Errorf("%v later the failure score is %.4f, want %.4f to %.4f", time.Duration(f.now-began), got, least, most)
		}
	}
}
