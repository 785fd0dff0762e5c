package evenkeel_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// branches returns a pool and that many branches of it, each with n endpoints whose handles are its own: a
// hundred for each branch.
func branches(tb testing.TB, c evenkeel.Config, count, n int) (trunk *evenkeel.Pool[int], list []*evenkeel.Pool[int]) {
	tb.Helper()
	trunk = newPool(tb, c, 0)
	for k := range count {
		b, err := trunk.Branch()
		if err == nil {
			err = b.UpdateAt(origin, membersOf(k, n))
		}
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, b)
	}
	return trunk, list
}

func membersOf(branch, n int) []evenkeel.Member[int] {
	list := members(n)
	for i := range list {
		list[i].Handle += 100 * branch
	}
	return list
}

// pickOn picks for a branch until endpoint i is it.
func pickOn(t *testing.T, p *evenkeel.Pool[int], at time.Time, i int) evenkeel.Pick[int] {
	t.Helper()
	for range 10_000 {
		k, err := p.PickAt(at, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if k.Handle()%100 == i {
			return k
		}
		k.DoneAt(at, evenkeel.Result{})
	}
	t.Fatalf("e%d is never picked", i)
	return evenkeel.Pick[int]{}
}

func TestBranchesSeeWhatTheOthersHaveInFlight(t *testing.T) {
	_, both := branches(t, evenkeel.Config{Policy: picker.Least{}}, 2, 3)
	for range 10 {
		pickOn(t, both[0], origin, 0)
		_ = both[0].SetStates([]evenkeel.StateChange{{ID: "e1", State: evenkeel.NotReady}, {ID: "e2", State: evenkeel.NotReady}})
	}
	if n := both[1].InFlight("e0"); n < 10 {
		t.Fatalf("%d in flight, want 10", n)
	}
	for range 8 {
		if k, err := both[1].PickAt(origin, evenkeel.Request{}); err != nil || k.Handle() == 100 {
			t.Fatalf("%v, %v: want one of those that have nothing in flight", k.Handle(), err)
		}
	}
}

// Each has its handles and who is ready; what is an endpoint's is everybody's.
func TestBranchesHaveTheirOwnAvailability(t *testing.T) {
	trunk, both := branches(t, evenkeel.Config{}, 2, 3)
	both[0].SetState("e0", evenkeel.NotReady)
	both[1].SetState("e1", evenkeel.Draining)
	for k, p := range both {
		got := map[int]bool{}
		for range 300 {
			pick, err := p.PickAt(origin, evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			got[pick.Handle()] = true
			pick.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
		}
		if len(got) != 2 || got[100*k+k] || !got[100*k+2] {
			t.Errorf("branch %d picked %v", k, got)
		}
		if s := p.StatsAt(origin); s.Ready != 2 || s.Endpoints[2].Picks != 0 && s.Endpoints[k].State == evenkeel.Ready {
			t.Errorf("branch %d is %+v", k, s)
		}
	}
	if s := trunk.StatsAt(origin); s.Ready != 3 || s.Endpoints[2].Picks == 0 {
		t.Errorf("together: %+v", s)
	}
	if got := fmt.Sprint(both[1].Selected(), both[1].Drained()); got != "[100 101 102] [101]" {
		t.Errorf("selected and drained are %s", got)
	}
}

// Three failures that one meets and two that another does are five in a row, and one trial brings it back for both.
func TestBranchesEjectTogether(t *testing.T) {
	c := soft(picker.RoundRobin{})
	_, both := branches(t, c, 2, 4)
	for i := range 5 {
		k := pickOn(t, both[i%2], origin, 0)
		k.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Failure})
	}
	for _, p := range both {
		if s := p.StatsAt(origin); s.Ejected != 1 || s.Ready != 3 {
			t.Fatalf("%d are ejected and %d ready, want 1 and 3", s.Ejected, s.Ready)
		}
	}
	both[1].SetState("e0", evenkeel.NotReady) // who is not connected cannot find out
	now := origin.Add(10 * time.Second)
	tried := false
	for range 100 {
		for n, p := range both {
			k, err := p.PickAt(now, evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if k.Handle() == 100 {
				t.Fatal("a branch sent a request where it has no connection")
			}
			tried = tried || n == 0 && k.Handle() == 0
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
		}
	}
	if !tried {
		t.Error("nobody found out about the ejected endpoint")
	}
	both[1].SetState("e0", evenkeel.Ready)
	now = now.Add(time.Minute)
	both[0].Sweep(now)
	if s := both[1].StatsAt(now); s.Ejected != 0 || s.Ready != 4 {
		t.Errorf("%d are ejected and %d ready, want all back", s.Ejected, s.Ready)
	}
}

// A branch that takes a turn to find out about an endpoint that it cannot reach gives it back.
func TestTurnsToFindOutAreGivenBack(t *testing.T) {
	_, both := branches(t, soft(picker.RoundRobin{}), 2, 6)
	for i := range 2 {
		for range 5 {
			k := pickOn(t, both[0], origin, i)
			k.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Failure})
		}
	}
	both[1].SetState("e0", evenkeel.NotReady)
	now := origin.Add(10 * time.Second)
	tried := map[int]bool{}
	for n := range 400 {
		k, err := both[1-n/200].PickAt(now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		tried[k.Handle()] = true
		k.DoneAt(now, evenkeel.Result{}) // which says nothing
	}
	if !tried[0] || tried[100] || !tried[1] && !tried[101] {
		t.Errorf("those that were tried are %v", tried)
	}
}

// Caps are of all endpoints together, and panic is of what a branch can reach.
func TestCapsAreOfAllAndPanicIsOfEach(t *testing.T) {
	c := soft(picker.RoundRobin{})
	c.Outlier.MaxEjectionPercent = outlier.PercentOf(30)
	_, both := branches(t, c, 2, 10)
	if err := both[1].UpdateAt(origin, membersOf(1, 4)); err != nil { // a part of them
		t.Fatal(err)
	}
	for i := range 4 {
		for range 5 {
			k := pickOn(t, both[0], origin, i)
			k.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Failure})
		}
		if i == 2 {
			break
		}
	}
	if s := both[0].StatsAt(origin); s.Ejected != 3 || s.Panicking || s.Ready != 7 {
		t.Errorf("the one: %d ejected, %d ready, panic %v; want 3, 7, none", s.Ejected, s.Ready, s.Panicking)
	}
	if s := both[1].StatsAt(origin); s.Ejected != 3 || !s.Panicking || s.Ready != 4 {
		t.Errorf("the other: %d ejected, %d ready, panic %v; want 3, 4, panic", s.Ejected, s.Ready, s.Panicking)
	}
}

// What leaves one list stays as long as another has it; what has left all is kept for a minute.
func TestAnEndpointLivesAsLongAsABranchHasIt(t *testing.T) {
	trunk, both := branches(t, evenkeel.Config{}, 2, 3)
	k := pickOn(t, both[0], origin, 2)
	at := func(d time.Duration) time.Time { return origin.Add(d) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(both[0].UpdateAt(at(time.Second), membersOf(0, 2)))
	for range 100 {
		if o, err := both[0].PickAt(at(time.Second), evenkeel.Request{}); err != nil || o.Handle() == 2 {
			t.Fatalf("%d, %v: picked after it left", o.Handle(), err)
		}
	}
	trunk.Sweep(at(2 * time.Minute))
	if s := both[1].StatsAt(at(2 * time.Minute)); len(s.Endpoints) != 3 || s.Endpoints[2].InFlight != 1 || s.Endpoints[2].Picks != 1 {
		t.Errorf("the other's: %+v", s.Endpoints)
	}
	k.DoneAt(at(2*time.Minute), evenkeel.Result{Outcome: evenkeel.Success})
	both[1].Close()
	if s := trunk.StatsAt(at(2 * time.Minute)); len(s.Endpoints) != 2 {
		t.Errorf("%d are left, want 2", len(s.Endpoints))
	}
	must(both[0].UpdateAt(at(150*time.Second), membersOf(0, 3)))
	if s := both[0].StatsAt(at(150 * time.Second)); s.Endpoints[2].Picks != 1 {
		t.Error("what is back within a minute is forgotten")
	}
}

func TestAConfigCountsForAllBranches(t *testing.T) {
	_, both := branches(t, evenkeel.Config{}, 2, 3)
	c := evenkeel.Config{Policy: picker.RoundRobin{}}
	c.Limit.PerEndpoint = 2
	if err := both[0].SetConfigAt(origin, c); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if _, err := both[i%2].PickAt(origin, evenkeel.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range both {
		if _, err := p.PickAt(origin, evenkeel.Request{}); !errors.Is(err, evenkeel.ErrOverloaded) {
			t.Errorf("a seventh of six: %v", err)
		}
	}
}

func TestWhatBranchesRefuse(t *testing.T) {
	trunk, both := branches(t, evenkeel.Config{}, 2, 3)
	withSubset := evenkeel.Config{Subset: &subset.Config{}}
	twice := append(membersOf(0, 3), membersOf(0, 1)...)
	before := fmt.Sprintf("%+v", both[0].StatsAt(origin))
	for what, err := range map[string]error{
		"a list of the pool's own": trunk.Update(members(1)),
		"a subset":                 both[0].SetConfig(withSubset),
		"a subset, by the pool":    trunk.SetConfig(withSubset),
		"an ID twice":              both[0].UpdateAt(origin, twice),
		"a weight":                 both[0].UpdateAt(origin, []evenkeel.Member[int]{{Endpoint: evenkeel.Endpoint{ID: "x", Weight: evenkeel.WeightOf(-1)}}}),
	} {
		if err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if trunk.SetState("e0", evenkeel.NotReady) {
		t.Error("a state of the pool's own is taken")
	}
	if after := fmt.Sprintf("%+v", both[0].StatsAt(origin)); after != before {
		t.Errorf("what was refused changed\n%s to\n%s", before, after)
	}
	if _, err := newPool(t, withSubset, 3).Branch(); err == nil {
		t.Error("a pool with a subset has a branch")
	}
	both[0].Close()
	both[0].Close()
	if s := both[0].StatsAt(origin); len(s.Endpoints) != 0 || both[0].SetState("e0", evenkeel.Ready) || len(both[0].Selected()) != 0 {
		t.Errorf("closed: %+v", s)
	}
	if err := both[0].Update(members(1)); err != evenkeel.ErrClosed {
		t.Errorf("closed: %v", err)
	}
	third, err := both[1].Branch() // of the same pool
	if err != nil {
		t.Fatal(err)
	}
	if _, err := third.Pick(evenkeel.Request{}); !errors.Is(err, evenkeel.ErrNoneReady) {
		t.Errorf("without a list: %v", err)
	}
	trunk.Close()
	for _, p := range []*evenkeel.Pool[int]{both[1], third} {
		if _, err := p.Pick(evenkeel.Request{}); err != evenkeel.ErrClosed {
			t.Errorf("the pool is closed: %v", err)
		}
	}
	if _, err := trunk.Branch(); err != evenkeel.ErrClosed {
		t.Errorf("the pool is closed: %v", err)
	}
	both[1].Close()
}

// When the last branch is closed, the pool is one like others, with all that was learnt.
func TestAPoolGoesOnAfterItsLastBranch(t *testing.T) {
	trunk, both := branches(t, evenkeel.Config{}, 2, 3)
	k := pickOn(t, both[0], origin, 1)
	both[0].Close()
	both[1].Close()
	k.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
	if err := trunk.UpdateAt(origin, members(3)); err != nil {
		t.Fatal(err)
	}
	if s := trunk.StatsAt(origin); s.Ready != 3 || s.Endpoints[1].Picks != 1 || s.Endpoints[1].InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

// Owners of branches each call Sweep; the work is done once.
func TestBranchesSweepOnce(t *testing.T) {
	swept := 0
	c := evenkeel.Config{Policy: countsSweeps{&swept}}
	_, three := branches(t, c, 3, 3)
	three[0].Sweep(origin.Add(time.Minute))
	one := swept
	for _, p := range three {
		p.Sweep(origin.Add(time.Minute))
	}
	if one != 4 || swept != one { // of three branches, and the pool
		t.Errorf("%d pickers were swept, and %d after three more sweeps at the same instant, want 4", one, swept)
	}
}

type countsSweeps struct{ n *int }

func (countsSweeps) Validate() error    { return nil }
func (countsSweeps) Needs() picker.Need { return 0 }
func (c countsSweeps) Build(*picker.Members, picker.Picker) picker.Picker {
	return sweepCounter(c)
}

type sweepCounter struct{ n *int }

func (sweepCounter) Pick(s *picker.Snapshot, _ picker.Request, _ int64) int { return s.At(0) }
func (c sweepCounter) Sweep(*picker.Snapshot, int64)                        { *c.n++ }

// A branch costs a pick no allocation.
func TestBranchPickDoesNotAllocate(t *testing.T) {
	for _, tc := range allPolicies {
		_, both := branches(t, evenkeel.Config{Policy: tc.policy}, 2, 100)
		if n := testing.AllocsPerRun(1000, func() {
			k, err := both[1].Pick(evenkeel.Request{})
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
