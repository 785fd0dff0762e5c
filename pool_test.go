package evenkeel_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

var origin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

var policies = []evenkeel.Policy{
	picker.RoundRobin{},
	picker.Random{},
	picker.P2C{Signal: picker.InFlight},
	picker.P2C{},
}

func members(n int) []evenkeel.Member[int] {
	list := make([]evenkeel.Member[int], n)
	for i := range list {
		list[i] = evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: fmt.Sprintf("e%d", i)}, Handle: i}
	}
	return list
}

func newPool(tb testing.TB, c evenkeel.Config, n int) *evenkeel.Pool[int] {
	tb.Helper()
	p, err := evenkeel.NewPool[int](c, evenkeel.Options{Rand: rand.New(rand.NewPCG(1, 2)).Uint64, Start: origin})
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.UpdateAt(origin, members(n)); err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestZeroConfigBalances(t *testing.T) {
	p, err := evenkeel.NewPool[int](evenkeel.Config{}, evenkeel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Update(members(3)); err != nil {
		t.Fatal(err)
	}
	got := map[int]bool{}
	for range 100 {
		k, err := p.Pick(evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("e%d", k.Handle()); k.Record().ID() != want {
			t.Fatalf("handle %d came with %s", k.Handle(), k.Record().ID())
		}
		got[k.Handle()] = true
		k.FirstByte()
		k.Done(evenkeel.Result{Outcome: evenkeel.Success})
	}
	if len(got) != 3 {
		t.Errorf("only %v of 3 endpoints were picked", got)
	}
	if s := p.Stats(); s.Ready != 3 || s.Endpoints[0].Latency <= 0 || s.Endpoints[0].Success != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestPicksFailAtOnceWithATypedError(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 0)
	if _, err := p.Pick(evenkeel.Request{}); !errors.Is(err, evenkeel.ErrEmpty) {
		t.Errorf("empty pool: %v", err)
	}
	if err := p.Update([]evenkeel.Member[int]{{Endpoint: evenkeel.Endpoint{ID: "a"}, NotReady: true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Pick(evenkeel.Request{}); !errors.Is(err, evenkeel.ErrNoneReady) {
		t.Errorf("nobody ready: %v", err)
	}
	if !p.SetState("a", evenkeel.Ready) || p.SetState("b", evenkeel.Ready) {
		t.Error("SetState does not know its members")
	}
	k, err := p.Pick(evenkeel.Request{})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Close()
	if _, err := p.Pick(evenkeel.Request{}); !errors.Is(err, evenkeel.ErrClosed) {
		t.Errorf("closed pool: %v", err)
	}
	if err := p.Update(members(1)); !errors.Is(err, evenkeel.ErrClosed) {
		t.Errorf("update of a closed pool: %v", err)
	}
	if err := p.SetConfig(evenkeel.Config{}); !errors.Is(err, evenkeel.ErrClosed) {
		t.Errorf("configuration of a closed pool: %v", err)
	}
	k.Done(evenkeel.Result{Outcome: evenkeel.Success})
	if s := p.Stats(); s.Endpoints[0].InFlight != 0 {
		t.Errorf("in flight %d after Done on a closed pool", s.Endpoints[0].InFlight)
	}
	p.Sweep(time.Now())
	p.SetState("a", evenkeel.NotReady)
}

func TestZeroPickIsDone(t *testing.T) {
	var k evenkeel.Pick[int]
	k.FirstByte()
	k.FirstByteAt(origin)
	k.Done(evenkeel.Result{})
	k.DoneAt(origin, evenkeel.Result{})
	if k.Record() != nil || k.Handle() != 0 {
		t.Error("the zero Pick has an endpoint")
	}
}

func TestBadUpdatesAndConfigsChangeNothing(t *testing.T) {
	p := newPool(t, evenkeel.Config{Policy: picker.RoundRobin{}}, 3)
	before := fmt.Sprintf("%+v", p.StatsAt(origin))
	bad := append(members(3), evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: "e1", Weight: evenkeel.WeightOf(-2)}}, evenkeel.Member[int]{})
	err := p.UpdateAt(origin, bad)
	if err == nil {
		t.Fatal("a bad list was accepted")
	}
	for _, want := range []string{`ID "e1" is that of endpoint 1`, "Weight is -2", "ID is empty"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	c := evenkeel.Config{Policy: picker.P2C{Signal: picker.BuiltinSignal(99)}}
	if err := p.SetConfig(c); err == nil || !strings.Contains(err.Error(), "P2C.Signal is 99") {
		t.Errorf("a bad configuration: %v", err)
	}
	if _, err := evenkeel.NewPool[int](c, evenkeel.Options{}); err == nil {
		t.Error("NewPool accepts a bad configuration")
	}
	if after := fmt.Sprintf("%+v", p.StatsAt(origin)); after != before {
		t.Errorf("the pool changed:\n%s\n%s", before, after)
	}
}

// A thousand random updates, state flips and policy changes on a pool with requests
// in flight: whoever stays keeps everything, and nothing is in flight at rest.
func TestEverythingLearntSurvivesEveryChange(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	p := newPool(t, evenkeel.Config{}, 20)
	list := members(20)
	next := 20
	now := origin
	var open []evenkeel.Pick[int]
	for step := range 1000 {
		for range 10 {
			now = now.Add(300 * time.Microsecond)
			if k, err := p.PickAt(now, evenkeel.Request{}); err == nil {
				open = append(open, k)
			}
			if len(open) > 40 {
				k := r.IntN(len(open))
				open[k].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Outcome(r.IntN(7))})
				open = append(open[:k], open[k+1:]...)
			}
		}
		p.Sweep(now)
		before := statsByID(p.StatsAt(now))
		list = append([]evenkeel.Member[int](nil), list...)
		switch r.IntN(6) {
		case 0:
			list = append(list, evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: fmt.Sprintf("e%d", next)}, Handle: next})
			next++
		case 1:
			if k := r.IntN(len(list)); len(list) > 5 {
				list = append(list[:k], list[k+1:]...)
			}
		case 2:
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		case 3:
			list[r.IntN(len(list))].Weight = evenkeel.WeightOf(1 + float64(r.IntN(3)))
		case 4:
			p.SetState(list[r.IntN(len(list))].ID, evenkeel.State(r.IntN(2)))
		case 5:
			if err := p.SetConfig(evenkeel.Config{Policy: policies[r.IntN(len(policies))]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.UpdateAt(now, list); err != nil {
			t.Fatal(err)
		}
		for id, after := range statsByID(p.StatsAt(now)) {
			was, stayed := before[id]
			was.Weight, after.Weight, was.State, after.State = 0, 0, 0, 0
			if stayed && was != after {
				t.Fatalf("step %d: %s was %+v, is %+v", step, id, was, after)
			}
		}
	}
	for i := range open {
		open[i].DoneAt(now, evenkeel.Result{})
	}
	for _, e := range p.StatsAt(now).Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%s: in flight %d at rest", e.ID, e.InFlight)
		}
	}
}

func statsByID(s evenkeel.Stats) map[string]evenkeel.EndpointStats {
	m := make(map[string]evenkeel.EndpointStats, len(s.Endpoints))
	for _, e := range s.Endpoints {
		m[e.ID] = e
	}
	return m
}

func TestEqualUpdatesAndConfigsDoNothing(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 1000)
	list := members(1000)
	if n := testing.AllocsPerRun(10, func() {
		if err := p.UpdateAt(origin, list); err != nil {
			t.Fatal(err)
		}
		if err := p.SetConfig(evenkeel.Config{}); err != nil {
			t.Fatal(err)
		}
	}); n > 2000 { // comparing boxes some handles; rebuilding would take six slices and a map
		t.Errorf("%v allocations for nothing", n)
	}
	list[3].Handle = 77
	if err := p.UpdateAt(origin, list); err != nil {
		t.Fatal(err)
	}
	got := false
	for range 50_000 {
		k, err := p.PickAt(origin, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		got = got || k.Handle() == 77
	}
	if !got {
		t.Error("a new handle was not taken over")
	}
}

// unlike is a policy that cannot be compared.
type unlike struct {
	picker.RoundRobin
	_ []int
}

func TestPoliciesThatCannotBeComparedAreAccepted(t *testing.T) {
	p := newPool(t, evenkeel.Config{Policy: unlike{}}, 3)
	for range 2 {
		if err := p.SetConfig(evenkeel.Config{Policy: unlike{}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Pick(evenkeel.Request{}); err != nil {
		t.Fatal(err)
	}
}

func TestForgottenSweepIsDoneByAPick(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 2)
	for i := range 10 {
		now := origin.Add(time.Duration(i) * 3 * time.Second)
		k, err := p.PickAt(now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		k.DoneAt(now.Add(20*time.Millisecond), evenkeel.Result{Outcome: evenkeel.Success})
	}
	s := p.StatsAt(origin.Add(30 * time.Second))
	if s.LateSweeps != 9 || s.MedianLatency == 0 {
		t.Errorf("late sweeps %d, median %v; want 9 and some", s.LateSweeps, s.MedianLatency)
	}
	next := p.Sweep(origin.Add(30 * time.Second))
	if want := origin.Add(31 * time.Second); next != want {
		t.Errorf("next sweep at %v, want %v", next, want)
	}
}

// Everything changes at once: run with -race.
func TestEverythingAtOnce(t *testing.T) {
	p, err := evenkeel.NewPool[int](evenkeel.Config{}, evenkeel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 5))
			for {
				select {
				case <-stop:
					return
				default:
				}
				k, err := p.Pick(evenkeel.Request{Kind: picker.Kind(r.IntN(3))})
				if err != nil {
					continue
				}
				if want := fmt.Sprintf("e%d", k.Handle()); k.Record().ID() != want {
					t.Errorf("handle %d came with %s", k.Handle(), k.Record().ID())
				}
				k.FirstByte()
				k.Done(evenkeel.Result{Outcome: evenkeel.Outcome(r.IntN(7))})
			}
		})
	}
	r := rand.New(rand.NewPCG(77, 5))
	for range 2000 {
		list := members(1 + r.IntN(10))
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if err := p.Update(list); err != nil {
			t.Error(err)
		}
		p.SetState(list[0].ID, evenkeel.State(r.IntN(2)))
		if err := p.SetConfig(evenkeel.Config{Policy: policies[r.IntN(len(policies))]}); err != nil {
			t.Error(err)
		}
		p.Sweep(time.Now())
		p.Stats()
	}
	close(stop)
	wg.Wait()
	p.Close()
	for _, e := range p.Stats().Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%s: in flight %d at rest", e.ID, e.InFlight)
		}
	}
}

// The pool adds the clock and the handle to a pick, and no allocation.
func TestPoolPickDoesNotAllocate(t *testing.T) {
	for _, policy := range policies {
		p := newPool(t, evenkeel.Config{Policy: policy}, 100)
		if n := testing.AllocsPerRun(1000, func() {
			k, err := p.Pick(evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			k.FirstByte()
			k.Done(evenkeel.Result{Outcome: evenkeel.Success})
		}); n != 0 {
			t.Errorf("%T: %v allocations", policy, n)
		}
	}
}

// Bug 2: statistics survive a connection that goes away and comes back, and results
// of picks from before still reach them.
func TestBug2StateFlipsKeepRecordsAndOldPicks(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 3)
	now := origin
	var old []evenkeel.Pick[int]
	for i := range 30 {
		k, err := p.PickAt(now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if i < 20 {
			k.DoneAt(now.Add(10*time.Millisecond), evenkeel.Result{Outcome: evenkeel.Success})
		} else {
			old = append(old, k)
		}
	}
	before := p.StatsAt(now)
	p.SetState("e1", evenkeel.NotReady)
	p.SetState("e1", evenkeel.Ready)
	if after := p.StatsAt(now); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	for i := range old {
		old[i].DoneAt(now.Add(time.Second), evenkeel.Result{Outcome: evenkeel.Failure})
	}
	for _, e := range p.StatsAt(now.Add(time.Second)).Endpoints {
		if e.InFlight != 0 || e.Success == 1 {
			t.Errorf("%+v: want nothing in flight, and failures", e)
		}
	}
}
