package sim

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPicks runs a hundredth of ten million requests at a time, arrival to answer,
// on one core. s/10M is how long ten million take; the rest of the time of a policy over
// that of "jsq", which has no pools, is the pools' and pickers'.
func BenchmarkPicks(b *testing.B) {
	for _, c := range []struct {
		policy       string
		n, balancers int
	}{
		{"random", 10, 1}, {"p2c", 10, 1}, {"p2c_latency", 10, 1}, {"p2c_latency", 10, 100}, {"p2c_latency", 100, 1000},
		{"default", 10, 1}, {"default", 10, 100}, {"least", 10, 1}, {"jsq", 10, 1},
	} {
		b.Run(fmt.Sprintf("policy=%s/n=%d/B=%d", c.policy, c.n, c.balancers), func(b *testing.B) {
			p, err := PolicyNamed(c.policy)
			if err != nil {
				b.Fatal(err)
			}
			s := Scenario{
				Servers: equal(c.n, Server{Workers: 4}), Service: exponential(10 * time.Millisecond),
				Arrivals: Arrivals{Rate: float64(c.n) * 300}, Balancers: c.balancers,
				Delay: time.Millisecond / 2, Timeout: time.Second, Requests: 100_000,
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Run(s, p, 1); err != nil {
					b.Fatal(err)
				}
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(s.Requests)
			b.ReportMetric(1e9/each, "picks/s")
			b.ReportMetric(each/100, "s/10M")
		})
	}
}
