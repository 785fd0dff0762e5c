package picker_test

import (
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// One that has most of the weight fails, hangs or is slow: drawn at nearly every comparison, it must lose
// them all the same.
func TestHeavyEndpointInTroubleLosesItsShare(t *testing.T) {
	troubles := map[string]answer{
		"fails": func(int, int64) (time.Duration, picker.Outcome) { return time.Millisecond, picker.Failure },
		"hangs": func(int, int64) (time.Duration, picker.Outcome) { return 20 * time.Second, picker.Timeout },
		"slow":  func(int, int64) (time.Duration, picker.Outcome) { return 100 * usual, picker.Success },
	}
	for _, policy := range []picker.Policy{
		picker.P2C{}, picker.P2C{Choices: 5}, picker.Adaptive{}, picker.Least{Signal: picker.Latency},
	} {
		for _, weights := range [][]float64{{8, 1, 1}, {3, 1, 1}, {10, 10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
			for name, trouble := range troubles {
				f := newFleet(t, policy, weighted(weights...), 7)
				f.run(20*time.Second, 500, healthy)
				clear(f.counts)
				f.run(30*time.Second, 500, func(i int, now int64) (time.Duration, picker.Outcome) {
					if i == 0 {
						return trouble(i, now)
					}
					return usual, picker.Success
				})
				if got := f.share("e0"); got > 0.03 {
					t.Errorf("%#v, weights %v: the heavy one %s, and gets %.1f %%", policy, weights, name, 100*got)
				}
			}
		}
	}
}
