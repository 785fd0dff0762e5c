package picker_test

import (
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// A majority that was slow, and has recovered, is asked again: estimates fade to what
// requests meet, not to the median over endpoints, which would be the majority's own.
func TestAMajorityThatWasSlowComesBack(t *testing.T) {
	for _, policy := range []picker.Policy{picker.Adaptive{}, picker.P2C{}} {
		for _, n := range []int{3, 5, 10} {
			fast := n/2 - 1 + n%2 // a minority
			f := newFleet(t, policy, endpoints(n), 7)
			answer := func(i int, now int64) (time.Duration, picker.Outcome) {
				if i >= fast && now < int64(2*time.Minute) {
					return 10 * usual, picker.Success
				}
				return usual, picker.Success
			}
			f.run(12*time.Minute, 100, answer)
			clear(f.counts)
			f.run(3*time.Minute, 100, answer)
			for i := range n {
				id := f.snapshot.Record(i).ID()
				if got := f.share(id) * float64(n); got < 0.5 || got > 1.7 {
					t.Errorf("%#v, n = %d: %s gets %.2f of its fair share after ten minutes", policy, n, id, got)
				}
			}
		}
	}
}
