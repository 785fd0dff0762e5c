package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// at is a recorded list of instants in milliseconds.
func at(millis ...int) Arrivals {
	a := Arrivals{Kind: Recorded}
	for _, m := range millis {
		a.Times = append(a.Times, time.Duration(m)*millisecond)
	}
	return a
}

// latencies runs s with round robin and returns the latencies in milliseconds, sorted.
func latencies(t *testing.T, s Scenario) (good, bad []int, r *Result) {
	t.Helper()
	r = mustRun(t, s, "round_robin", 1)
	list := func(h *Histogram) (out []int) {
		for b := range h.blocks {
			for i, c := range h.blocks[b] {
				for range c {
					out = append(out, int(time.Duration(h.middle(b, i)).Round(millisecond/10)/(millisecond/10)))
				}
			}
		}
		for i := range out {
			out[i] /= 10
		}
		return out
	}
	return list(&r.Total.Good), list(&r.Total.bad), r
}

func want(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestRequestsWaitInOrderAndTheNetworkTakesTimeBothWays(t *testing.T) {
	s := Scenario{Servers: equal(1, Server{Workers: 2}), Service: Fixed{100 * millisecond}, Arrivals: at(0, 10, 20, 30)}
	good, _, _ := latencies(t, s)
	want(t, "two workers", good, 100, 100, 180, 180)
	s.Delay = 5 * millisecond
	good, _, _ = latencies(t, s)
	want(t, "with delay", good, 110, 110, 190, 190)
	s.Servers[0].Workers = 0
	good, _, _ = latencies(t, s)
	want(t, "any number of workers", good, 110, 110, 110, 110)
}

func TestSharingDividesWorkers(t *testing.T) {
	s := Scenario{Servers: []Server{{Workers: 1, Sharing: true}}, Service: Fixed{100 * millisecond}, Arrivals: at(0, 50)}
	// Half of the first is done at 50, the rest takes 100 shared; then the second has
	// half left, alone.
	good, _, _ := latencies(t, s)
	want(t, "one worker", good, 150, 150)
	s.Servers[0].Workers = 2
	good, _, _ = latencies(t, s)
	want(t, "two workers", good, 100, 100)
}

func TestTimeoutsLeaveTheWorkBehind(t *testing.T) {
	s := Scenario{
		Servers: []Server{{Workers: 1, Phases: []Phase{{Until: millisecond, Slow: 10}}}}, Service: Fixed{10 * millisecond},
		Arrivals: at(0, 70, 300), Timeout: 50 * millisecond,
	}
	// The first takes 100 and is given up at 50; the second waits for it all the same.
	good, bad, r := latencies(t, s)
	want(t, "good", good, 10, 40)
	want(t, "bad", bad, 50)
	if r.Total.TimedOut != 1 || r.Total.MaxInFlight[0] != 1 {
		t.Errorf("timed out %d, most in flight %d", r.Total.TimedOut, r.Total.MaxInFlight[0])
	}
}

func TestHungRequestsEndWithTheTimeoutOrNever(t *testing.T) {
	s := Scenario{
		Servers: []Server{{Workers: 1, Phases: []Phase{{From: 5 * millisecond, Until: 20 * millisecond, Hang: true}}}},
		Service: Fixed{10 * millisecond}, Arrivals: at(0, 10, 20), Delay: millisecond,
	}
	// What is at work when the hang begins is still answered.
	good, bad, r := latencies(t, s)
	want(t, "without timeout", good, 12, 12)
	if len(bad) != 0 || r.Total.Unanswered != 1 || r.Total.Success() != 2.0/3 {
		t.Errorf("bad %v, unanswered %d, success %v", bad, r.Total.Unanswered, r.Total.Success())
	}
	s.Timeout = 100 * millisecond
	good, bad, r = latencies(t, s)
	want(t, "with timeout", good, 12, 12)
	want(t, "given up", bad, 100)
	if r.Total.Unanswered != 0 || r.Total.TimedOut != 1 {
		t.Errorf("unanswered %d, timed out %d", r.Total.Unanswered, r.Total.TimedOut)
	}
}

func TestFailuresAreFastAndNeedNoWorker(t *testing.T) {
	s := Scenario{
		Servers: []Server{{Workers: 1, Phases: []Phase{{From: 5 * millisecond, Until: 15 * millisecond, Fail: picker.Failure, FailAfter: 2 * millisecond}}}},
		Service: Fixed{100 * millisecond}, Arrivals: at(0, 10, 20),
	}
	good, bad, _ := latencies(t, s)
	want(t, "good", good, 100, 180)
	want(t, "bad", bad, 2)
	s = Scenario{
		Servers: []Server{{Phases: []Phase{{Until: time.Hour, Fail: picker.Failure, FailShare: 0.3}}}},
		Service: Fixed{0}, Arrivals: Arrivals{Rate: 1000}, Requests: 10_000,
	}
	if part := float64(mustRun(t, s, "random", 1).Total.Failed) / 10_000; part < 0.28 || part > 0.32 {
		t.Errorf("%.3f failed, want 0.3", part)
	}
}

func TestPhasesSetFactorsAndLawsWhenWorkBegins(t *testing.T) {
	s := Scenario{
		Servers: []Server{{Workers: 1, Speed: 2, Phases: []Phase{
			{From: 100 * millisecond, Until: 200 * millisecond, Slow: 3},
			{From: 150 * millisecond, Until: 300 * millisecond, Slow: 2},
			{From: 400 * millisecond, Until: 600 * millisecond, Service: Fixed{80 * millisecond}},
			{From: 1000 * millisecond, Until: 2000 * millisecond, Slow: 11, SlowEnd: 1},
		}}},
		Service: Fixed{20 * millisecond}, Arrivals: at(0, 100, 160, 250, 400, 1500, 2000),
	}
	good, _, _ := latencies(t, s)
	want(t, "sorted", good, 10, 10, 20, 30, 40, 60, 60)
}

func TestMembersComeAndGo(t *testing.T) {
	s := Scenario{
		Servers: equal(4, Server{}), Service: Fixed{millisecond}, Arrivals: Arrivals{Kind: Even, Rate: 1000}, Length: 3 * second, Balancers: 2,
		Windows: []Span{{"before", 0, second}, {"within", second, 2 * second}, {"after", 2 * second, 3 * second}},
	}
	s.Servers[1].Phases = []Phase{{From: second, Until: 2 * second, Absent: true}}
	s.Servers[2].Phases = []Phase{{From: second, Until: 2 * second, Drained: true}}
	for _, policy := range []string{"round_robin", "p2c", "p2c_latency", "least", "jsq", "p2c_table@10ms"} {
		r := mustRun(t, s, policy, 1)
		for name, gone := range map[string]bool{"before": false, "within": true, "after": false} {
			picks := r.Window(name).Picks
			for i, n := range picks {
				if out := gone && (i == 1 || i == 2); out != (n == 0) {
					t.Errorf("%s, %s: server %d got %d", policy, name, i, n)
				}
			}
		}
	}
	for i := range s.Servers {
		s.Servers[i].Phases = []Phase{{From: second, Until: 2 * second, Absent: true}}
	}
	for _, policy := range []string{"default", "jsed"} {
		r := mustRun(t, s, policy, 1)
		if w := r.Window("within"); w.Unsent != w.Requests || w.Unsent == 0 || r.Window("after").Success() != 1 {
			t.Errorf("%s, nobody there: %d of %d unsent", policy, w.Unsent, w.Requests)
		}
	}
}

func TestUpdatesThatChangeNothingChangeNothing(t *testing.T) {
	for _, policy := range []string{"round_robin", "p2c", "p2c_latency"} {
		s := S13()
		s.Length = 30 * second
		with := mustRun(t, s, policy, 1)
		s.Refresh = 0
		without := mustRun(t, s, policy, 1)
		if with.Total.Latency().Mean() != without.Total.Latency().Mean() || !slices.Equal(with.Total.Picks, without.Total.Picks) {
			t.Errorf("%s: a refresh of the list shows", policy)
		}
	}
}

func TestFirstByteOfAStreamReachesTheClient(t *testing.T) {
	s := Scenario{
		Servers:  equal(1, Server{}),
		Classes:  []Class{{Kind: picker.Stream, Service: Fixed{10 * second}, FirstByte: Fixed{20 * millisecond}}},
		Arrivals: Arrivals{Kind: Even, Rate: 100}, Requests: 50, Delay: millisecond,
	}
	p := Policy{Config: evenkeel.Config{Policy: picker.P2C{}}}
	r, err := newRun(&s, &p, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.loop()
	got := r.clients.pools[0].StatsAt(r.clients.time(r.now)).Endpoints[0].Latency
	if got < 21*millisecond || got > 23*millisecond {
		t.Errorf("the pool learnt %v, want 22ms", got)
	}
}
