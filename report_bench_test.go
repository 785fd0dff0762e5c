package evenkeel_test

import (
	"net/http"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcahttp"
)

// BenchmarkReport is a pick whose answer has a load report, in each of its usual forms, and without one.
func BenchmarkReport(b *testing.B) {
	report := orca.Report{CPU: 0.3, QPS: 120, EPS: 1, Named: orca.Metrics{{Name: orca.InFlightMetric, Value: 4}, {Name: orca.LatencyMetric, Value: 900}}}
	for _, form := range []struct {
		name  string
		write func(h http.Header) error
	}{
		{"none", func(http.Header) error { return nil }},
		{"TEXT", func(h http.Header) error { return orcahttp.AppendHeader(h, &report, orcahttp.Text) }},
		{"BIN", func(h http.Header) error { return orcahttp.AppendHeader(h, &report, orcahttp.Binary) }},
	} {
		b.Run("form="+form.name, func(b *testing.B) {
			p, err := evenkeel.NewPool[int](evenkeel.Config{Reports: reportedWeights.Reports}, evenkeel.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if err := p.Update(members(10)); err != nil {
				b.Fatal(err)
			}
			h := http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"12"}}
			if err := form.write(h); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var r orca.Report
			for b.Loop() {
				k, err := p.Pick(evenkeel.Request{})
				if err != nil {
					b.Fatal(err)
				}
				result := evenkeel.Result{Outcome: evenkeel.Success}
				if found, err := orcahttp.ParseHeader(&r, h); found && err == nil {
					result.Load = k.Report(&r)
				}
				k.Done(result)
			}
		})
	}
}
