//go:build unix

package outlier_test

import (
	"fmt"
	"math"
	"syscall"
	"testing"

	"github.com/evenkeel/evenkeel/outlier"
)

// cpuTime returns the processor time that this process has used, in nanoseconds.
func cpuTime(tb testing.TB) int64 {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// The bar is 1.5 of a pick and its end without a detector; a busy machine has room up to twice that.
func TestADetectorCostsLessThanThePick(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("measures")
	}
	const bar, rounds, each = 1.5, 15, 20_000
	for _, p := range benchPolicies {
		for _, n := range []int{10, 1000} {
			without, with := withAndWithout(t, p.policy, n, outlier.Config{})
			off, on := int64(math.MaxInt64), int64(math.MaxInt64)
			now := int64(0)
			run := func(f func(int64)) int64 {
				before := cpuTime(t)
				for range each {
					now += 1000
					f(now)
				}
				return cpuTime(t) - before
			}
			for range rounds {
				off, on = min(off, run(without)), min(on, run(with))
			}
			what := fmt.Sprintf("%s, n = %d: %.1f ns without, %.1f with, ratio %.2f",
				p.name, n, float64(off)/each, float64(on)/each, float64(on)/float64(off))
			t.Log(what)
			if float64(on) > 2*bar*float64(off) {
				t.Error(what)
			}
		}
	}
}

func TestARefusedEjectionDoesNotLookAtEverybody(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("measures")
	}
	least := map[int]int64{100: math.MaxInt64, 10_000: math.MaxInt64}
	acts := map[int]func(){100: refused(t, 100), 10_000: refused(t, 10_000)}
	for range 10 {
		for n, act := range acts {
			before := cpuTime(t)
			for range 3000 {
				act()
			}
			least[n] = min(least[n], cpuTime(t)-before)
		}
	}
	t.Logf("%.0f ns for a refusal in a pool of 100, %.0f in one of 10,000", float64(least[100])/3000, float64(least[10_000])/3000)
	if least[10_000] > 5*least[100] {
		t.Error("it grows with the pool")
	}
}
