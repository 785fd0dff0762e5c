package evenkeel_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/subset"
)

// clock drives a pool in virtual time, as the owner of a pool does.
type clock struct {
	pool *evenkeel.Pool[int]
	now  time.Time
}

// pass lets time pass, with sweeps when the pool wants them.
func (c *clock) pass(d time.Duration) {
	for end := c.now.Add(d); ; {
		next := c.pool.Sweep(c.now)
		if next.After(end) {
			c.now = end
			return
		}
		c.now = next
	}
}

// all sets the state of some members.
func (c *clock) all(ids []string, s evenkeel.State) {
	for _, id := range ids {
		c.pool.SetState(id, s)
	}
	c.pool.Sweep(c.now)
}

// Ten are selected, and five of them have to be available.
var ten = subset.Config{Size: 10, Seed: 7, MinAvailable: 5}

func TestSubsetIsToppedUpAndGivesBack(t *testing.T) {
	c := clock{subsetted(t, 100, ten), origin}
	base := selectedIDs(c.pool)
	c.all(base[:5], evenkeel.NotReady) // five are left, and enough
	c.pass(time.Minute)
	if got := selectedIDs(c.pool); !slices.Equal(got, base) {
		t.Fatalf("%v became %v with half of it available", base, got)
	}

	c.all(base[:8], evenkeel.NotReady)
	c.pass(499 * time.Millisecond)
	if got := selectedIDs(c.pool); !slices.Equal(got, base) {
		t.Errorf("%v became %v at once: they may be back in a moment", base, got)
	}
	c.pass(time.Millisecond) // the sweep comes by itself at that instant
	wider := selectedIDs(c.pool)
	if s := c.pool.StatsAt(c.now); len(wider) != 13 || s.Ready != 5 || s.Listed != 100 {
		t.Errorf("%d are selected and %d ready, want 13 and 5", len(wider), s.Ready)
	}
	for _, id := range base {
		if !slices.Contains(wider, id) {
			t.Errorf("%s left because others were added", id)
		}
	}

	c.all(base, evenkeel.Ready)
	c.pass(subset.CoverHold - time.Second)
	if got := selectedIDs(c.pool); !slices.Equal(got, wider) {
		t.Errorf("%v became %v before those that were added had not been needed for long", wider, got)
	}
	c.pass(2 * time.Second)
	if got := selectedIDs(c.pool); !slices.Equal(got, base) {
		t.Errorf("at last %v, want %v", got, base)
	}
}

func TestTopUpDoesNotFlapWithItsEndpoints(t *testing.T) {
	c := clock{subsetted(t, 100, ten), origin}
	base, generation := selectedIDs(c.pool), c.pool.Generation()
	for range 60 { // for ten minutes
		c.all(base[:8], evenkeel.NotReady)
		c.pass(5 * time.Second)
		c.all(base[:8], evenkeel.Ready)
		c.pass(5 * time.Second)
	}
	if n := c.pool.Generation() - generation; n != 1 {
		t.Errorf("the subset changed %d times, want once", n)
	}
	c.pass(2 * time.Minute)
	if n := c.pool.Generation() - generation; n != 2 {
		t.Errorf("the subset changed %d times, want twice", n)
	}
	for range 600 { // connections that are lost and back at once
		c.all(base, evenkeel.NotReady)
		c.pass(400 * time.Millisecond)
		c.all(base, evenkeel.Ready)
		c.pass(time.Millisecond)
	}
	if n := c.pool.Generation() - generation; n != 2 {
		t.Errorf("the subset changed %d times in all, want twice", n)
	}
}

// connecting are members that have to be connected to first.
func connecting(n int) []evenkeel.Member[int] {
	list := members(n)
	for i := range list {
		list[i].NotReady = true
	}
	return list
}

func TestStartsAreNotTakenForOutages(t *testing.T) {
	c := clock{subsetted(t, 0, ten), origin}
	if err := c.pool.UpdateAt(c.now, connecting(100)); err != nil {
		t.Fatal(err)
	}
	base := selectedIDs(c.pool)
	c.pass(2999 * time.Millisecond)
	if got := selectedIDs(c.pool); !slices.Equal(got, base) {
		t.Errorf("%v became %v while connections are being made", base, got)
	}
	c.pass(time.Millisecond)
	first := selectedIDs(c.pool)
	if len(first) != 15 {
		t.Errorf("%d are selected when none of ten has come up, want five more", len(first))
	}
	c.pass(2999 * time.Millisecond) // for those, too
	if got := selectedIDs(c.pool); !slices.Equal(got, first) {
		t.Errorf("%v became %v while connections are being made", first, got)
	}
	c.pass(time.Hour)
	if got := selectedIDs(c.pool); len(got) != 20 {
		t.Errorf("%d are selected when nothing can be reached, want twice the size and no more", len(got))
	}
	c.all(base, evenkeel.Ready)
	c.pass(2 * time.Minute)
	if got := selectedIDs(c.pool); !slices.Equal(got, base) {
		t.Errorf("at last %v, want %v", got, base)
	}
	// A connection that was there once gets the short grace.
	c.all(base[:8], evenkeel.NotReady)
	c.pass(500 * time.Millisecond)
	if got := selectedIDs(c.pool); len(got) != 13 {
		t.Errorf("%d are selected half a second after eight were lost, want 13", len(got))
	}
}

// What has to be connected to starts anew when it is selected again, whatever its state was.
func TestWhoLeavesTheSubsetIsNotReadyWhenBack(t *testing.T) {
	c := clock{subsetted(t, 0, ten), origin}
	if err := c.pool.UpdateAt(c.now, connecting(100)); err != nil {
		t.Fatal(err)
	}
	for _, e := range members(100) {
		c.pool.SetState(e.ID, evenkeel.Ready)
	}
	both := func(config evenkeel.Config) int {
		if err := c.pool.SetConfigAt(c.now, config); err != nil {
			t.Fatal(err)
		}
		return c.pool.StatsAt(c.now).Ready
	}
	if n := both(evenkeel.Config{Subset: &subset.Config{Size: 4, Seed: 7}}); n != 4 {
		t.Errorf("%d are ready, want all four that stay", n)
	}
	// The ninety that never were in the subset are as ready as somebody said that they are.
	if n := both(evenkeel.Config{}); n != 94 {
		t.Errorf("%d are ready, want all but the six that left", n)
	}
}

func TestStatesOfOthersAreKeptForWhenTheyAreSelected(t *testing.T) {
	c := clock{subsetted(t, 100, ten), origin}
	base := selectedIDs(c.pool)
	up := 3 // others than those in the subset
	for _, m := range members(100) {
		if slices.Contains(base, m.ID) {
			continue
		}
		if up--; up < 0 && !c.pool.SetState(m.ID, evenkeel.NotReady) {
			t.Fatalf("%s is not known", m.ID)
		}
	}
	c.all(base[:8], evenkeel.NotReady)
	c.pass(10 * time.Second)
	got := selectedIDs(c.pool)
	if s := c.pool.StatsAt(c.now); len(got) != 13 || s.Ready != 5 {
		t.Errorf("%d are selected and %d ready, want the 10 and the three that are known to be up: %v", len(got), s.Ready, got)
	}
}

func TestDrainedEndpointsAreNotAvailable(t *testing.T) {
	p := subsetted(t, 40, ten)
	base := selectedIDs(p)
	list := members(40)
	for i := range list {
		if slices.Contains(base[:9], list[i].ID) {
			list[i].Weight = evenkeel.WeightOf(0)
		}
	}
	if err := p.UpdateAt(origin, list); err != nil {
		t.Fatal(err)
	}
	if got := selectedIDs(p); len(got) != 14 { // at once: a weight is no news that may be wrong
		t.Errorf("%d are selected when one of ten has a weight, want four more", len(got))
	}
	for i := range list {
		list[i].Weight = evenkeel.WeightOf(0)
	}
	q := subsetted(t, 0, ten)
	if err := q.UpdateAt(origin, list); err != nil || len(selectedIDs(q)) != 10 {
		t.Errorf("%v, %v: where all are drained, all count as equal", err, selectedIDs(q))
	}
	c := clock{q, origin}
	c.all(selectedIDs(q), evenkeel.NotReady)
	c.pass(time.Second)
	if n := len(selectedIDs(q)); n != 15 {
		t.Errorf("%d are selected where all are drained and the first ten are down, want 15", n)
	}
}

// Picks that sweep for an owner who forgot leave the subset alone.
func TestLateSweepsLeaveTheSubsetAlone(t *testing.T) {
	p := subsetted(t, 100, ten)
	base := selectedIDs(p)
	for _, id := range base[:8] {
		p.SetState(id, evenkeel.NotReady)
	}
	for i := range 100 {
		k, err := p.PickAt(origin.Add(time.Duration(i)*3*time.Second), evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		k.DoneAt(origin.Add(time.Duration(i)*3*time.Second), evenkeel.Result{})
	}
	if s := p.StatsAt(origin); s.LateSweeps == 0 || !slices.Equal(selectedIDs(p), base) {
		t.Errorf("%d late sweeps, %v became %v", s.LateSweeps, base, selectedIDs(p))
	}
}

// Ten requests a second at one for each endpoint are ten endpoints, and so on, give or
// take what the size is held by. Latency has no part in it.
func TestSizeFollowsTheOfferedLoad(t *testing.T) {
	c := clock{subsetted(t, 200, subset.Config{Size: 5, Seed: 7, MaxSize: 40, LoadPerEndpoint: 1}), origin}
	offer := func(rate int, d time.Duration) {
		var open []evenkeel.Pick[int]
		for n := range int(d.Seconds()) {
			for range rate {
				k, err := c.pool.PickAt(c.now, evenkeel.Request{})
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, k)
			}
			if n%20 == 19 { // they take up to 20 seconds
				for i := range open {
					open[i].DoneAt(c.now, evenkeel.Result{Outcome: evenkeel.Success})
				}
				open = open[:0]
			}
			c.pass(time.Second)
		}
	}
	for _, s := range []struct {
		rate     int
		min, max int
	}{{1, 5, 5}, {20, 16, 20}, {19, 16, 20}, {200, 40, 40}, {15, 13, 24}, {1, 5, 5}} {
		offer(s.rate, 15*time.Minute)
		if n := len(selectedIDs(c.pool)); n < s.min || n > s.max {
			t.Errorf("%d endpoints at %d requests a second, want %d to %d", n, s.rate, s.min, s.max)
		}
	}
	if n := c.pool.Generation(); n > 30 {
		t.Errorf("the subset changed %d times for five changes of load", n)
	}
}

// Whoever got the requests may be gone by the time that they are counted.
func TestOfferedLoadOutlivesTheEndpointsThatGotIt(t *testing.T) {
	c := clock{subsetted(t, 0, subset.Config{Size: 5, Seed: 7, MaxSize: 40, LoadPerEndpoint: 1}), origin}
	for second := range 900 {
		list := members(100)
		for i := range list {
			list[i].ID = fmt.Sprintf("%s-%d", list[i].ID, second)
		}
		if err := c.pool.UpdateAt(c.now, list); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			k, err := c.pool.PickAt(c.now, evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			k.DoneAt(c.now, evenkeel.Result{Outcome: evenkeel.Success})
		}
		c.now = c.now.Add(time.Second) // the next list comes before the next sweep
		if second%3 == 2 {
			c.pool.Sweep(c.now)
		}
	}
	if n := len(selectedIDs(c.pool)); n < 16 || n > 25 {
		t.Errorf("%d endpoints at 20 requests a second and one for each, want 16 to 25", n)
	}
}

func TestClosedPoolsSelectNobodyElse(t *testing.T) {
	c := clock{subsetted(t, 100, ten), origin}
	generation := c.pool.Generation()
	c.pool.Close()
	for _, id := range selectedIDs(c.pool) {
		c.pool.SetState(id, evenkeel.NotReady)
	}
	c.pass(time.Minute)
	if got := c.pool.Generation(); got != generation {
		t.Errorf("the generation went from %d to %d", generation, got)
	}
}

// A month of random outages and lists: there are always as many as have to be, never more than
// twice the size, whoever is available again stays selected, and it ends where it began.
func TestCoverKeepsItsBoundsThroughRandomOutages(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	c := clock{subsetted(t, 0, ten), origin}
	list := connecting(60)
	if err := c.pool.UpdateAt(c.now, list); err != nil {
		t.Fatal(err)
	}
	down := map[string]bool{}
	next := len(list)
	for step := range 2000 {
		switch id := list[r.IntN(len(list))].ID; r.IntN(4) {
		case 0:
			down[id] = true
		case 1, 2:
			delete(down, id)
		case 3:
			i := r.IntN(len(list))
			list = slices.Delete(slices.Clone(list), i, i+1)
			list = append(list, evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: fmt.Sprintf("e%d", next)}, Handle: next, NotReady: true})
			next++
			if err := c.pool.UpdateAt(c.now, list); err != nil {
				t.Fatal(err)
			}
		}
		for range 8 { // connections come up, or go, and others are asked for in their place
			for _, id := range selectedIDs(c.pool) {
				state := evenkeel.Ready
				if down[id] {
					state = evenkeel.NotReady
				}
				c.pool.SetState(id, state)
			}
			c.pass(time.Second)
		}
		s := c.pool.StatsAt(c.now)
		if n := len(s.Endpoints); s.Ready < min(5, len(list)-len(down)) && n < 20 || n > 20 {
			t.Fatalf("step %d: %d selected, %d of them ready, want 5 ready or twice the size", step, n, s.Ready)
		}
	}
	clear(down)
	for _, m := range list {
		c.pool.SetState(m.ID, evenkeel.Ready)
	}
	c.pass(3 * time.Minute)
	if got, want := selectedIDs(c.pool), naive(t, &ten, list); !slices.Equal(got, want) {
		t.Errorf("at last %v, want %v", got, want)
	}
}
