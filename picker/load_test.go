package picker_test

import (
	"math"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

func TestLoadKeepsWhatItIsMadeOf(t *testing.T) {
	for _, n := range []float64{0, 0.25, 1, 2, 3.5, 7, 100, 12_345, 1 << 30, 1 << 40} {
		for _, d := range []time.Duration{1, 2, 999, time.Millisecond, time.Second, time.Hour, math.MaxInt64} {
			for _, part := range []float64{0, 1e-4, 0.1, 0.5, 1} {
				// In any order, and over what was there before.
				l := picker.Load{}.WithErrorRate(0.3).WithInFlight(5).WithErrorRate(part).WithLatency(7).WithLatency(d).WithInFlight(n)
				gotN, okN := l.InFlight()
				gotD, okD := l.Latency()
				gotPart, okPart := l.ErrorRate()
				if !okN || math.Abs(gotN-n) > 1e-4*(n+1) {
					t.Errorf("%v in flight became %v, %v", n, gotN, okN)
				}
				if !okD || math.Abs(float64(gotD-d)) > 1e-4*float64(d)+1 && d < math.MaxInt64/2 {
					t.Errorf("a latency of %v became %v, %v", d, gotD, okD)
				}
				if !okPart || math.Abs(gotPart-part) > 1.0/(1<<16) {
					t.Errorf("an error rate of %v became %v, %v", part, gotPart, okPart)
				}
			}
		}
	}
}

func TestLoadLeavesOutWhatMakesNoSense(t *testing.T) {
	for _, bad := range []float64{-1, -1e-300, math.NaN(), math.Inf(1), math.Inf(-1)} {
		l := picker.Load{}.WithInFlight(bad).WithErrorRate(bad).WithLatency(0).WithLatency(-5)
		if l != (picker.Load{}) {
			t.Errorf("%v says something: %+v", bad, l)
		}
		known := picker.Load{}.WithInFlight(3).WithErrorRate(0.25).WithLatency(time.Second)
		if got := known.WithInFlight(bad).WithErrorRate(bad).WithLatency(-5); got != known {
			t.Errorf("%v took the place of what was known", bad)
		}
	}
	var none picker.Load
	_, n := none.InFlight()
	_, d := none.Latency()
	_, part := none.ErrorRate()
	if n || d || part {
		t.Errorf("the zero Load knows something: %v, %v, %v", n, d, part)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(3.0, int64(5e6), 0.1)
	f.Add(1e300, int64(math.MaxInt64), 1e300)
	f.Add(math.Copysign(0, -1), int64(-1), math.SmallestNonzeroFloat64)
	f.Add(math.NaN(), int64(0), math.Inf(1))
	f.Fuzz(func(t *testing.T, n float64, ns int64, part float64) {
		l := picker.Load{}.WithInFlight(n).WithLatency(time.Duration(ns)).WithErrorRate(part)
		gotN, ok := l.InFlight()
		if want := n >= 0 && !math.IsInf(n, 0); ok != want || !(gotN >= 0 && gotN <= 1<<40*1.001) {
			t.Errorf("%v in flight became %v, %v", n, gotN, ok)
		}
		gotD, ok := l.Latency()
		if want := ns > 0; ok != want || ok && gotD <= 0 {
			t.Errorf("a latency of %v became %v, %v", ns, gotD, ok)
		}
		gotPart, ok := l.ErrorRate()
		if want := part >= 0 && !math.IsInf(part, 0); ok != want || !(gotPart >= 0 && gotPart <= 1) {
			t.Errorf("an error rate of %v became %v, %v", part, gotPart, ok)
		}
	})
}
