package orcahttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcahttp"
)

// A backend that reports on every response, and a client that reads it.
func ExampleHandler() {
	backend := httptest.NewServer(&orcahttp.Handler{
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hello")
		}),
		Tracker: orca.NewTracker(orca.TrackerConfig{
			Add: func(r *orca.Report) { r.Application = 0.25 },
		}),
	})
	defer backend.Close()

	resp, err := backend.Client().Get(backend.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // trailers come after it

	var r orca.Report
	found, err := orcahttp.ParseResponse(&r, resp)
	rif, _ := r.Named.Get(orca.InFlightMetric)
	fmt.Println(found, err, "in flight:", rif)
	// Output: true <nil> in flight: 1
}

// Reasons can be counted by; the text says where.
func ExampleParseHeader() {
	for _, value := range []string{
		"TEXT cpu_utilization=0.3, rps_fractional=120, named_metrics.rif=4",
		`JSON {"cpuUtilization": "0.3", "rpsFractional": 120}`,
		"TEXT cpu_utilization=-1",
		"cpu_utilization=0.3",
	} {
		var r orca.Report
		_, err := orcahttp.ParseHeader(&r, http.Header{orcahttp.Header: {value}})
		fmt.Println(r.CPU, r.QPS, r.Named, err, errors.Is(err, orca.Negative))
	}
	// Output:
	// 0.3 120 [{rif 4}] <nil> false
	// 0.3 120 [] <nil> false
	// 0 0 [] orca: number is negative, want 0 or more: "cpu_utilization" is -1 true
	// 0 0 [] orca: report has an unsupported format, want TEXT, JSON or BIN false
}
