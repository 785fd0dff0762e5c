package orca

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

func sampleReport() Report {
	return Report{CPU: 0.31, QPS: 1200.5, EPS: 2, Named: Metrics{{"rif", 4}, {"latency_us", 812.5}}}
}

func BenchmarkUnmarshal(b *testing.B) {
	r := sampleReport()
	message, _ := r.AppendBinary(nil)
	s := string(message)
	b.ReportAllocs()
	for b.Loop() {
		_ = r.UnmarshalString(s)
	}
}

func BenchmarkTake(b *testing.B) {
	w := mustWeights(b, WeightConfig{})
	r := sampleReport()
	b.Run("callers=1", func(b *testing.B) {
		var e Estimate
		now := int64(0)
		b.ReportAllocs()
		for b.Loop() {
			now += 1000
			w.Take(&e, &r, now)
		}
	})
	b.Run("callers=all", func(b *testing.B) {
		var e Estimate
		b.RunParallel(func(pb *testing.PB) {
			for now := int64(0); pb.Next(); now += 1000 {
				w.Take(&e, &r, now)
			}
		})
	})
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run("n="+strconv.Itoa(n), func(b *testing.B) {
			w := mustWeights(b, WeightConfig{Blackout: -1})
			source := rand.New(rand.NewPCG(1, 2))
			endpoints := make([]*Estimate, n)
			for i := range endpoints {
				endpoints[i] = new(Estimate)
				w.Take(endpoints[i], &Report{CPU: 0.1 + source.Float64(), QPS: 100}, 0)
			}
			weights := make([]float64, n)
			b.ReportAllocs()
			for b.Loop() {
				w.Update(weights, endpoints, 1)
			}
		})
	}
}

func BenchmarkTracker(b *testing.B) {
	b.Run("part=count", func(b *testing.B) {
		t := NewTracker(TrackerConfig{})
		b.ReportAllocs()
		for now := int64(0); b.Loop(); now += 2000 {
			t.End(t.Begin(now), now+1000, Served)
		}
	})
	b.Run("part=count-and-report", func(b *testing.B) {
		t := NewTracker(TrackerConfig{})
		var r Report
		b.ReportAllocs()
		for now := int64(0); b.Loop(); now += 2000 {
			t.End(t.Begin(now), now+1000, Served)
			t.Report(&r, now+1000)
		}
	})
	b.Run("part=count-and-report/callers=all", func(b *testing.B) {
		t := NewTracker(TrackerConfig{})
		b.RunParallel(func(pb *testing.PB) {
			var r Report
			for now := int64(0); pb.Next(); now += 2000 {
				t.End(t.Begin(now), now+1000, Served)
				t.Report(&r, now+1000)
			}
		})
	})
}
