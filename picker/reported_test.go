package picker_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// queues is a registry whose endpoints are asked in turn and report; what they report and how
// long they take is up to the test.
type queues struct {
	*fleet
	random *rand.Rand
}

func newQueues(t *testing.T, n int) *queues {
	return &queues{newFleet(t, picker.Adaptive{}, endpoints(n), 5), rand.New(rand.NewPCG(5, 6))}
}

// ask sends a request to endpoint i, which takes d and reports l.
func (q *queues) ask(i int, d time.Duration, l picker.Load) {
	p := holdAt(q.tb, q.snapshot, i, q.now)
	p.Done(q.now+int64(d), picker.Result{Outcome: picker.Success, Load: l})
	q.rest(d + time.Millisecond)
}

// teach lets each endpoint answer rounds times, with as many in flight as make it slow if honest;
// else what it reports has nothing to do with how long it took.
func (q *queues) teach(rounds int, honest bool) {
	for range rounds {
		for i := range q.snapshot.Len() {
			n := q.random.IntN(8)
			said := n
			if !honest {
				said = q.random.IntN(8)
			}
			q.ask(i, time.Duration(n+1)*5*time.Millisecond, picker.Load{}.WithInFlight(float64(said)))
		}
	}
	q.rest(2 * time.Second)
}

// surcharge is how many doublings more endpoint i costs for reporting l than for saying nothing.
func (q *queues) surcharge(i int, l picker.Load, age time.Duration) float64 {
	q.rest(0) // sweeps that the last call has left behind
	r := q.snapshot.Record(i)
	q.ask(i, usual, l)
	q.now += int64(age) - int64(time.Millisecond)
	with := picker.Latency.Cost(r, q.now)
	q.now += int64(time.Minute) // what is left of it then is nothing
	without := picker.Latency.Cost(r, q.now)
	return doublings(with, without)
}

func TestReportedLoadCountsAgainstAnEndpointOnceReportsAreSeenToMeanSomething(t *testing.T) {
	q := newQueues(t, 4)
	if got := q.surcharge(0, picker.Load{}.WithInFlight(500), 0); math.Abs(got) > 0.2 {
		t.Errorf("a first report costs %.2f doublings, want none: nobody knows what it means", got)
	}
	q.teach(40, true)
	// Seven in flight are usual for nobody: the mean of log2(n + 1) over 0 to 7 is 1.9.
	for _, tc := range []struct {
		n           float64
		least, most float64
	}{{0, -0.05, 0.05}, {1, -0.05, 0.05}, {7, 0.3, 0.8}, {63, 1.2, 1.55}, {1e300, 1.4, 1.55}} {
		if got := q.surcharge(1, picker.Load{}.WithInFlight(tc.n), 0); got < tc.least || got > tc.most {
			t.Errorf("%v in flight cost %.2f doublings, want %v to %v", tc.n, got, tc.least, tc.most)
		}
		q.teach(10, true)
	}
}

func TestReportedLoadFadesInFourLatencies(t *testing.T) {
	q := newQueues(t, 4)
	q.teach(40, true)
	fresh := q.surcharge(2, picker.Load{}.WithInFlight(1e6), 0)
	for age, least := range map[time.Duration]float64{20 * time.Millisecond: 0.5, 2 * time.Second: 0} {
		q.teach(10, true)
		if got := q.surcharge(2, picker.Load{}.WithInFlight(1e6), age); got < least*fresh || got > max(least, 0.02)*1.7*fresh {
			t.Errorf("after %v it costs %.2f doublings, %.2f when fresh", age, got, fresh)
		}
	}
}

func TestReportsThatMeanNothingDoNotCount(t *testing.T) {
	q := newQueues(t, 4)
	q.teach(60, false)
	if got := q.surcharge(0, picker.Load{}.WithInFlight(1000), 0); math.Abs(got) > 0.3 {
		t.Errorf("a report from a fleet whose reports are random costs %.2f doublings", got)
	}
	// They are believed once they are true, and not for ever.
	q.teach(400, true)
	if got := q.surcharge(0, picker.Load{}.WithInFlight(1000), 0); got < 1 {
		t.Errorf("after true reports it costs %.2f doublings", got)
	}
	q.teach(2000, false) // reports of the last minute decide
	if got := q.surcharge(0, picker.Load{}.WithInFlight(1000), 0); math.Abs(got) > 0.3 {
		t.Errorf("after random ones again it costs %.2f doublings", got)
	}
}

func TestReportOfALatencyAloneServesAsWell(t *testing.T) {
	q := newQueues(t, 3)
	for range 60 {
		for i := range 3 {
			d := time.Duration(q.random.IntN(8)+1) * 5 * time.Millisecond
			q.ask(i, d, picker.Load{}.WithLatency(d))
		}
	}
	q.rest(2 * time.Second)
	if got := q.surcharge(0, picker.Load{}.WithLatency(time.Second), 0); got < 1 {
		t.Errorf("a latency fifty times the usual costs %.2f doublings", got)
	}
}

// Nothing that an endpoint reports makes it cheaper than it is without reports.
func TestNoReportMakesAnEndpointCheaper(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		plain, reporting := newQueues(t, 3), newQueues(t, 3)
		n := 0.0
		for k := range 300 {
			d := time.Duration(random.ExpFloat64() * 2e7)
			if random.IntN(3) > 0 {
				n = math.Floor(math.Exp(random.Float64()*20)) - 1
			}
			l := picker.Load{}.WithInFlight(n).WithErrorRate(random.Float64() - 0.5)
			plain.ask(k%3, d, picker.Load{})
			reporting.ask(k%3, d, l)
			a, b := plain.snapshot.Record(k%3), reporting.snapshot.Record(k%3)
			if x, y := picker.Latency.Cost(a, plain.now), picker.Latency.Cost(b, reporting.now); y < x {
				t.Fatalf("%v in flight made it cheaper by %.4f doublings", n, doublings(x, y))
			}
		}
	}
}

func TestReportedErrorRateCostsUpToOneDoublingForSomeSeconds(t *testing.T) {
	for part, want := range map[float64]float64{0: 0, 0.1: 0.456, 0.2: 0.966, 0.5: 1, 1: 1} {
		plain, q := newQueues(t, 2), newQueues(t, 2)
		for _, f := range []*queues{plain, q} {
			f.teach(10, false)
		}
		plain.ask(0, usual, picker.Load{})
		q.ask(0, usual, picker.Load{}.WithErrorRate(part))
		for _, later := range []struct {
			by   time.Duration
			left float64
		}{{0, 1}, {10 * time.Second, math.Exp(-5)}} {
			plain.rest(later.by)
			q.rest(later.by)
			got := doublings(picker.Latency.Cost(q.snapshot.Record(0), q.now), picker.Latency.Cost(plain.snapshot.Record(0), plain.now))
			if math.Abs(got-want*later.left) > 0.02 {
				t.Errorf("an error rate of %v costs %.2f doublings %v later, want %.2f", part, got, later.by, want*later.left)
			}
		}
	}
}

func TestReportOfAnEarlierEpochTeachesNothing(t *testing.T) {
	q := newQueues(t, 4)
	q.teach(40, true)
	r := q.snapshot.Record(0)
	p := holdAt(t, q.snapshot, 0, q.now)
	r.RaiseEpoch()
	before := picker.Latency.Cost(r, q.now+int64(usual))
	p.Done(q.now+int64(usual), picker.Result{Outcome: picker.Success, Load: picker.Load{}.WithInFlight(1e6).WithErrorRate(1)})
	if after := picker.Latency.Cost(r, q.now+int64(usual)); after > before {
		t.Errorf("it costs %.2f doublings more", doublings(after, before))
	}
}

// Adapters end a request once for each answer, on the request path.
func TestDoneWithAReportDoesNotAllocate(t *testing.T) {
	q := newQueues(t, 4)
	q.teach(40, true)
	now := q.now
	if n := testing.AllocsPerRun(200, func() {
		now += ms
		pick, _, err := q.snapshot.Pick(picker.Request{}, now)
		if err != nil {
			t.Fatal(err)
		}
		l := picker.Load{}.WithInFlight(float64(now % 97)).WithLatency(5 * time.Millisecond).WithErrorRate(0.01)
		pick.Answered(now+ms/2, picker.Result{Outcome: picker.Success, Load: l})
		pick.Done(now+ms, picker.Result{Outcome: picker.Success, Load: l})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestReportsFromManyGoroutines(t *testing.T) {
	g, s := build(t, picker.Adaptive{}, endpoints(4), nil)
	var group sync.WaitGroup
	for k := range 4 {
		group.Go(func() {
			for step := range int64(2000) {
				now := step * ms
				p, _, err := s.Pick(picker.Request{}, now)
				if err != nil {
					t.Error(err)
					return
				}
				p.Done(now+ms, picker.Result{Outcome: picker.Success, Load: picker.Load{}.WithInFlight(float64(int(step) * k % 13)).WithErrorRate(0.1)})
			}
		})
	}
	for k := range int64(20) {
		g.Sweep(k * 100 * ms)
	}
	group.Wait()
}

// One endpoint whose reports mean nothing loses its trust by itself, and takes nobody else's.
func TestTrustIsEachEndpointsOwn(t *testing.T) {
	q := newQueues(t, 4)
	for range 300 {
		for i := range 4 {
			n := q.random.IntN(8)
			said := n
			if i == 3 {
				said = q.random.IntN(8)
			}
			q.ask(i, time.Duration(n+1)*5*time.Millisecond, picker.Load{}.WithInFlight(float64(said)))
		}
	}
	q.rest(2 * time.Second)
	busy := picker.Load{}.WithInFlight(1000)
	if honest, other := q.surcharge(0, busy, 0), q.surcharge(3, busy, 0); honest < 1 || math.Abs(other) > 0.4 {
		t.Errorf("an honest report costs %.2f doublings, that of the one whose reports are random %.2f", honest, other)
	}
}

// Failures come in no time: that they are quick says nothing about reports.
func TestFailuresDoNotJudgeReports(t *testing.T) {
	q := newQueues(t, 4)
	q.teach(40, true)
	for range 400 {
		for i := range 4 {
			p := holdAt(t, q.snapshot, i, q.now)
			p.Done(q.now+ms, picker.Result{Outcome: picker.Failure, Load: picker.Load{}.WithInFlight(float64(q.random.IntN(8)))})
			q.rest(2 * time.Millisecond)
		}
	}
	q.rest(2 * time.Second)
	if got := q.surcharge(0, picker.Load{}.WithInFlight(1e6), 0); got < 1 {
		t.Errorf("after failures a report costs %.2f doublings", got)
	}
}

func TestReportOutlivesASweep(t *testing.T) {
	q := newQueues(t, 4)
	q.teach(40, true)
	r := q.snapshot.Record(0)
	q.ask(0, usual, picker.Load{}.WithInFlight(1e6))
	before := picker.Latency.Cost(r, q.now)
	q.registry.Sweep(q.now)
	if after := picker.Latency.Cost(r, q.now); math.Abs(doublings(after, before)) > 0.1 {
		t.Errorf("a sweep takes %.2f doublings off", doublings(before, after))
	}
}

// A clock that steps back leaves a report of the future, which would not fade until then.
func TestReportOfAClockThatStepsBackIsDropped(t *testing.T) {
	q := newQueues(t, 4)
	q.teach(40, true)
	r := q.snapshot.Record(0)
	q.ask(0, usual, picker.Load{}.WithInFlight(1e6).WithErrorRate(1))
	back := q.now - int64(time.Second)
	before := picker.Latency.Cost(r, back)
	q.registry.Sweep(back)
	if after := picker.Latency.Cost(r, back); doublings(before, after) < 2 {
		t.Errorf("it costs %.2f doublings less after a sweep, want 2.4", doublings(before, after))
	}
}
