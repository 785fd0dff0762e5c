package picker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// A thousand random updates, with requests in flight throughout: whoever stays keeps
// latency, success and in-flight count to the last bit, at each step.
func TestT14RecordsSurviveEveryUpdate(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	policy := picker.P2C{}
	g := picker.NewRegistry(r.Uint64)
	g.Learn(policy.Needs())
	list := endpoints(20)
	next := 20
	traffic := openTraffic{r: r}
	var prev picker.Picker
	for step := range 1000 {
		m, err := g.Members(list, traffic.now)
		if err != nil {
			t.Fatal(err)
		}
		prev = policy.Build(m, prev)
		traffic.serve(t, picker.NewSnapshot(m, nil, policy, prev))
		now := traffic.now
		before := map[string]string{}
		for i := range m.Len() {
			before[m.Record(i).ID()] = state(m.Record(i), now)
		}
		list = mutate(r, list, &next)
		after, err := g.Members(list, now)
		if err != nil {
			t.Fatal(err)
		}
		g.Sweep(now)
		for i := range after.Len() {
			rec := after.Record(i)
			if rec.ID() != list[i].ID {
				t.Fatalf("step %d: member %d is %s, want %s", step, i, rec.ID(), list[i].ID)
			}
			if was, stayed := before[rec.ID()]; stayed && was != state(rec, now) {
				t.Fatalf("step %d: %s was %s, is %s", step, rec.ID(), was, state(rec, now))
			}
		}
	}
	for i := range traffic.open {
		traffic.open[i].Done(traffic.now, picker.Result{})
	}
	m, err := g.Members(list, traffic.now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Len() {
		if n := m.Record(i).InFlight(); n != 0 {
			t.Errorf("%s: in flight %d at rest", m.Record(i).ID(), n)
		}
	}
}

// openTraffic keeps some fifty requests in flight, which end in any order and in any way.
type openTraffic struct {
	r    *rand.Rand
	now  int64
	open []picker.Pick
}

// serve sends twenty requests.
func (o *openTraffic) serve(t *testing.T, s *picker.Snapshot) {
	t.Helper()
	for range 20 {
		o.now += ms / 2
		o.open = append(o.open, pickAt(t, s, picker.Request{Kind: picker.Kind(o.r.IntN(3))}, o.now))
		if k := o.r.IntN(len(o.open)); len(o.open) > 50 {
			o.open[k].Done(o.now, picker.Result{Outcome: picker.Outcome(o.r.IntN(7))})
			o.open[k] = o.open[len(o.open)-1]
			o.open = o.open[:len(o.open)-1]
		}
	}
}

func state(r *picker.Record, now int64) string {
	lat, known := r.PeakLatency(now)
	return fmt.Sprintf("%p latency %d %v, in flight %d, streams %d, success %v, picks %d, avoided %d",
		r, lat, known, r.InFlight(), r.Streams(), r.Success(now), r.Picks(), r.AvoidFor(now))
}

// mutate adds, removes, reorders or reweights.
func mutate(r *rand.Rand, list []picker.Endpoint, next *int) []picker.Endpoint {
	list = append([]picker.Endpoint(nil), list...)
	switch k := r.IntN(4); {
	case k == 0 || len(list) < 5:
		list = append(list, picker.Endpoint{ID: fmt.Sprintf("e%d", *next)})
		*next++
	case k == 1:
		i := r.IntN(len(list))
		list = append(list[:i], list[i+1:]...)
	case k == 2:
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	default:
		list[r.IntN(len(list))].Weight = picker.WeightOf(float64(r.IntN(5)))
	}
	return list
}

func TestBadListChangesNothing(t *testing.T) {
	g := picker.NewRegistry(nil)
	first, err := g.Members(endpoints(3), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Members([]picker.Endpoint{{ID: "new"}, {ID: "e0"}, {ID: "e0"}}, 5); err == nil {
		t.Fatal("a duplicate ID was accepted")
	}
	g.Sweep(int64(10 * time.Minute))
	again, err := g.Members(endpoints(3), int64(10*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if first.Record(i) != again.Record(i) {
			t.Errorf("endpoint %d has another record after a refused list", i)
		}
	}
}

func TestListIsCopied(t *testing.T) {
	g := picker.NewRegistry(nil)
	list := endpoints(3)
	m, err := g.Members(list, 0)
	if err != nil {
		t.Fatal(err)
	}
	list[0], list[1] = list[1], list[0]
	if m.Endpoint(0).ID != "e0" || m.Record(0).ID() != "e0" {
		t.Error("the caller's slice shows through")
	}
}

func TestTombstoneKeepsWhatAFlappingListForgets(t *testing.T) {
	g := picker.NewRegistry(nil)
	m, _ := g.Members(endpoints(2), 0)
	was := m.Record(1)
	flap := func(away time.Duration) *picker.Record {
		m, err := g.Members(endpoints(1), 0)
		if err != nil || m.Len() != 1 {
			t.Fatal(err)
		}
		g.Sweep(int64(away))
		m, err = g.Members(endpoints(2), int64(away))
		if err != nil {
			t.Fatal(err)
		}
		return m.Record(1)
	}
	if flap(picker.Tombstone-time.Second) != was {
		t.Error("forgotten before its time")
	}
	if flap(picker.Tombstone+time.Second) == was {
		t.Error("kept after its time")
	}
}

func TestBug60RegistryStaysFlatWhenListsComeAndGo(t *testing.T) {
	g := picker.NewRegistry(nil)
	policy := picker.P2C{}
	var prev picker.Picker
	now := int64(0)
	for k := range 10_000 {
		now += int64(time.Second)
		list := []picker.Endpoint{{ID: fmt.Sprint("a", k)}, {ID: fmt.Sprint("b", k)}, {ID: "stays"}}
		if k%2 == 1 {
			list = nil
		}
		m, err := g.Members(list, now)
		if err != nil {
			t.Fatal(err)
		}
		prev = policy.Build(m, prev)
		g.Sweep(now)
		if n := g.Len(); n > 3*61 {
			t.Fatalf("update %d: %d records", k, n)
		}
	}
}

func TestT25LeakedPicksAreNoLongerBelieved(t *testing.T) {
	g, s := build(t, picker.P2C{Signal: picker.Latency}, endpoints(2), nil)
	var leaked []picker.Pick
	for range 50 {
		leaked = append(leaked, hold(t, s, 0))
	}
	stream := picker.NewSnapshot(s.Members(), []int32{1}, picker.P2C{}, fixed{})
	held := pickAt(t, stream, picker.Request{Kind: picker.Stream}, 0)
	now := int64(0)
	for now < int64(picker.LeakAfter)-int64(time.Second) {
		now += int64(time.Second)
		g.Sweep(now)
	}
	if got := s.Record(0).InFlight(); got != 50 {
		t.Fatalf("in flight %d before the time, want 50", got)
	}
	for range 3 {
		now += int64(time.Second)
		g.Sweep(now)
	}
	r := s.Record(0)
	if r.InFlight() != 0 || r.Leaked() != 50 {
		t.Errorf("in flight %d, leaked %d, want 0 and 50", r.InFlight(), r.Leaked())
	}
	if got := s.Record(1).InFlight(); got != 1 {
		t.Errorf("the open stream is no longer believed: in flight %d", got)
	}
	fresh := hold(t, picker.NewSnapshot(s.Members(), nil, fixed{}, fixed{}), 0)
	_ = fresh
	for i := range 20 { // some come back after all
		leaked[i].Done(now, picker.Result{})
	}
	if r.InFlight() != 1 || r.Leaked() != 30 {
		t.Errorf("after 20 late Dones: in flight %d, leaked %d, want 1 and 30", r.InFlight(), r.Leaked())
	}
	held.Done(now, picker.Result{})
}

func TestRequestsKeepOffWhatTheyAvoid(t *testing.T) {
	for _, p := range benchPolicies {
		for _, n := range []int{1, 2, 3, 10} {
			g, s := build(t, p.policy, endpoints(n), nil)
			now := int64(0)
			warm(t, g, s, &now)
			for tried := 1; tried <= n; tried++ {
				var avoid []*picker.Record
				for i := range tried {
					avoid = append(avoid, s.Record(i))
				}
				for range 200 {
					pick, i, err := s.Pick(picker.Request{Avoid: avoid}, now)
					if err != nil {
						t.Fatal(err)
					}
					if tried < n && i < tried {
						t.Fatalf("%s: n = %d, %d tried: picked %d again", p.name, n, tried, i)
					}
					pick.Done(now, picker.Result{})
				}
			}
		}
	}
}

// Bug 52: a retry lands on the endpoint that just failed; with two of them and round
// robin even always.
func TestBug52RetryGoesElsewhereWheneverItCan(t *testing.T) {
	for _, n := range []int{2, 3} {
		_, s := build(t, picker.RoundRobin{}, endpoints(n), nil)
		for range 100 {
			first := pickAt(t, s, picker.Request{}, 0)
			second := pickAt(t, s, picker.Request{Avoid: []*picker.Record{first.Record()}}, 0)
			if first.Record() == second.Record() {
				t.Fatalf("n = %d: the second try went to the same endpoint", n)
			}
		}
	}
}

func TestT01ColdEndpointIsTriedOnceAndThenBelieved(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	g := picker.NewRegistry(r.Uint64)
	policy := picker.P2C{}
	g.Learn(policy.Needs())
	m, _ := g.Members(endpoints(10), 0)
	s := picker.NewSnapshot(m, nil, policy, policy.Build(m, nil))
	now := int64(0)
	serve(t, s, 2000, &now)
	g.Sweep(now)
	m, _ = g.Members(endpoints(11), now)
	s = picker.NewSnapshot(m, nil, policy, policy.Build(m, nil))
	cold := m.Record(10)
	// It does not answer for two medians: one request in flight, no more.
	var held []picker.Pick
	for range 500 {
		pick, i, err := s.Pick(picker.Request{}, now)
		if err != nil {
			t.Fatal(err)
		}
		if i == 10 {
			held = append(held, pick)
		} else {
			pick.Done(now, picker.Result{})
		}
	}
	if cold.InFlight() != 1 {
		t.Fatalf("%d in flight on an endpoint that never answered", cold.InFlight())
	}
	held[0].Done(now+ms, picker.Result{Outcome: picker.Success})
	// Then it takes part in a tenth of the comparisons, and in all after ten seconds.
	counts := serve(t, s, 11_000, &now)
	if counts[10] < 50 || counts[10] > 200 {
		t.Errorf("it got %d of 11,000 in the first second, want about 110", counts[10])
	}
	serve(t, s, 100_000, &now)
	g.Sweep(now)
	counts = serve(t, s, 22_000, &now)
	if math.Abs(float64(counts[10]-2000)) > 250 {
		t.Errorf("it got %d of 22,000 at last, want about 2,000", counts[10])
	}
}

func TestEmptyAndUnreadyAreTypedErrors(t *testing.T) {
	for _, p := range benchPolicies {
		_, s := build(t, p.policy, nil, nil)
		if _, _, err := s.Pick(picker.Request{}, 0); err != picker.ErrEmpty {
			t.Errorf("%s: no members: %v", p.name, err)
		}
		_, s = build(t, p.policy, endpoints(3), nil)
		s = picker.NewSnapshot(s.Members(), []int32{}, p.policy, p.policy.Build(s.Members(), nil))
		if _, _, err := s.Pick(picker.Request{}, 0); err != picker.ErrNoneReady {
			t.Errorf("%s: nobody ready: %v", p.name, err)
		}
	}
}
