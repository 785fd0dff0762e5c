package evenkeel_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/picker"
)

// loop is a fleet whose utilization follows from the picks of a pool, as backends average and report it.
type loop struct {
	*reportRig
	capacities []float64
	averages   []float64
	tau        float64
	period     int
	second     int
}

// pass lets a second pass with that many picks, and returns how much each backend is used in it.
func (l *loop) pass(picks int) (used []float64) {
	got := l.shares(picks)
	used = make([]float64, len(l.capacities))
	l.second++
	var reports []orca.Report
	for i, c := range l.capacities {
		used[i] = float64(got[i]) / c
		l.averages[i] += (used[i] - l.averages[i]) * (1 - math.Exp(-1/l.tau))
		if l.second%l.period == 0 {
			reports = append(reports, orca.Report{QPS: float64(got[i]), CPU: l.averages[i]})
		}
	}
	l.run(1, reports...)
	return used
}

// uneven runs for that many seconds, and returns the greatest mean use by the mean of all, and the largest
// standard deviation of a backend's use, as a part of the mean.
func (l *loop) uneven(seconds, picks int) (most, swing float64) {
	n := len(l.capacities)
	sum, squares := make([]float64, n), make([]float64, n)
	for range seconds {
		for i, u := range l.pass(picks) {
			sum[i] += u
			squares[i] += u * u
		}
	}
	mean := 0.0
	for _, s := range sum {
		mean += s / float64(n*seconds)
	}
	for i, s := range sum {
		at := s / float64(seconds)
		most = max(most, at/mean)
		swing = max(swing, math.Sqrt(max(squares[i]/float64(seconds)-at*at, 0))/mean)
	}
	return most, swing
}

// The bars of feedback, through real picks: within five times the report interval and the average's time constant
// all are used alike again, to 3 %, when a backend has lost half of its capacity, and at the end do not swing
// by more than 1 %.
func TestFeedbackThroughAPoolSettlesWithinItsBars(t *testing.T) {
	const picks = 3500
	for _, period := range []int{1, 3, 10} {
		for _, tau := range []float64{1, 10, 30} {
			t.Run(fmt.Sprintf("interval=%d/smoothing=%.0f", period, tau), func(t *testing.T) {
				c := evenkeel.Config{Policy: picker.WeightedRoundRobin{}, Reports: &evenkeel.ReportsConfig{Weights: evenkeel.FeedbackWeights}}
				l := &loop{reportRig: newReportRig(t, c, make([]evenkeel.Weight, 4)...), capacities: []float64{1000, 2000, 4000, 4000},
					averages: make([]float64, 4), tau: tau, period: period}
				settle := 5 * (period + int(tau))
				// From equal weights of backends that differ by four times it takes twice as long: a step
				// corrects a half at most.
				for what, change := range []func(){func() { l.uneven(settle, picks) }, func() { l.capacities[3] /= 2 }} {
					change()
					for range settle {
						l.pass(picks)
					}
					if most, _ := l.uneven(10, picks); most > 1.03 {
						t.Errorf("change %d: after %d s max/mean is %.3f, want 1.03", what, settle, most)
					}
					l.uneven(2*settle, picks)
					if most, swing := l.uneven(60, picks); most > 1.03 || swing > 0.01 {
						t.Errorf("change %d: at the end max/mean is %.3f and the swing %.2f %%, want 1.03 and 1 %%", what, most, 100*swing)
					}
				}
			})
		}
	}
}

// Feedback goes by those that get requests: one that is drained reports that it is idle, which says nothing of its weight.
func TestFeedbackDoesNotWindUpOnWhoGetsNothing(t *testing.T) {
	c := evenkeel.Config{Policy: picker.WeightedRoundRobin{}, Reports: &evenkeel.ReportsConfig{Weights: evenkeel.FeedbackWeights}}
	rig := newReportRig(t, c, make([]evenkeel.Weight, 4)...)
	busy, idle := orca.Report{QPS: 100, CPU: 0.5}, orca.Report{QPS: 1, CPU: 0.02}
	rig.run(30, busy, busy, busy, busy)
	rig.pool.Drain("3")
	rig.run(120, busy, busy, busy, idle)
	rig.pool.Resume("3")
	rig.run(1, busy, busy, busy, busy)
	if w := rig.pool.StatsAt(rig.now).Endpoints[3].Weight; w < 0.8 || w > 1.25 {
		t.Errorf("after two idle minutes it weighs %v, want as before", w)
	}
	rig.run(400, busy, busy, busy)
	rig.run(2, busy, busy, busy, busy)
	if w := rig.pool.StatsAt(rig.now).Endpoints[3].Weight; w < 0.8 || w > 1.25 {
		t.Errorf("after minutes without a report it weighs %v, want the usual", w)
	}
}

// Of two endpoints nobody can tell which lies: then the heavier has at most ten times what the other has.
func TestOneLiarOfTwoIsBoundedByFeedbackToo(t *testing.T) {
	c := evenkeel.Config{Policy: picker.WeightedRoundRobin{}, Reports: &evenkeel.ReportsConfig{Weights: evenkeel.FeedbackWeights}}
	for _, lie := range []float64{1e-300, 1e300} {
		rig := newReportRig(t, c, make([]evenkeel.Weight, 2)...)
		rig.run(300, orca.Report{QPS: 100, CPU: 0.5}, orca.Report{QPS: 100, CPU: lie})
		s := rig.pool.StatsAt(rig.now)
		if ratio := s.Endpoints[0].Weight / s.Endpoints[1].Weight; ratio < 0.099 || ratio > 10.1 {
			t.Errorf("one reports %v: the weights are %v and %v", lie, s.Endpoints[0].Weight, s.Endpoints[1].Weight)
		}
	}
}

// The least weight that a configuration allows is one that a list can have.
func TestTheLeastReportedWeightIsOneThatAListCanHave(t *testing.T) {
	c := reportedWeights
	c.Reports = &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights, Weight: orca.WeightConfig{Least: 1e-9}}
	if c.Validate() == nil {
		t.Error("a Least of 1e-9 was taken")
	}
	c.Reports.Weight.Least = 1e-6
	rig := newReportRig(t, c, make([]evenkeel.Weight, 5)...)
	rig.run(15, orca.Report{QPS: 100, Application: 1e300}, capacity(100), capacity(100), capacity(100), capacity(100))
	if got := rig.shares(400); got[1] < 95 {
		t.Errorf("the shares of 400 are %v", got)
	}
}
