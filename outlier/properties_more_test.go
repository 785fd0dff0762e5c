package outlier_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/outlier"
)

// Whatever happens, the shares of those that may be picked are finite and sum to 1, for any weights: nobody's factor is
// 0 or above 1, and there is somebody who has one.
func TestSharesAreFiniteAndSumToOne(t *testing.T) {
	ramped := 0
	for _, mode := range modes {
		for seed := range uint64(seedsOf(30)) {
			w := newWorld(t, seed, configOf(mode, 100))
			r := rand.New(rand.NewPCG(seed, 64))
			for range 300 {
				w.step()
				sum, shares := 0.0, []float64{}
				for _, i := range w.d.Available(nil) {
					f := w.d.RampFactor(int(i), w.now)
					if !(f > 0 && f <= 1) {
						t.Fatalf("%v, seed %d: a factor of %v", mode, seed, f)
					}
					if f < 1 {
						ramped++
					}
					share := f * math.Exp2(float64(r.IntN(40)-20))
					shares, sum = append(shares, share), sum+share
				}
				total := 0.0
				for _, s := range shares {
					total += s / sum
				}
				if len(shares) > 0 && math.Abs(total-1) > 1e-9 {
					t.Fatalf("%v, seed %d: shares sum to %v", mode, seed, total)
				}
			}
		}
	}
	if ramped < 50 && !testcost.Race {
		t.Errorf("%d factors below 1 were seen", ramped)
	}
}

// More successes never make any of Envoy's runs of failures longer.
func TestMoreSuccessesNeverEjectInEnvoy(t *testing.T) {
	for seed := range uint64(seedsOf(400)) {
		r := rand.New(rand.NewPCG(seed, 65))
		c := outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: all}
		c.Envoy.SplitLocalOrigin = seed%2 == 0
		c.Envoy.EnforceConsecutiveGateway = all
		few, more := newBench(t, c, "a", "b", "c"), newBench(t, c, "a", "b", "c")
		for range 60 {
			e := []outlier.Event{outlier.Failed, outlier.GatewayFailed, outlier.Unreached, outlier.TimedOut, outlier.Event(r.IntN(12))}[r.IntN(5)]
			few.observe("a", e, 1)
			more.observe("a", e, 1)
			if r.IntN(5) == 0 {
				more.observe("a", []outlier.Event{outlier.Succeeded, outlier.Connected}[r.IntN(2)], 1)
			}
			if len(more.ejected()) > 0 && len(few.ejected()) == 0 {
				t.Fatalf("seed %d: ejected with more successes", seed)
			}
			if len(few.ejected()) > 0 {
				break
			}
		}
	}
}

// Where the cap lets out fewer than are unusual, the worst go first, and of those alike the first by ID, in any order of the list.
func TestTheWorstGoFirstInAnyOrderOfTheList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 66))
	for _, tc := range []struct {
		failed  []int // of 100 each
		percent float64
		want    []string
	}{
		{[]int{0, 0, 0, 0, 0, 0, 60, 90, 70, 0}, 10, []string{"h8"}},
		{[]int{0, 0, 0, 0, 0, 0, 60, 90, 70, 0}, 20, []string{"h8", "h9"}},
		{[]int{0, 80, 0, 0, 0, 0, 80, 0, 80, 0}, 10, []string{"h2"}},
		{[]int{0, 80, 0, 0, 0, 0, 80, 0, 95, 0}, 20, []string{"h2", "h9"}},
	} {
		for range 20 {
			c := capped(outlier.Soft, tc.percent)
			c.Soft.ConsecutiveFailures = outlier.Off
			ids := idsUpTo(10)
			r.Shuffle(10, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			b := newBench(t, c, ids...)
			for i, failed := range tc.failed {
				b.observe(idsUpTo(10)[i], outlier.Succeeded, 100-failed)
				b.observe(idsUpTo(10)[i], outlier.Failed, failed)
			}
			b.now = int64(c.Interval) + 10*second
			b.sweep()
			b.wantEjected("of "+strings.Join(ids, " "), tc.want...)
		}
	}
}
