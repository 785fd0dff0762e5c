package evenkeel_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

var origin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// policies are those whose picks are measured: nothing learnt, counts alone, and the expected wait.
var policies = []namedPolicy{
	{"round_robin", picker.RoundRobin{}},
	{"random", picker.Random{}},
	{"p2c_in_flight", picker.P2C{Signal: picker.InFlight}},
	{"p2c_latency", picker.P2C{}},
	{"adaptive", picker.Adaptive{}},
}

// weightedPolicies are the rules that go by weights; they keep state of their own.
var weightedPolicies = []namedPolicy{
	{"smooth", picker.SmoothWeightedRoundRobin{}},
	{"edf", picker.EDF{}},
	{"least_request", picker.WeightedLeastRequest{}},
	{"stride", picker.WeightedRoundRobin{}},
	{"alias", picker.WeightedRandom{}},
}

// allPolicies are those that a pool changes between in tests.
var allPolicies = slices.Concat(policies, weightedPolicies)

type namedPolicy struct {
	name   string
	policy evenkeel.Policy
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
		if err := p.SetConfig(evenkeel.Config{Policy: allPolicies[r.IntN(len(allPolicies))].policy}); err != nil {
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
	for _, tc := range allPolicies {
		p := newPool(t, evenkeel.Config{Policy: tc.policy}, 100)
		if n := testing.AllocsPerRun(1000, func() {
			k, err := p.Pick(evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			k.FirstByte()
			k.Done(evenkeel.Result{Outcome: evenkeel.Success})
		}); n != 0 {
			t.Errorf("%s: %v allocations", tc.name, n)
		}
	}
}
