package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// Weights are relative: written a hundred times larger, or a hundredth, they give the same
// shares.
func TestScaleOfWeightsDoesNotMatter(t *testing.T) {
	for _, policy := range []picker.Policy{picker.Adaptive{}, picker.P2C{}, picker.P2C{Signal: picker.InFlight}} {
		var first []float64
		for _, scale := range []float64{1, 0.01, 100, 1000} {
			got := loadedShares(t, policy, []float64{scale, 2 * scale, 2 * scale, scale}, 60)
			if first == nil {
				first = got
			}
			for i := range got {
				if math.Abs(got[i]-first[i]) > 0.03 {
					t.Errorf("%#v: weights times %v give %.2f, times 1 %.2f", policy, scale, got, first)
				}
			}
		}
	}
}

// A light endpoint beside busy heavy ones is idle nearly always; that must not make it win.
func TestLightEndpointGetsLittleUnderLoad(t *testing.T) {
	for _, policy := range []picker.Policy{picker.Adaptive{}, picker.P2C{}} {
		got := loadedShares(t, policy, []float64{1, 1, 1, 0.001, 0.001}, 20)
		if got[3] > 0.005 || got[4] > 0.005 {
			t.Errorf("%#v: endpoints with 0.03 %% of the weight get %.2f %% and %.2f %%", policy, 100*got[3], 100*got[4])
		}
	}
}

// loadedShares keeps about that many requests in flight, of exponential length whatever the
// endpoint, and returns the shares.
func loadedShares(t *testing.T, policy picker.Policy, weights []float64, inFlight int) []float64 {
	t.Helper()
	f := newFleet(t, policy, weighted(weights...), 91)
	r := rand.New(rand.NewPCG(91, 92))
	rate := int64(inFlight) * int64(time.Second/usual)
	f.run(20*time.Second, rate, func(int, int64) (time.Duration, picker.Outcome) {
		return time.Duration(r.ExpFloat64() * float64(usual)), picker.Success
	})
	shares := make([]float64, len(weights))
	for i := range weights {
		shares[i] = f.share(f.snapshot.Record(i).ID())
	}
	return shares
}
