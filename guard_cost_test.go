package evenkeel_test

import (
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/outlier"
)

// Ejection and limit are to cost half of a pick and its end at most. It fails at twice that. The two are
// measured in turns, and the least of several counts.
func TestGuardsAreCheap(t *testing.T) {
	if testcost.Race {
		t.Skip("the race detector slows atomics down, and little else")
	}
	for _, tc := range policies {
		picks := func(c evenkeel.Config) func() {
			p := newPool(t, c, 100)
			return func() {
				for range 20_000 {
					pickAndDone(t, p)
				}
			}
		}
		without, with := picks(bare(tc.policy)), picks(evenkeel.Config{Policy: tc.policy, Outlier: &outlier.Config{}})
		least := testcost.Least(t, 21, without, with) // of which some are spared by whoever else uses the processor
		ratio := float64(least[1]) / float64(least[0])
		t.Logf("%s: %.2f times the cost without, want at most 1.5", tc.name, ratio)
		if ratio > 2*1.5 {
			t.Errorf("%s: %.2f times the cost without, want at most 1.5", tc.name, ratio)
		}
	}
}
