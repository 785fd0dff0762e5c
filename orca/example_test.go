package orca_test

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/orca"
)

// Two backends of which one has twice the room, one that claims to be infinitely idle, and one that
// has not reported: it weighs as much as the median of those that are believed.
func ExampleWeights() {
	weights, err := orca.NewWeights(orca.WeightConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var small, big, liar, quiet orca.Estimate
	for at := range int64(11) { // reports count once an endpoint has sent them for ten seconds
		now := at * int64(time.Second)
		weights.Take(&small, &orca.Report{QPS: 100, CPU: 0.5}, now)
		weights.Take(&big, &orca.Report{QPS: 100, CPU: 0.25}, now)
		weights.Take(&liar, &orca.Report{QPS: 100, CPU: 1e-300}, now)
	}
	use := make([]float64, 4)
	changed := weights.Update(use, []*orca.Estimate{&small, &big, &liar, &quiet}, 10*int64(time.Second))
	fmt.Printf("%v %.2f\n", changed, use)
	// Output: true [0.67 1.33 10.00 1.00]
}

// A backend that reports twice the utilization loses weight step by step, by no more than is safe for
// averages over a second.
func ExampleFeedback() {
	feedback, err := orca.NewFeedback(orca.FeedbackConfig{Smoothing: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	taker, _ := orca.NewWeights(orca.WeightConfig{})
	var nodes [3]orca.FeedbackNode
	var estimates [3]orca.Estimate
	weights := make([]float64, 3)
	for second := range int64(4) {
		now := second * int64(time.Second)
		for i, cpu := range []float64{0.4, 0.4, 0.8} {
			taker.Take(&estimates[i], &orca.Report{QPS: 100, CPU: cpu}, now)
		}
		feedback.Update(weights, []*orca.FeedbackNode{&nodes[0], &nodes[1], &nodes[2]},
			[]*orca.Estimate{&estimates[0], &estimates[1], &estimates[2]}, now)
		fmt.Printf("%.2f\n", weights)
	}
	// Output:
	// [1.00 1.00 1.00]
	// [1.00 1.00 0.84]
	// [1.00 1.00 0.71]
	// [1.00 1.00 0.59]
}

// What a backend counts, with instants of a test's own.
func ExampleTracker() {
	tracker := orca.NewTracker(orca.TrackerConfig{
		Add: func(r *orca.Report) { r.Application = 0.3 },
	})
	ms := int64(time.Millisecond)
	for i := range int64(100) {
		call := tracker.Begin(i * 10 * ms)
		tracker.End(call, i*10*ms+4*ms, orca.Served)
	}
	tracker.Begin(1000 * ms)

	var r orca.Report
	tracker.Report(&r, 1000*ms)
	rif, _ := r.Named.Get(orca.InFlightMetric)
	latency, _ := r.Named.Get(orca.LatencyMetric)
	fmt.Printf("%.0f/s, %.0f errors/s, %.1f utilized, %.0f in flight, %.0f µs\n", r.QPS, r.EPS, r.Application, rif, latency)
	// Output: 100/s, 0 errors/s, 0.3 utilized, 1 in flight, 4000 µs
}
