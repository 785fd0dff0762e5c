package orca

import (
	"math"
	"sync"
	"testing"
	"time"
)

const hours = 3 * int64(time.Hour)

// A clock that is set back stops no measurement until it is where it was.
func TestTrackerMeasuresAfterTheClockWasSetBack(t *testing.T) {
	tr := NewTracker(TrackerConfig{})
	var r Report
	tr.Report(&r, hours)
	for now := 5 * int64(time.Second); now < 35*int64(time.Second); now += 100 * ms {
		tr.End(tr.Begin(now), now, Served)
		tr.Report(&r, now)
	}
	if math.Abs(r.QPS-10) > 1 {
		t.Errorf("%v requests a second, want 10", r.QPS)
	}
}

func TestWeightsAreDueAfterTheClockWasSetBack(t *testing.T) {
	w := mustWeights(t, WeightConfig{})
	w.Update(nil, nil, hours)
	if !w.Due(1) || w.Due(hours) {
		t.Error("weights are not due at once, or again at the instant of the last update")
	}
}

// A report of an instant that is yet to come is of a clock that was ahead. It would not age, nor be replaced.
func TestReportsOfAClockThatWasAheadAreForgotten(t *testing.T) {
	const s = int64(time.Second)
	w := mustWeights(t, WeightConfig{})
	f, err := NewFeedback(FeedbackConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, update := range map[string]func(e *Estimate, now int64){
		"weights":  func(e *Estimate, now int64) { w.Update(make([]float64, 1), []*Estimate{e}, now) },
		"feedback": func(e *Estimate, now int64) { f.Update(make([]float64, 1), []*FeedbackNode{{}}, []*Estimate{e}, now) },
	} {
		var e Estimate
		w.Take(&e, &Report{QPS: 100, CPU: 0.5}, hours)
		update(&e, 0)
		if _, ok := e.Last(); ok {
			t.Errorf("%s: a report of three hours from now counts", name)
		}
		w.Take(&e, &Report{QPS: 100, CPU: 0.25}, s)
		if last, ok := e.Last(); !ok || last != s || e.Utilization() != 0.25 {
			t.Errorf("%s: the next report is of %d, utilization %v", name, last, e.Utilization())
		}
		// One that comes while Update is on its way is a moment later than its instant.
		w.Take(&e, &Report{QPS: 100, CPU: 0.75}, 2*s)
		update(&e, 2*s-ms)
		if last, ok := e.Last(); !ok || last != 2*s {
			t.Errorf("%s: the report of a moment later is forgotten", name)
		}
	}
}

// The first report of all may come while Update is on its way from one endpoint to the next.
func TestFirstReportMayComeWhileFeedbackLooks(t *testing.T) {
	const n, rounds = 64, 5000
	w := mustWeights(t, WeightConfig{})
	weights := make([]float64, n)
	for range rounds {
		f, err := NewFeedback(FeedbackConfig{})
		if err != nil {
			t.Fatal(err)
		}
		endpoints, nodes := make([]*Estimate, n), make([]*FeedbackNode, n)
		for i := range n {
			endpoints[i], nodes[i] = new(Estimate), new(FeedbackNode)
		}
		var taking sync.WaitGroup
		taking.Go(func() { w.Take(endpoints[n-1], &Report{QPS: 1, CPU: 0.5}, 1) })
		f.Update(weights, nodes, endpoints, 2)
		f.Update(weights, nodes, endpoints, 3)
		taking.Wait()
		if weights[0] != 1 || weights[n-1] != 1 {
			t.Fatalf("weights %v and %v by a first report, want 1", weights[0], weights[n-1])
		}
	}
}
