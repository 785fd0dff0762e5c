package sim

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

const millisecond = time.Millisecond

// everything is a scenario in which all happens that can happen.
func everything() Scenario {
	s := Scenario{
		Name: "everything", Servers: equal(6, Server{Workers: 2}), Service: exponential(10 * millisecond),
		Classes: []Class{
			{Name: "short", Share: 90},
			{Name: "stream", Share: 2, Kind: picker.Stream, Service: millis(100, 400), FirstByte: millis(1, 9)},
			{Name: "unknown", Share: 8, Kind: picker.UnknownKind},
		},
		Arrivals: Arrivals{Kind: Bursts, Rate: 300, Period: 2 * second, On: second}, Balancers: 7,
		Delay: millisecond / 2, Timeout: 300 * millisecond, Refresh: 1700 * millisecond,
		Length: 20 * second, WarmUp: second, Bucket: second,
		Windows: []Span{{"early", 0, 5 * second}, {"late", 15 * second, 20 * second}},
	}
	s.Servers[0].Phases = []Phase{{From: 2 * second, Until: 6 * second, Slow: 5, SlowEnd: 1}}
	s.Servers[1].Phases = []Phase{{From: 3 * second, Until: 9 * second, Fail: picker.Overload, FailAfter: millisecond, FailShare: 0.3}}
	s.Servers[2].Phases = []Phase{{From: 5 * second, Until: 8 * second, Hang: true}}
	s.Servers[3].Phases = []Phase{{From: 4 * second, Until: 12 * second, Absent: true}}
	s.Servers[4].Phases = []Phase{{From: 7 * second, Until: 11 * second, Drained: true}}
	s.Servers[5] = Server{Workers: 3, Sharing: true, Speed: 0.5, Weight: evenkeel.WeightOf(2),
		Phases: []Phase{{From: 1 * second, Until: 5 * second, Service: Fixed{30 * millisecond}}}}
	return s
}

func mustRun(t *testing.T, s Scenario, policy string, seed uint64) *Result {
	t.Helper()
	r, err := Run(s, named1(t, policy), seed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSameSeedGivesTheSameResult(t *testing.T) {
	for _, name := range PolicyNames() {
		if strings.HasSuffix(name, "@") {
			name += "50ms"
		}
		first := mustRun(t, everything(), name, 3)
		if again := mustRun(t, everything(), name, 3); !reflect.DeepEqual(first, again) {
			t.Errorf("%s: two runs with one seed differ", name)
		}
		if other := mustRun(t, everything(), name, 4); reflect.DeepEqual(first.Total, other.Total) {
			t.Errorf("%s: runs with different seeds do not differ", name)
		}
		if first.LateSweeps != 0 {
			t.Errorf("%s: %d sweeps were late", name, first.LateSweeps)
		}
	}
}

// Bounds use none of the library's code: only a change of the simulator moves these.
func TestResultsArePinned(t *testing.T) {
	r := mustRun(t, everything(), "jsed", 1)
	total := &r.Total
	got := []int64{int64(r.Picks), int64(total.Good.n), int64(total.Failed), int64(total.TimedOut),
		int64(total.Latency().Mean()), int64(total.Latency().Quantile(0.99)), int64(total.Picks[5]), int64(r.End)}
	want := []int64{5966, 5117, 189, 80, 43380250, 300000000, 573, 19206928679}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestHowManyWorkAtOnceChangesNothing(t *testing.T) {
	var jobs []Job
	for seed := range uint64(6) {
		jobs = append(jobs, Job{everything(), named1(t, "default"), seed}, Job{S11(2), named1(t, "p2c"), seed})
	}
	for i := range jobs {
		jobs[i].Scenario.Length = 5 * second
	}
	calls := 0
	one, err := RunAll(jobs, 1, func(int) { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	four, err := RunAll(jobs, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	if calls != len(jobs) || !reflect.DeepEqual(one, four) {
		t.Errorf("%d calls for %d jobs, equal results: %v", calls, len(jobs), reflect.DeepEqual(one, four))
	}
	jobs[3].Scenario.Servers = nil
	if _, err := RunAll(jobs, 2, nil); err == nil {
		t.Error("a job without servers gave no error")
	}
}

// Another policy must meet the same requests at the same time and of the same size.
func TestArrivalsAndWorkDoNotDependOnThePolicy(t *testing.T) {
	s := Scenario{
		Servers: equal(3, Server{}), Service: exponential(10 * millisecond),
		Arrivals: Arrivals{Rate: 100}, Length: 10 * second, Bucket: 100 * millisecond,
	}
	a, b := mustRun(t, s, "random", 1), mustRun(t, s, "least_latency", 1)
	if !reflect.DeepEqual(a.Total.Good, b.Total.Good) {
		t.Error("latencies differ on servers that are never busy")
	}
	for i := range a.Buckets {
		if a.Buckets[i].Requests != b.Buckets[i].Requests {
			t.Fatalf("bucket %d has %d and %d requests", i, a.Buckets[i].Requests, b.Buckets[i].Requests)
		}
	}
}

func TestCountsAddUp(t *testing.T) {
	s := everything()
	s.WarmUp = 0
	r := mustRun(t, s, "p2c", 1)
	o := &r.Total.Outcomes
	if o.Failed == 0 || o.TimedOut == 0 || o.Good.n == 0 {
		t.Errorf("failed %d, timed out %d, good %d: something did not happen", o.Failed, o.TimedOut, o.Good.n)
	}
	if sum := o.Good.n + o.Failed + o.TimedOut + o.Unsent + o.Unanswered; sum != o.Requests || sum != r.Picks {
		t.Errorf("%d ended, %d requests, %d picks", sum, o.Requests, r.Picks)
	}
	var all Outcomes
	inFlight := 0.0
	picks := make([]int, 6)
	for _, b := range r.Buckets {
		all.Requests += b.Requests
		all.Failed += b.Failed
		all.TimedOut += b.TimedOut
		all.Good.Merge(&b.Good)
		all.bad.Merge(&b.bad)
		for i, f := range b.InFlight {
			inFlight += f
			picks[i] += b.Picks[i]
		}
	}
	if all.Requests != o.Requests || all.Failed != o.Failed || all.TimedOut != o.TimedOut ||
		all.Good.n != o.Good.n || all.Latency().Mean() != o.Latency().Mean() || !reflect.DeepEqual(picks, r.Total.Picks) {
		t.Error("the time series does not add up to the total")
	}
	// Little's law, but for what is in flight after the last step.
	want := float64(o.Requests) * o.Latency().Mean().Seconds()
	if inFlight < 0.98*want || inFlight > 1.001*want {
		t.Errorf("area of requests in flight %.1f, want about %.1f", inFlight, want)
	}
}

func TestRunsAllocatePerRunAndNotPerRequest(t *testing.T) {
	allocations := func(requests int) float64 {
		s := S11(3)
		s.Requests, s.Timeout, s.Delay = requests, second, millisecond
		return testing.AllocsPerRun(1, func() { mustRun(t, s, "p2c_latency", 1) })
	}
	// Sweeps of a longer run, of which a second has 1,800 requests, may republish constants.
	if few, many := allocations(20_000), allocations(120_000); many-few > 200 {
		t.Errorf("%v allocations for 20,000 requests, %v for 120,000", few, many)
	}
}

// A pool wants its first sweep after 10 ms, and each next one after twice the time, until
// that is a second.
func TestEachBalancerSweepsWhenItAsks(t *testing.T) {
	s := S11(2)
	s.Balancers, s.Length = 3, 10*second
	p := named1(t, "p2c_latency")
	r, err := newRun(&s, &p, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.loop()
	if n := r.sweeps.count; n < 3*15 || n > 3*18 { // 7 in the first second, then one a second
		t.Errorf("%d sweeps in ten seconds, want about 48", n)
	}
	if n := r.clients.lateSweeps(r); n != 0 {
		t.Errorf("%d sweeps were late", n)
	}
}

func TestOverloadRunsAndSaysSo(t *testing.T) {
	s := oneQueue(Fixed{10 * millisecond}, 1.25, Server{Workers: 1}, 0)
	s.Length = 10 * second
	r := mustRun(t, s, "random", 1)
	if !r.Overloaded || r.Load != 1.25 {
		t.Errorf("load %v, overloaded %v", r.Load, r.Overloaded)
	}
	if r.Total.Requests != r.Total.Good.n || r.End < 12*second {
		t.Errorf("%d of %d served, until %v: the backlog was not worked off", r.Total.Good.n, r.Total.Requests, r.End)
	}
	if s.Arrivals.Rate = 99; mustRun(t, s, "random", 1).Overloaded {
		t.Error("a load of 0.99 is called overload")
	}
}
