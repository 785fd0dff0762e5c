package outlier_test

import (
	"fmt"
	"testing"

	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/outlier"
)

// The bar is 1.5 of a pick and its end without a detector; a busy machine has room up to twice that.
func TestADetectorCostsLessThanThePick(t *testing.T) {
	if testing.Short() || testcost.Race {
		t.Skip("measures")
	}
	const bar, rounds, each = 1.5, 15, 20_000
	for _, p := range benchPolicies {
		for _, n := range []int{10, 1000} {
			without, with := withAndWithout(t, p.policy, n, outlier.Config{})
			now := int64(0)
			run := func(f func(int64)) func() {
				return func() {
					for range each {
						now += 1000
						f(now)
					}
				}
			}
			least := testcost.Least(t, rounds, run(without), run(with))
			off, on := float64(least[0]), float64(least[1])
			what := fmt.Sprintf("%s, n = %d: %.1f ns without, %.1f with, ratio %.2f", p.name, n, off/each, on/each, on/off)
			t.Log(what)
			if on > 2*bar*off {
				t.Error(what)
			}
		}
	}
}

func TestARefusedEjectionDoesNotLookAtEverybody(t *testing.T) {
	if testing.Short() || testcost.Race {
		t.Skip("measures")
	}
	const each = 3000
	run := func(act func()) func() {
		return func() {
			for range each {
				act()
			}
		}
	}
	least := testcost.Least(t, 10, run(refused(t, 100)), run(refused(t, 10_000)))
	few, many := float64(least[0]), float64(least[1])
	t.Logf("%.0f ns for a refusal in a pool of 100, %.0f in one of 10,000", few/each, many/each)
	if many > 5*few {
		t.Error("it grows with the pool")
	}
}
