package evenkeel_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

func TestPickIDGoesToItsEndpointAlone(t *testing.T) {
	for _, tc := range allPolicies {
		p := newPool(t, evenkeel.Config{Policy: tc.policy}, 20)
		for i := range 200 {
			id := fmt.Sprintf("e%d", i%20)
			// What would send it elsewhere does not count.
			k, err := p.PickIDAt(origin, id, evenkeel.Request{Key: 7, HasKey: true})
			if err != nil || k.Handle() != i%20 || k.Record().ID() != id {
				t.Fatalf("%s: %d, %v, want %s", tc.name, k.Handle(), err, id)
			}
			k.DoneAt(origin.Add(time.Millisecond), evenkeel.Result{Outcome: evenkeel.Success})
		}
		for _, e := range p.StatsAt(origin).Endpoints {
			if e.Picks != 10 || e.InFlight != 0 {
				t.Errorf("%s: %s had %d picks, %d in flight, want 10 and none", tc.name, e.ID, e.Picks, e.InFlight)
			}
		}
	}
}

// A verdict about whom to prefer is none about who can be asked.
func TestPickIDReachesWhomOthersAreKeptFrom(t *testing.T) {
	c := newTraffic(t, rotating, 5)
	c.bad[2] = true
	c.send(time.Second, 10*time.Millisecond)
	if e := c.stats("e2"); e.Available {
		t.Fatal("e2 is not ejected")
	}
	c.pool.SetStates([]evenkeel.StateChange{{ID: "e3", State: evenkeel.Failing, Source: evenkeel.Checks}, {ID: "e4", State: evenkeel.Unchecked, Source: evenkeel.Checks}})
	k, err := c.pool.PickIDAt(c.now, "e1", evenkeel.Request{})
	if err != nil {
		t.Fatal(err)
	}
	k.DoneAt(c.now, evenkeel.Result{Outcome: evenkeel.Overload, RetryAfter: 10 * time.Second})
	for i, id := range []string{"e1", "e2", "e3", "e4"} {
		k, err := c.pool.PickIDAt(c.now, id, evenkeel.Request{})
		if err != nil || k.Handle() != i+1 {
			t.Errorf("%s: %d, %v", id, k.Handle(), err)
		}
		k.DoneAt(c.now, evenkeel.Result{Outcome: evenkeel.Success})
		if e := c.stats(id); e.InFlight != 0 {
			t.Errorf("%s: %d in flight", id, e.InFlight)
		}
	}
}

func TestPickIDSaysWhyAnEndpointCannotBeAsked(t *testing.T) {
	p := newPool(t, evenkeel.Config{Subset: &subset.Config{Size: 5, Seed: 1}}, 0)
	list := members(20)
	list[0].Weight = evenkeel.WeightOf(0)
	if err := p.Update(list); err != nil {
		t.Fatal(err)
	}
	chosen := p.Selected()
	in := func(i int) string { return fmt.Sprintf("e%d", chosen[i]) }
	if chosen[0] == 0 {
		t.Fatal("the drained endpoint is in the subset, take another seed")
	}
	p.Drain(in(1))
	p.SetState(in(2), evenkeel.NotReady)
	selected := map[int]bool{}
	for _, i := range chosen {
		selected[i] = true
	}
	out := 1
	for selected[out] {
		out++
	}
	for _, c := range []struct{ id, why string }{
		{"nobody", `"nobody" is not in the list`}, {"", `"" is not in the list`},
		{fmt.Sprintf("e%d", out), "is not in this client's subset"},
		{in(1), "is drained"}, {in(2), "is not ready"}, {strings.Repeat("x", 1000), "is not in the list"},
	} {
		k, err := p.PickID(c.id, evenkeel.Request{})
		if !errors.Is(err, evenkeel.ErrNoneReady) || !strings.Contains(err.Error(), c.why) || k.Record() != nil || len(err.Error()) > 300 {
			t.Errorf("%.10s: %v, want %q", c.id, err, c.why)
		}
	}
	p = newPool(t, evenkeel.Config{}, 0)
	if err := p.Update(list); err != nil {
		t.Fatal(err)
	}
	if _, err := p.PickID("e0", evenkeel.Request{}); !errors.Is(err, evenkeel.ErrNoneReady) || !strings.Contains(err.Error(), "is drained") {
		t.Errorf("weight 0: %v", err)
	}
	for i := range list { // nobody is drained if all are
		list[i].Weight = evenkeel.WeightOf(0)
	}
	if err := p.Update(list); err != nil {
		t.Fatal(err)
	}
	if k, err := p.PickID("e0", evenkeel.Request{}); err != nil || k.Handle() != 0 {
		t.Errorf("all weights are 0: %v", err)
	}
	p.Close()
	if _, err := p.PickID("e1", evenkeel.Request{}); err != evenkeel.ErrClosed {
		t.Errorf("%v, want %v", err, evenkeel.ErrClosed)
	}
}

// Limits are about what can be carried, and hold for whoever knows where to go as well.
func TestPickIDKeepsToTheLimits(t *testing.T) {
	p := newPool(t, evenkeel.Config{Limit: evenkeel.LimitConfig{PerEndpoint: 2}}, 3)
	var open []evenkeel.Pick[int]
	for range 2 {
		k, err := p.PickIDAt(origin, "e1", evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, k)
	}
	_, err := p.PickIDAt(origin, "e1", evenkeel.Request{})
	if over, ok := errors.AsType[*evenkeel.OverloadError](err); !ok || !over.Endpoint || over.Limit != 2 {
		t.Errorf("%v, want an OverloadError of an endpoint", err)
	}
	if s := p.StatsAt(origin); s.Full != 0 || statsByID(s)["e1"].Full != 1 || statsByID(s)["e1"].InFlight != 2 {
		t.Errorf("%+v", s)
	}
	open[0].DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
	k, err := p.PickIDAt(origin, "e1", evenkeel.Request{Kind: picker.Stream})
	if err != nil {
		t.Fatal(err)
	}
	k.DoneAt(origin, evenkeel.Result{})
	open[1].DoneAt(origin, evenkeel.Result{})
}

func TestPickIDKeepsToThePoolsLimit(t *testing.T) {
	p, open, now := distressed(t, evenkeel.Config{}, 2, 10)
	refused := func() bool {
		_, err := p.PickIDAt(now, "e1", evenkeel.Request{})
		over, ok := errors.AsType[*evenkeel.OverloadError](err)
		return ok && !over.Endpoint && over.Limit == 10
	}
	if !refused() {
		t.Error("one more than the limit is not refused")
	}
	stream, err := p.PickIDAt(now, "e1", evenkeel.Request{Kind: picker.Stream})
	if err != nil {
		t.Errorf("a stream: %v", err)
	}
	stream.DoneAt(now, evenkeel.Result{})
	open[0].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	k, err := p.PickIDAt(now, "e1", evenkeel.Request{})
	if err != nil || !refused() {
		t.Fatalf("%v, want the place that is free and no other", err)
	}
	k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	// An endpoint that is full leaves the pool's place to others.
	var full []evenkeel.Pick[int]
	for _, k := range open[1:] {
		k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	}
	if err := p.SetConfigAt(now, evenkeel.Config{Limit: evenkeel.LimitConfig{PerEndpoint: 9}}); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		k, err := p.PickIDAt(now, "e0", evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		full = append(full, k)
	}
	for range 3 {
		if _, err := p.PickIDAt(now, "e0", evenkeel.Request{}); !errors.Is(err, evenkeel.ErrOverloaded) {
			t.Errorf("%v of a full endpoint", err)
		}
	}
	if k, err := p.PickIDAt(now, "e1", evenkeel.Request{}); err != nil {
		t.Errorf("the tenth place is taken: %v", err)
	} else {
		k.DoneAt(now, evenkeel.Result{})
	}
	for i := range full {
		full[i].DoneAt(now, evenkeel.Result{})
	}
}

func TestPickIDAllocatesNothing(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 1000)
	if n := testing.AllocsPerRun(1000, func() {
		k, err := p.PickID("e500", evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		k.Done(evenkeel.Result{Outcome: evenkeel.Success})
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// Index, handle and record belong together whatever changes at the same time. Run with -race.
func TestPickIDRacesWithUpdates(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 20)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				n := (w + i) % 20
				k, err := p.PickID(fmt.Sprintf("e%d", n), evenkeel.Request{})
				if err != nil {
					if !errors.Is(err, evenkeel.ErrNoneReady) {
						t.Error(err)
					}
					continue
				}
				if k.Handle() != n || k.Record().ID() != fmt.Sprintf("e%d", n) {
					t.Errorf("e%d: got %d with the record of %s", n, k.Handle(), k.Record().ID())
				}
				k.Done(evenkeel.Result{Outcome: evenkeel.Outcome(i % 3)})
			}
		})
	}
	list := members(20)
	for i := range 300 {
		if err := p.Update(list[i%10 : 10+i%10]); err != nil {
			t.Fatal(err)
		}
		p.Sweep(time.Now())
	}
	close(stop)
	wg.Wait()
	for _, e := range p.Stats().Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%s: %d in flight", e.ID, e.InFlight)
		}
	}
}
