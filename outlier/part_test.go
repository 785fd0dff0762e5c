package outlier_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/evenkeel/evenkeel/outlier"
)

// A part that has all members, as the detector has them, comes to the same as the detector; another goes by its own.
func TestAPartDecidesAsTheDetectorDoes(t *testing.T) {
	for _, mode := range []outlier.Mode{outlier.Soft, outlier.Envoy} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 80))
			c := outlier.Config{Mode: mode, MaxEjectionPercent: outlier.PercentOf(100)}
			c.Panic.FailFast = seed%4 == 0
			d, err := outlier.NewDetector(c, r.Uint64, 0)
			if err != nil {
				t.Fatal(err)
			}
			var list []outlier.Member
			for i := range 10 {
				list = append(list, outlier.Member{ID: fmt.Sprint(i), Standing: outlier.Unready})
			}
			if _, err := d.Update(list, 0); err != nil {
				t.Fatal(err)
			}
			var all, none outlier.Part
			standings := make([]outlier.Standing, 10)
			for i := range standings {
				standings[i] = outlier.Unready
			}
			nobody := slices.Repeat([]outlier.Standing{outlier.Drained}, 10)
			all.Available(d, standings, nil)
			for step := range 400 {
				now := int64(step) * 2e8
				switch i := r.IntN(10); r.IntN(3) {
				case 0:
					standings[i] = outlier.Standing(min(r.IntN(8), 3) % 4 * r.IntN(2))
					d.SetStanding(i, standings[i], now)
				case 1:
					for h := d.Host(i); ; {
						if h.Observe(outlier.Failed, h.Token(), now) {
							d.Act(h, now)
							break
						}
						if r.IntN(6) == 0 {
							break
						}
					}
				default:
					d.Sweep(now)
				}
				got, want := all.Available(d, standings, nil), d.Available(nil)
				if !slices.Equal(got, want) || all.Panicking() != d.Panicking() {
					t.Fatalf("mode %v, seed %d, step %d: %v in a panic %v, want %v, %v", mode, seed, step, got, all.Panicking(), want, d.Panicking())
				}
				if got := none.Available(d, nobody, nil); len(got) != 0 || none.Panicking() {
					t.Fatalf("who has no members has %v, in a panic: %v", got, none.Panicking())
				}
			}
		}
	}
}
