package evenkeel_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
)

var bothSources = []evenkeel.WeightSource{evenkeel.ReportedWeights, evenkeel.FeedbackWeights}

func weightsFrom(source evenkeel.WeightSource) evenkeel.Config {
	c := reportedWeights
	c.Reports = &evenkeel.ReportsConfig{Weights: source}
	return c
}

func utilization(of ...float64) (reports []orca.Report) {
	for _, u := range of {
		reports = append(reports, orca.Report{QPS: 100, CPU: u})
	}
	return reports
}

// Weights of one utilization mean nothing beside those of another, also if there were none in between.
func TestReportsOfAnotherUtilizationDoNotCountAfterAPause(t *testing.T) {
	by := func(key string) *evenkeel.ReportsConfig {
		return &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights, Weight: orca.WeightConfig{Utilization: []string{key}, Blackout: -1}}
	}
	cpu, application := by(orca.CPUName), by(orca.ApplicationName)
	for name, between := range map[string][]*evenkeel.ReportsConfig{
		"at once": nil, "none between": {nil}, "listed between": {{}}, "listed, with the new utilization, between": {{Weight: application.Weight}},
	} {
		c := reportedWeights
		c.Reports = cpu
		rig := newReportRig(t, c, make([]evenkeel.Weight, 3)...)
		rig.run(2, utilization(0.01, 0.01, 0.01)...) // 10,000 a second
		for _, c.Reports = range append(between, application) {
			if err := rig.pool.SetConfigAt(rig.now, c); err != nil {
				t.Fatal(err)
			}
		}
		rig.run(3, orca.Report{}, capacity(200), capacity(200))
		if w := rig.weights(); w[0] != 1 || w[1] != 1 {
			t.Errorf("%s: weights %v, the first has not reported its new utilization, want all 1", name, w)
		}
	}
}

// A clock that was ahead, for one report or for all there is, costs no hours of reports.
func TestWeightsFollowReportsAgainAfterTheClockWasAhead(t *testing.T) {
	for _, source := range bothSources {
		for name, ahead := range map[string]func(rig *reportRig){
			"one report": func(rig *reportRig) {
				late := utilization(0.5)[0]
				rig.pool.ReportAt(rig.now.Add(3*time.Hour), "0", &late)
			},
			"all": func(rig *reportRig) {
				start := rig.now
				rig.now = rig.now.Add(3 * time.Hour)
				rig.run(120, utilization(0.4, 0.4, 0.4)...)
				rig.now = start
			},
		} {
			rig := newReportRig(t, weightsFrom(source), make([]evenkeel.Weight, 3)...)
			ahead(rig)
			rig.run(120, utilization(0.2, 0.4, 0.8)...)
			if w := rig.weights(); w[0] < 1.3*w[1] || w[1] < 1.3*w[2] {
				t.Errorf("%v, %s: weights %v two minutes after the clock is right again, want them to follow", source, name, w)
			}
		}
	}
}

// Reports out of band may be more seldom than the usual expiry, and one of them may be lost.
func TestSeldomReportsOutOfBandCountUntilTheNext(t *testing.T) {
	for _, expiry := range []time.Duration{0, time.Minute} {
		c := reportedWeights
		c.Reports = &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights, OutOfBand: 5 * time.Minute, Weight: orca.WeightConfig{Expiry: expiry}}
		rig := newReportRig(t, c, make([]evenkeel.Weight, 3)...)
		rig.run(1, utilization(0.2, 0.4, 0.8)...)
		rig.run(299)
		rig.run(1, utilization(0.2, 0.4, 0.8)...)
		rig.run(599) // the next one is lost
		want := 2.0
		if expiry != 0 {
			want = 1 // as is said
		}
		if w := rig.weights(); w[0] != want {
			t.Errorf("expiry %v: weights %v after ten minutes, want the first at %v", expiry, w, want)
		}
		rig.run(400)
		if w := rig.weights(); w[0] != 1 {
			t.Errorf("expiry %v: weights %v after more than three intervals, want all 1", expiry, w)
		}
	}
}

// What is behind an address after a reconnection may be another process.
func TestWeightsByFeedbackBeginAnewAfterAReconnection(t *testing.T) {
	rig := newReportRig(t, weightsFrom(evenkeel.FeedbackWeights), make([]evenkeel.Weight, 3)...)
	rig.run(200, utilization(0.4, 0.4, 0.8)...)
	if w := rig.weights(); w[2] > 0.5 {
		t.Fatalf("weights %v, want the third below a half", w)
	}
	rig.pool.SetState("2", evenkeel.NotReady)
	rig.pool.SetState("2", evenkeel.Ready)
	rig.run(2, utilization(0.4, 0.4, 0.4)...)
	if w := rig.weights(); math.Abs(w[2]-1) > 0.1 {
		t.Errorf("weights %v after the third was connected to anew, want it at 1", w)
	}
}

// Of two that report one may lie: what the silent ones weigh is not its to say.
func TestALiarBesideOneHonestReporterMovesNobodyElse(t *testing.T) {
	for lie, want := range map[float64][]float64{1e-300: {10, 1, 1, 1, 1}, 1e300: {1, 10, 1, 1, 1}} {
		rig := newReportRig(t, weightsFrom(evenkeel.ReportedWeights), make([]evenkeel.Weight, 5)...)
		rig.run(15, capacity(200), capacity(lie))
		if w := rig.weights(); !slices.Equal(w, want) {
			t.Errorf("one of two reports %v: weights %v, want %v", lie, w, want)
		}
	}
}
