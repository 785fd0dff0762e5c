package evenkeel_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/subset"
)

// Nothing new goes to an endpoint that drains, what it has goes on, and no other word lifts it.
func TestDrainedEndpointGetsNothingNew(t *testing.T) {
	for _, tc := range allPolicies {
		c := newTraffic(t, evenkeel.Config{Policy: tc.policy}, 3)
		k, err := c.pool.PickAt(c.now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		id := k.Record().ID()
		if !c.pool.Drain(id) || c.pool.Drain("nobody") {
			t.Errorf("%s: Drain knows the wrong ones", tc.name)
		}
		c.pool.SetState(id, evenkeel.NotReady)
		c.pool.SetState(id, evenkeel.Ready)
		c.send(time.Second, 5*time.Millisecond)
		if e := c.stats(id); c.sent[k.Handle()] != 0 || e.InFlight != 1 || e.State != evenkeel.Draining ||
			e.Source != evenkeel.Operator || e.Reasons()[0] != "draining (operator)" {
			t.Errorf("%s: %d requests, %+v", tc.name, c.sent[k.Handle()], e)
		}
		k.DoneAt(c.now, evenkeel.Result{})
		if !c.pool.Resume(id) {
			t.Errorf("%s: Resume does not know it", tc.name)
		}
		c.send(time.Second, 5*time.Millisecond)
		if e := c.stats(id); c.sent[k.Handle()] == 0 || e.InFlight != 0 || e.Reasons() != nil {
			t.Errorf("%s: %d requests after Resume, %+v", tc.name, c.sent[k.Handle()], e)
		}
	}
}

// Each source takes back only what it said itself.
func TestWorstSourceWins(t *testing.T) {
	p := newPool(t, rotating, 2)
	states := []evenkeel.State{evenkeel.Ready, evenkeel.NotReady, evenkeel.Failing, evenkeel.Draining}
	worst := func(by [4]evenkeel.State) evenkeel.State {
		for _, s := range []evenkeel.State{evenkeel.Draining, evenkeel.NotReady, evenkeel.Failing} {
			if slices.Contains(by[:], s) {
				return s
			}
		}
		return evenkeel.Ready
	}
	r := rand.New(rand.NewPCG(9, 9))
	var by [4]evenkeel.State
	for range 500 {
		from, s := r.IntN(4), states[r.IntN(4)]
		by[from] = s
		if n := p.SetStates([]evenkeel.StateChange{{ID: "e1", State: s, Source: evenkeel.Source(from)}}); n != 1 {
			t.Fatalf("%d found", n)
		}
		e := statsByID(p.StatsAt(origin))["e1"]
		if e.State != worst(by) || e.State != evenkeel.Ready && by[e.Source] != e.State {
			t.Fatalf("%v make %v by %v", by, e.State, e.Source)
		}
	}
	if p.SetStates([]evenkeel.StateChange{{ID: "e0", State: evenkeel.Draining, Source: 9}}); statsByID(p.StatsAt(origin))["e0"].State != evenkeel.Ready {
		t.Error("a source that does not exist was heard")
	}
}

// Checks of an endpoint end when it leaves the client's subset: what they said of it is not kept.
func TestChecksAreForgottenWithTheSubset(t *testing.T) {
	p := newPool(t, rotating, 20)
	for _, m := range members(20) {
		p.SetStates([]evenkeel.StateChange{{ID: m.ID, State: evenkeel.Failing, Source: evenkeel.Checks}})
	}
	part := rotating
	part.Subset = &subset.Config{Size: 5, Seed: 1, MinAvailable: -1}
	if err := p.SetConfigAt(origin, part); err != nil {
		t.Fatal(err)
	}
	stayed := statsByID(p.StatsAt(origin))
	if len(stayed) != 5 {
		t.Fatalf("%d members", len(stayed))
	}
	if err := p.SetConfigAt(origin, rotating); err != nil {
		t.Fatal(err)
	}
	for id, e := range statsByID(p.StatsAt(origin)) {
		if _, in := stayed[id]; (e.State == evenkeel.Failing) != in {
			t.Errorf("%s, which stayed: %v, is %v", id, in, e.State)
		}
	}
}
