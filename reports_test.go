package evenkeel_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// reportRig is a pool with weights from reports, in virtual time.
type reportRig struct {
	t    *testing.T
	pool *evenkeel.Pool[int]
	now  time.Time
}

func newReportRig(t *testing.T, c evenkeel.Config, weights ...evenkeel.Weight) *reportRig {
	t.Helper()
	rig := &reportRig{t: t, now: time.Unix(1000, 0)}
	r := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	random := func() uint64 { mu.Lock(); defer mu.Unlock(); return r.Uint64() }
	pool, err := evenkeel.NewPool[int](c, evenkeel.Options{Rand: random, Start: rig.now})
	if err != nil {
		t.Fatal(err)
	}
	rig.pool = pool
	rig.list(weights...)
	return rig
}

func (rig *reportRig) list(weights ...evenkeel.Weight) {
	rig.t.Helper()
	var members []evenkeel.Member[int]
	for i, w := range weights {
		members = append(members, evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: fmt.Sprint(i), Weight: w}, Handle: i})
	}
	if err := rig.pool.UpdateAt(rig.now, members); err != nil {
		rig.t.Fatal(err)
	}
}

// run lets time pass, a second at a time, with the same report from each endpoint in each of
// them; an endpoint beyond the reports has none.
func (rig *reportRig) run(seconds int, reports ...orca.Report) {
	for range seconds {
		for i := range reports {
			if !reports[i].Empty() {
				rig.pool.ReportAt(rig.now, fmt.Sprint(i), &reports[i])
			}
		}
		rig.now = rig.now.Add(time.Second)
		rig.pool.Sweep(rig.now)
	}
}

// shares makes picks and returns how many each endpoint got.
func (rig *reportRig) shares(picks int) (got [8]int) {
	rig.t.Helper()
	for range picks {
		k, err := rig.pool.PickAt(rig.now, evenkeel.Request{})
		if err != nil {
			rig.t.Fatal(err)
		}
		got[k.Handle()]++
		k.DoneAt(rig.now, evenkeel.Result{Outcome: evenkeel.Success})
	}
	return got
}

func capacity(perSecond float64) orca.Report {
	return orca.Report{QPS: perSecond / 2, Application: 0.5}
}

var reportedWeights = evenkeel.Config{
	Policy:  picker.WeightedRoundRobin{},
	Reports: &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights},
}

func TestReportedWeightsMakeSharesFollowCapacity(t *testing.T) {
	rig := newReportRig(t, reportedWeights, make([]evenkeel.Weight, 3)...)
	reports := []orca.Report{capacity(100), capacity(200), capacity(400)}
	rig.run(9, reports...)
	if got := rig.shares(300); got[0] != 100 || got[1] != 100 || got[2] != 100 {
		t.Errorf("in the blackout the shares of 300 are %v, want 100 each", got)
	}
	rig.run(3, reports...)
	if got := rig.shares(700); got[0] != 100 || got[1] != 200 || got[2] != 400 {
		t.Errorf("the shares of 700 are %v, want 100, 200, 400", got)
	}
	rig.run(181)
	if got := rig.shares(300); got[0] != 100 || got[1] != 100 || got[2] != 100 {
		t.Errorf("with expired reports the shares of 300 are %v, want 100 each", got)
	}
}

func TestAnEndpointWithoutReportsHasTheMedianWeightAndAWeightOfZeroDrains(t *testing.T) {
	none, drained := evenkeel.Weight{}, evenkeel.WeightOf(0)
	rig := newReportRig(t, reportedWeights, evenkeel.WeightOf(7), none, none, none, drained)
	rig.run(15, capacity(100), capacity(200), capacity(400), orca.Report{}, capacity(200))
	if got := rig.shares(900); got[0] != 100 || got[1] != 200 || got[2] != 400 || got[3] != 200 || got[4] != 0 {
		t.Errorf("the shares of 900 are %v, want 100, 200, 400, 200 (the median), 0 (drained)", got)
	}
}

func TestReportedWeightsOutliveUpdatesAndConfigsAndNotAReconnection(t *testing.T) {
	rig := newReportRig(t, reportedWeights, make([]evenkeel.Weight, 3)...)
	reports := []orca.Report{capacity(100), capacity(200), capacity(400)}
	rig.run(15, reports...)
	rig.list(make([]evenkeel.Weight, 4)...)
	c := reportedWeights
	c.Policy = picker.EDF{}
	c.Reports = &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights, Weight: orca.WeightConfig{Hysteresis: 0.5}}
	if err := rig.pool.SetConfigAt(rig.now, c); err != nil {
		t.Fatal(err)
	}
	if got := rig.shares(900); got[0] != 100 || got[1] != 200 || got[2] != 400 || got[3] != 200 {
		t.Errorf("after an update the shares of 900 are %v, want 100, 200, 400, and 200 for the new one", got)
	}
	rig.pool.SetState("2", evenkeel.NotReady)
	rig.pool.SetState("2", evenkeel.Ready)
	rig.run(2, reports...)
	if got := rig.shares(1000); float64(got[2]) > 1.8*float64(got[1]) {
		t.Errorf("after a reconnection the shares of 1000 are %v, want the median for the third until its blackout is over", got)
	}
}

func TestABrokenReportNeitherTakesNorLosesMoreThanTheBounds(t *testing.T) {
	for name, bad := range map[string]orca.Report{
		"NaN":           {QPS: math.NaN(), Application: 0.5},
		"negative":      {QPS: -5, Application: 0.5},
		"tiny use":      {QPS: 100, Application: 1e-300},
		"huge rate":     {QPS: 1e300, Application: 0.5},
		"infinite":      {QPS: math.Inf(1), Application: math.Inf(1)},
		"huge use":      {QPS: 100, Application: 1e300},
		"all errors":    {QPS: 1, EPS: 1e300, Application: 0.1},
		"contradictory": {QPS: 0, EPS: 50, Application: 0.9},
	} {
		rig := newReportRig(t, reportedWeights, make([]evenkeel.Weight, 5)...)
		rig.run(15, bad, capacity(100), capacity(100), capacity(100), capacity(100))
		got := rig.shares(5000)
		// 10 and 1/10 of the median against four others.
		if got[0] > 5000*10/14+1 || got[0] < 5000/41-1 {
			t.Errorf("%s: its share of 5000 is %d, want %d to %d", name, got[0], 5000/41-1, 5000*10/14+1)
		}
		for i := 1; i < 5; i++ {
			if got[i] < 5000/14-1 {
				t.Errorf("%s: a sound endpoint has %d of 5000, want at least %d", name, got[i], 5000/14-1)
			}
		}
	}
}

// TestFeedbackWeightsMakeUtilizationEqual closes the loop: utilization is what the weights make it.
func TestFeedbackWeightsMakeUtilizationEqual(t *testing.T) {
	c := evenkeel.Config{Policy: picker.WeightedRoundRobin{}, Reports: &evenkeel.ReportsConfig{Weights: evenkeel.FeedbackWeights}}
	rig := newReportRig(t, c, make([]evenkeel.Weight, 3)...)
	capacities := [3]float64{100, 200, 400}
	var utilization [3]float64
	for range 60 {
		got := rig.shares(350)
		var reports []orca.Report
		for i, c := range capacities {
			utilization[i] = float64(got[i]) / c
			reports = append(reports, orca.Report{QPS: float64(got[i]), CPU: utilization[i]})
		}
		rig.run(1, reports...)
	}
	for i, u := range utilization {
		if math.Abs(u-0.5) > 0.5*0.03 {
			t.Errorf("endpoint %d is used to %.3f, want 0.5 within 3 %%", i, u)
		}
	}
}

func TestReportsAreTakenOfMembersAlone(t *testing.T) {
	c := reportedWeights
	c.Subset = &subset.Config{Size: 2, Seed: 1}
	rig := newReportRig(t, c, make([]evenkeel.Weight, 6)...)
	taken := 0
	report := capacity(100)
	for i := range 6 {
		if rig.pool.ReportAt(rig.now, fmt.Sprint(i), &report) {
			taken++
		}
	}
	if taken != 2 {
		t.Errorf("reports of %d endpoints were taken, want those of the subset's 2", taken)
	}
	if rig.pool.Report("nobody", &report) {
		t.Error("a report of an endpoint that is not listed was taken")
	}
	k, err := rig.pool.PickAt(rig.now, evenkeel.Request{})
	report.Named.Set(orca.InFlightMetric, 3)
	if err != nil || k.Report(&report) == (evenkeel.Load{}) {
		t.Error("a report with an answer was not taken", err)
	}
	k.DoneAt(rig.now, evenkeel.Result{Outcome: evenkeel.Success})
	if k.Report(&report) != (evenkeel.Load{}) {
		t.Error("a report was taken after Done")
	}
	rig.pool.Close()
	if rig.pool.Report("0", &report) {
		t.Error("a report was taken after Close")
	}
}

func TestLoadOfAReportIsWhatItSaysAndNoMore(t *testing.T) {
	if evenkeel.LoadOf(&orca.Report{CPU: 0.5, QPS: 100}) != (evenkeel.Load{}) {
		t.Error("utilization and rate alone say nothing of the requests at hand")
	}
	r := orca.Report{QPS: 100, EPS: 25, Named: orca.Metrics{{Name: orca.InFlightMetric, Value: 7}, {Name: orca.LatencyMetric, Value: 1500}}}
	l := evenkeel.LoadOf(&r)
	n, ok := l.InFlight()
	d, known := l.Latency()
	part, said := l.ErrorRate()
	if !ok || !known || !said || math.Abs(n-7) > 0.01 || d.Round(time.Microsecond) != 1500*time.Microsecond || math.Abs(part-0.25) > 1e-4 {
		t.Errorf("7 in flight, 1.5 ms and a quarter failing became %v %v %v", n, d, part)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -5, 1e300, 1e-300} {
		r := orca.Report{QPS: x, EPS: x, Named: orca.Metrics{{Name: orca.InFlightMetric, Value: x}, {Name: orca.LatencyMetric, Value: x}}}
		l := evenkeel.LoadOf(&r)
		n, _ := l.InFlight()
		d, _ := l.Latency()
		part, _ := l.ErrorRate()
		if !(n >= 0 && n <= 1<<41) || d < 0 || !(part >= 0 && part <= 1) {
			t.Errorf("%v became %v %v %v", x, n, d, part)
		}
	}
}

func TestBadReportsAreCounted(t *testing.T) {
	rig := newReportRig(t, evenkeel.Config{}, evenkeel.Weight{})
	bad := errors.New("a number that is none")
	rig.pool.BadReport(errors.New("another"))
	rig.pool.BadReport(bad)
	if s := rig.pool.Stats(); s.BadReports != 2 || s.BadReport != bad {
		t.Errorf("Stats has %d bad reports, the last %v, want 2, %v", s.BadReports, s.BadReport, bad)
	}
}

func TestReportAllocatesNothing(t *testing.T) {
	rig := newReportRig(t, reportedWeights, make([]evenkeel.Weight, 3)...)
	report := capacity(100)
	if n := testing.AllocsPerRun(100, func() {
		k, _ := rig.pool.Pick(evenkeel.Request{})
		k.Report(&report)
		k.Done(evenkeel.Result{Outcome: evenkeel.Success})
	}); n != 0 {
		t.Errorf("a pick with a report allocates %v times, want 0", n)
	}
}

func TestReportsWhileEverythingChanges(t *testing.T) {
	rig := newReportRig(t, reportedWeights, make([]evenkeel.Weight, 8)...)
	var work sync.WaitGroup
	for g := range 8 {
		work.Go(func() {
			report := capacity(float64(100 + g))
			for range 300 {
				if k, err := rig.pool.Pick(evenkeel.Request{}); err == nil {
					k.Report(&report)
					k.Done(evenkeel.Result{Outcome: evenkeel.Success})
				}
				rig.pool.Report(fmt.Sprint(g), &report)
			}
		})
	}
	for i := range 200 {
		c := reportedWeights
		if i%3 == 0 {
			c.Reports = nil
		} else if i%3 == 1 {
			c.Reports = &evenkeel.ReportsConfig{Weights: evenkeel.FeedbackWeights}
		}
		if err := rig.pool.SetConfig(c); err != nil {
			t.Error(err)
		}
		rig.pool.Sweep(time.Now())
		rig.list(make([]evenkeel.Weight, 4+i%5)...)
	}
	work.Wait()
}
