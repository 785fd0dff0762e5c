package picker_test

import (
	"fmt"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// BenchmarkWeighted measures pick and done by weight, beside the floor of BenchmarkPick:
// weights that are all equal, of 1 to 10, and with one of 10,000.
func BenchmarkWeighted(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("policy=floor/n=%d", n), func(b *testing.B) { benchFloor(b, n) })
		for _, p := range weightedPolicies {
			if p.name == "smooth" && n > 100 {
				continue // it looks at everybody
			}
			for _, shape := range []string{"equal", "mixed", "heavy"} {
				b.Run(fmt.Sprintf("policy=%s/n=%d/weights=%s", p.name, n, shape), func(b *testing.B) {
					list := endpoints(n)
					for i := range list {
						if shape == "mixed" {
							list[i].Weight = picker.WeightOf(float64(1 + i*7%10))
						}
					}
					if shape == "heavy" {
						list[n/2].Weight = picker.WeightOf(10_000)
					}
					g, s := build(b, p.policy, list, nil)
					now := int64(0)
					warm(b, g, s, &now)
					b.ReportAllocs()
					stop := reportCPU(b)
					for b.Loop() {
						now += 1000
						pick, _, err := s.Pick(picker.Request{}, now)
						if err != nil {
							b.Fatal(err)
						}
						pick.Done(now+500, picker.Result{Outcome: picker.Success})
					}
					stop()
				})
			}
		}
	}
}

// BenchmarkWeightedParallel shows what sharing a counter or a lock costs.
func BenchmarkWeightedParallel(b *testing.B) {
	for _, n := range []int{10, 100} {
		for _, p := range weightedPolicies {
			b.Run(fmt.Sprintf("policy=%s/n=%d", p.name, n), func(b *testing.B) {
				list := endpoints(n)
				for i := range list {
					list[i].Weight = picker.WeightOf(float64(1 + i*7%10))
				}
				_, s := build(b, p.policy, list, nil)
				b.ReportAllocs()
				stop := reportCPU(b)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						pick, _, err := s.Pick(picker.Request{}, 0)
						if err != nil {
							b.Error(err)
							return
						}
						pick.Done(0, picker.Result{})
					}
				})
				stop()
			})
		}
	}
}
