package orca

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func mustWeights(t testing.TB, c WeightConfig) *Weights {
	t.Helper()
	w, err := NewWeights(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// estimatesOf returns endpoints whose raw weights are those, 0 for one without a report.
func estimatesOf(w *Weights, raw []float64, now int64) []*Estimate {
	var endpoints []*Estimate
	for _, v := range raw {
		e := new(Estimate)
		w.Take(e, &Report{QPS: v, CPU: 1}, now)
		endpoints = append(endpoints, e)
	}
	return endpoints
}

// One endpoint may report whatever it likes: the others keep what they had to each other, and it
// gets neither more than Most nor less than Least times the median of the others, in fleets of
// three and more.
func TestNoReportTakesOrLosesMoreThanTheBounds(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 4))
	extremes := []float64{0, math.Copysign(0, -1), 5e-324, 1e-300, 1e-9, 0.5, 1, 100, 1e9, 1e300, math.MaxFloat64,
		-5, -1e-300, -1e300, math.NaN(), math.Inf(1), math.Inf(-1)}
	any := func() float64 { return extremes[source.IntN(len(extremes))] }
	for range 20_000 {
		w := mustWeights(t, WeightConfig{Blackout: -1})
		n := 3 + source.IntN(6)
		raw := make([]float64, n)
		for i := range raw {
			raw[i] = 100 + 100*source.Float64()
		}
		endpoints := estimatesOf(w, raw, 0)
		report := &Report{QPS: any(), CPU: any(), Application: any(), EPS: any()}
		used := w.Take(endpoints[0], report, 1)
		weights := make([]float64, n)
		w.Update(weights, endpoints, 2)
		unit := raw[1] / weights[1]
		others := slices.Sorted(slices.Values(raw[1:]))
		middle := median(others)
		got := weights[0] * unit
		if !used && math.Abs(got-raw[0]) > 1e-9*raw[0] {
			t.Fatalf("%+v was not used and changed %v to %v", report, raw[0], got)
		}
		// The honest spread decides by how much the median of all can differ from that of the others.
		if !(got <= 10*middle*1.5) || !(got >= 0.1*middle/1.5) {
			t.Fatalf("%+v: weight %v, the median of the others is %v", report, got, middle)
		}
		for i := 1; i < n; i++ {
			if math.Abs(weights[i]*unit-raw[i]) > 1e-9*raw[i] {
				t.Fatalf("%+v changed the others from %v to %v", report, raw, weights)
			}
		}
	}
}

// Of two nobody can tell which lies.
func TestOfTwoTheHeavierGetsAtMostTheBound(t *testing.T) {
	for _, lie := range []float64{1e-300, 1e-5, 1, 50, 1e5, 1e300} {
		w := mustWeights(t, WeightConfig{Blackout: -1})
		weights := make([]float64, 2)
		w.Update(weights, estimatesOf(w, []float64{100, lie}, 0), 1)
		ratio := weights[1] / weights[0]
		if want := min(max(lie/100, 0.1), 10); math.Abs(ratio-want) > 1e-9 {
			t.Errorf("100 and %v became %v", lie, weights)
		}
	}
}

// Of two that report nobody can tell which lies; what all the others weigh, who do not report, is not for the
// greater of them to say.
func TestOneOfTwoWhoReportDoesNotSayWhatTheSilentWeigh(t *testing.T) {
	for lie, want := range map[float64][]float64{
		1e300: {1, 10, 1, 1, 1}, 1e-300: {10, 1, 1, 1, 1}, 300: {0.5, 1.5, 1, 1, 1}, 100: {1, 1, 1, 1, 1},
	} {
		w := mustWeights(t, WeightConfig{Blackout: -1})
		weights := make([]float64, 5)
		w.Update(weights, estimatesOf(w, []float64{100, lie, 0, 0, 0}, 0), 1)
		for i := range want {
			if math.Abs(weights[i]-want[i]) > 1e-9 {
				t.Errorf("100, %v and three silent ones became %v, want %v", lie, weights, want)
				break
			}
		}
	}
}

// The timeline of gRFC A58, in seconds.
func TestBlackoutAndExpiry(t *testing.T) {
	const s = int64(time.Second)
	w := mustWeights(t, WeightConfig{})
	var e Estimate
	report := func(at int64) { w.Take(&e, &Report{QPS: 100, CPU: 0.5}, at*s) }
	known := func(at int64, want bool) {
		t.Helper()
		if got := w.Known(&e, at*s); got != want {
			t.Errorf("at %d s known is %v, want %v", at, got, want)
		}
	}
	known(0, false)
	report(5)
	known(5, false)
	report(14)
	known(14, false)
	known(15, true) // ten seconds after the first report
	w.Take(&e, &Report{CPU: 0.5}, 100*s)
	w.Take(&e, &Report{QPS: -1, CPU: 0.5}, 100*s)
	known(193, true)
	known(194, false) // three minutes after the last that was used
	report(200)
	known(200, false)
	report(209)
	known(209, false)
	known(210, true)
	report(208) // late
	known(388, true)
	known(389, false)
	report(390)
	report(401)
	known(401, true)
	report(581) // three minutes later: expired, and from the start again
	known(590, false)
	known(591, true)
	e.Reset()
	known(591, false)
	report(592)
	known(601, false)
	known(602, true)
}

// What cannot be is no report, wherever it stands.
func TestBrokenReportsAreNotUsed(t *testing.T) {
	w := mustWeights(t, WeightConfig{})
	for _, r := range []Report{
		{QPS: 100, CPU: math.Inf(1)}, {QPS: 100, CPU: math.NaN()}, {QPS: 100, CPU: -1}, {QPS: 100}, {CPU: 1},
		{QPS: math.Inf(1), CPU: 1}, {QPS: math.NaN(), CPU: 1}, {QPS: -1, CPU: 1},
		{QPS: 100, CPU: 1, EPS: math.Inf(1)}, {QPS: 100, CPU: 1, EPS: math.NaN()}, {QPS: 100, CPU: 1, EPS: -1},
		{QPS: 100, CPU: 1, Application: math.NaN()}, {QPS: 100, CPU: 1, Application: -1},
	} {
		var e Estimate
		if w.Take(&e, &r, 0) || e.last.Load() != 0 || e.Utilization() != 0 {
			t.Errorf("%+v was used", r)
		}
	}
	var e Estimate
	if !w.Take(&e, &Report{QPS: 1e-300, CPU: 1e300, EPS: 1e300}, 0) {
		t.Error("a weight beyond all numbers is a report all the same")
	}
}

func TestUtilizationIsTheFirstThatIsThere(t *testing.T) {
	sources := func(keys ...string) []source {
		return mustWeights(t, WeightConfig{Utilization: keys}).sources
	}
	r := &Report{CPU: 0.5, Memory: 0.9, Named: Metrics{{"a", 0.2}, {"b", 0.7}, {"bad", math.NaN()}, {"negative", -1}},
		Utilizations: Metrics{{"c", 0.3}}}
	for _, c := range []struct {
		keys []string
		want float64
	}{
		{nil, 0.5},
		{[]string{"mem_utilization", "cpu_utilization"}, 0.9},
		{[]string{"application_utilization", "named_metrics.a", "named_metrics.b", "cpu_utilization"}, 0.7},
		{[]string{"named_metrics.a", "utilization.c", "named_metrics.none"}, 0.3},
		{[]string{"named_metrics.none", "utilization.none", "cpu_utilization"}, 0.5},
		{[]string{"named_metrics.bad", "named_metrics.negative", "cpu_utilization"}, 0.5},
		{[]string{"named_metrics.a", "cpu_utilization", "named_metrics.b"}, 0.2},
		{[]string{"named_metrics.none"}, 0},
	} {
		if got, ok := utilization(r, sources(c.keys...)); got != c.want || !ok {
			t.Errorf("%v: %v, %v, want %v", c.keys, got, ok, c.want)
		}
	}
}

func TestWeightsChangeOnlyBeyondTheHysteresis(t *testing.T) {
	w := mustWeights(t, WeightConfig{Blackout: -1, Hysteresis: 0.1})
	weights := make([]float64, 3)
	raw := []float64{100, 100, 200}
	if !w.Update(weights, estimatesOf(w, raw, 0), 1) || weights[2] != 2 {
		t.Fatalf("the first update gives %v", weights)
	}
	raw[2] = 215
	if w.Update(weights, estimatesOf(w, raw, 0), 1) || weights[2] != 2 {
		t.Errorf("7 %% more changed the weights to %v", weights)
	}
	raw[2] = 225
	if !w.Update(weights, estimatesOf(w, raw, 0), 1) || weights[2] != 2.25 {
		t.Errorf("12 %% more gives %v", weights)
	}
	exact := mustWeights(t, WeightConfig{Blackout: -1, Hysteresis: -1})
	raw[2] = 225.000001
	if !exact.Update(weights, estimatesOf(w, raw, 0), 1) {
		t.Error("without hysteresis a small change is none")
	}
	if exact.Update(weights, estimatesOf(w, raw, 0), 1) {
		t.Error("without hysteresis no change is one")
	}
	weights[1] = math.NaN()
	if !exact.Update(weights, estimatesOf(w, raw, 0), 1) || weights[1] != 1 {
		t.Errorf("a weight that is none stays: %v", weights)
	}
	if exact.Due(1) || !exact.Due(1+int64(time.Second)) {
		t.Error("due is not a period after the update")
	}
}

func TestWeightConfigRefusesAllProblemsAtOnce(t *testing.T) {
	if err := (WeightConfig{}).Validate(); err != nil {
		t.Fatal(err)
	}
	bad := WeightConfig{Utilization: []string{"cpu", "named_metrics.", "cpu_utilization", "cpu_utilization"}, ErrorPenalty: math.NaN(),
		Expiry: -1, Period: time.Microsecond, Least: 2, Most: math.Inf(1), Hysteresis: 1}
	_, err := NewWeights(bad)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, field := range []string{"Utilization[0]", "Utilization[1]", "Utilization[3]", "ErrorPenalty", "Expiry", "Period", "Least", "Most", "Hysteresis"} {
		if !strings.Contains(err.Error(), "WeightConfig."+field+" is ") {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
	if strings.Contains(err.Error(), "Utilization[2]") || (WeightConfig{Utilization: []string{}}).Validate() == nil {
		t.Errorf("%v", err)
	}
}

// At the end of each request there is no room for more.
func TestTakeDoesNotAllocate(t *testing.T) {
	w := mustWeights(t, WeightConfig{Utilization: []string{"named_metrics.a", "named_metrics.b", "cpu_utilization"}})
	var e Estimate
	r := &Report{QPS: 100, CPU: 0.5, Named: Metrics{{"b", 0.25}}}
	now := int64(0)
	if n := testing.AllocsPerRun(100, func() { now++; w.Take(&e, r, now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	endpoints := estimatesOf(w, []float64{1, 2, 3}, 0)
	weights := make([]float64, 3)
	if n := testing.AllocsPerRun(100, func() { now++; w.Update(weights, endpoints, now) }); n != 0 {
		t.Errorf("%v allocations in Update", n)
	}
}

// Reports come from any number of goroutines while weights are recomputed: a weight is always one
// that was reported.
func TestTakeWhileUpdating(t *testing.T) {
	w := mustWeights(t, WeightConfig{Blackout: -1, Hysteresis: -1})
	endpoints := []*Estimate{new(Estimate), new(Estimate), new(Estimate)}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range int64(5000) {
				w.Take(endpoints[(int(i)+g)%3], &Report{QPS: float64(100 * (1 + g%2)), CPU: 1}, i)
			}
		})
	}
	weights := make([]float64, 3)
	for i := range int64(2000) {
		w.Update(weights, endpoints, i)
		for _, v := range weights {
			if !(v >= 0.5 && v <= 2) {
				t.Fatalf("weights %v", weights)
			}
		}
	}
	wg.Wait()
}
