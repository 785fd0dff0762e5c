//go:build unix

package evenkeel_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

// cpuTime returns the processor time that this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Ejection and limit are to cost half of a pick and its end at most. It fails at twice that. The two are
// measured in turns, and the least of several counts.
func TestGuardsAreCheap(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector slows atomics down, and little else")
	}
	for _, tc := range policies {
		pools := []*evenkeel.Pool[int]{
			newPool(t, bare(tc.policy), 100),
			newPool(t, evenkeel.Config{Policy: tc.policy, Outlier: &outlier.Config{}}, 100),
		}
		least := [2]time.Duration{time.Hour, time.Hour}
		for range 21 { // of which some are spared by whoever else uses the processor
			for i, p := range pools {
				start := cpuTime(t)
				for range 20_000 {
					pickAndDone(t, p)
				}
				least[i] = min(least[i], cpuTime(t)-start)
			}
		}
		ratio := float64(least[1]) / float64(least[0])
		t.Logf("%s: %.2f times the cost without, want at most 1.5", tc.name, ratio)
		if ratio > 2*1.5 {
			t.Errorf("%s: %.2f times the cost without, want at most 1.5", tc.name, ratio)
		}
	}
}
