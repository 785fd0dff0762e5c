package evenkeel_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/picker"
)

// reporting returns which endpoints have a weight by their own reports.
func (rig *reportRig) reporting() (list []bool) {
	for _, e := range rig.pool.StatsAt(rig.now).Endpoints {
		list = append(list, e.Reporting)
	}
	return list
}

func (rig *reportRig) weights() (list []float64) {
	for _, e := range rig.pool.StatsAt(rig.now).Endpoints {
		list = append(list, e.Weight)
	}
	return list
}

// What keeps weights from following reports is in Stats: none come, they lack a number, or they do not count yet.
func TestStatsTellWhetherReportsComeAndAreUsed(t *testing.T) {
	for _, source := range []evenkeel.WeightSource{evenkeel.ReportedWeights, evenkeel.FeedbackWeights} {
		c := reportedWeights
		c.Reports = &evenkeel.ReportsConfig{Weights: source}
		rig := newReportRig(t, c, make([]evenkeel.Weight, 4)...)
		noRate, noUtilization := orca.Report{CPU: 0.5}, orca.Report{QPS: 100}
		rig.run(5, capacity(100), noRate, noUtilization)
		rig.pool.BadReport(errors.New("bad"))
		s := rig.pool.StatsAt(rig.now)
		if s.Reports != 15 || s.UsedReports != 5 || s.UnusableReports != 10 || s.BadReports != 1 {
			t.Errorf("%v: %d reports, %d used, %d unusable, %d bad, want 15, 5, 10, 1", source, s.Reports, s.UsedReports, s.UnusableReports, s.BadReports)
		}
		first := source == evenkeel.FeedbackWeights // which has no blackout
		if got := rig.reporting(); !slices.Equal(got, []bool{first, false, false, false}) {
			t.Errorf("%v: in the blackout %v report", source, got)
		}
		rig.run(6, capacity(100), noRate, noUtilization)
		if got := rig.reporting(); !slices.Equal(got, []bool{true, false, false, false}) {
			t.Errorf("%v: %v report, want the first", source, got)
		}
		rig.run(181)
		if got := rig.reporting(); slices.Contains(got, true) {
			t.Errorf("%v: %v report three minutes after the last report", source, got)
		}
	}
}

// With weights from the list, reports with answers are counted too: policies may go by them.
func TestStatsCountReportsThatWeightsDoNotGoBy(t *testing.T) {
	rig := newReportRig(t, evenkeel.Config{}, make([]evenkeel.Weight, 2)...)
	report := capacity(100)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 1000 {
				k, err := rig.pool.Pick(evenkeel.Request{})
				if err != nil {
					t.Error(err)
					return
				}
				k.Done(evenkeel.Result{Outcome: evenkeel.Success, Load: k.Report(&report)})
			}
		})
	}
	work.Wait()
	s := rig.pool.Stats()
	if s.Reports != 4000 || s.UsedReports != 0 || s.UnusableReports != 0 || s.Endpoints[0].Reporting {
		t.Errorf("%d reports, %d used, %d unusable, want 4000, 0, 0", s.Reports, s.UsedReports, s.UnusableReports)
	}
}

func TestNoReportDoesNothing(t *testing.T) {
	for _, c := range []evenkeel.Config{{}, reportedWeights} {
		rig := newReportRig(t, c, evenkeel.Weight{})
		k, err := rig.pool.PickAt(rig.now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if k.Report(nil) != (evenkeel.Load{}) || k.ReportAt(rig.now, nil) != (evenkeel.Load{}) || evenkeel.LoadOf(nil) != (evenkeel.Load{}) {
			t.Error("no report says something of the load")
		}
		k.DoneAt(rig.now, evenkeel.Result{})
		if rig.pool.Report("0", nil) || rig.pool.ReportAt(rig.now, "0", nil) {
			t.Error("no report was used")
		}
		if s := rig.pool.StatsAt(rig.now); s.Reports != 0 {
			t.Errorf("%d reports, want none", s.Reports)
		}
	}
}

// Weights that nobody looks at are allowed, as the policy may be another for a while, and may not be what is meant.
func TestWeightsThatThePolicyIgnoresAreAWarning(t *testing.T) {
	const warning = "evenkeel: ReportsConfig.Weights is reported and has no effect: picker.Random does not look at weights"
	var told []string
	c := reportedWeights
	pool, err := evenkeel.NewPool[int](c, evenkeel.Options{OnWarning: func(text string) { told = append(told, text) }})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.Policy = picker.Random{}
		if err := pool.SetConfig(c); err != nil {
			t.Fatal(err)
		}
		if got := pool.Stats().Warnings; !slices.Equal(got, []string{warning}) || c.UsesReports() {
			t.Errorf("warnings %q, and reports are used is %v", got, c.UsesReports())
		}
	}
	if !slices.Equal(told, []string{warning}) {
		t.Errorf("told %q, want it once", told)
	}
	for _, p := range []evenkeel.Policy{nil, picker.EDF{}, picker.P2C{}, picker.WeightedRandom{}} {
		c.Policy = p
		if err := pool.SetConfig(c); err != nil {
			t.Fatal(err)
		}
		if got := pool.Stats().Warnings; len(got) != 0 || !c.UsesReports() {
			t.Errorf("%T: warnings %q", p, got)
		}
	}
	if err := pool.SetConfig(evenkeel.Config{Policy: picker.RoundRobin{}, Reports: &evenkeel.ReportsConfig{}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(pool.Stats().Warnings, ""); got != "" {
		t.Errorf("weights as listed: %q", got)
	}
}
