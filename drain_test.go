package evenkeel_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// Who drains, by a word or by weight, is told with the pool's own handles; who merely cannot be used is not.
func TestDrainedAreThoseThatGetNothingNew(t *testing.T) {
	p := newPool(t, rotating, 5)
	if got := p.Drained(); got != nil {
		t.Errorf("%v drain at first", got)
	}
	list := members(5)
	list[1].Weight = evenkeel.WeightOf(0)
	if err := p.Update(list); err != nil {
		t.Fatal(err)
	}
	p.Drain("e2")
	p.SetStates([]evenkeel.StateChange{
		{ID: "e3", State: evenkeel.Failing, Source: evenkeel.Checks},
		{ID: "e4", State: evenkeel.Unchecked, Source: evenkeel.Checks},
		{ID: "e0", State: evenkeel.Draining, Source: evenkeel.Discovery},
	})
	if got := p.Drained(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("%v drain, want 0, 1 and 2", got)
	}
	for i := range list {
		list[i].Weight = evenkeel.WeightOf(0) // which means equal ones
	}
	if err := p.Update(list); err != nil {
		t.Fatal(err)
	}
	p.Resume("e2")
	if got := p.Drained(); !slices.Equal(got, []int{0}) {
		t.Errorf("%v drain, want 0 alone", got)
	}
}

// Requests of an endpoint that left are known until the last has ended, whatever becomes of the list, and counted once
// when it is back.
func TestRequestsInFlightAreKnownAfterTheirEndpointLeft(t *testing.T) {
	for _, tc := range allPolicies {
		synctest.Test(t, func(t *testing.T) {
			p, err := evenkeel.NewPool[int](evenkeel.Config{Policy: tc.policy}, evenkeel.Options{})
			if err != nil {
				t.Fatal(err)
			}
			update := func(list []evenkeel.Member[int]) {
				if err := p.Update(list); err != nil {
					t.Fatal(err)
				}
			}
			update(members(1))
			var open []evenkeel.Pick[int]
			for range 3 {
				k, err := p.Pick(evenkeel.Request{})
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, k)
			}
			update(members(3)[1:])
			for range 200 { // longer than a record is kept otherwise
				time.Sleep(time.Second)
				p.Sweep(time.Now())
			}
			for i := range open[:2] {
				if got := p.InFlight("e0"); got != int64(3-i) {
					t.Errorf("%s: %d in flight, want %d", tc.name, got, 3-i)
				}
				open[i].Done(evenkeel.Result{Outcome: evenkeel.Success})
			}
			update(members(3))
			if got := statsByID(p.Stats())["e0"].InFlight; got != 1 || p.InFlight("e0") != 1 {
				t.Errorf("%s: %d in flight when it is back, want 1", tc.name, got)
			}
			open[2].Done(evenkeel.Result{})
			if got := p.InFlight("e0") + p.InFlight("nobody"); got != 0 {
				t.Errorf("%s: %d in flight at the end", tc.name, got)
			}
		})
	}
}

// Slow starts are told apart when endpoints join during another's, when an address is down and up again, and when they are
// created long before they can be used.
func TestBug48SlowStartIsEachEndpointsOwn(t *testing.T) {
	s := newSlow(t, slowly(rotating), 6)
	s.pass(time.Minute)
	s.update(0, 1, 2, 3, 4, 5, 6)
	s.pass(4 * time.Second)
	s.update(0, 1, 2, 3, 4, 5, 6, 7)
	s.is("others joined", "e6", 0.4)
	s.is("others joined", "e7", 0.1)
	s.pass(6 * time.Second)
	s.is("its own end", "e6", 1)
	s.is("not the other's", "e7", 0.6)
	s.pass(10 * time.Second)

	s.update(0, 1, 2, 3, 4, 5, 6) // the same address, down and up
	s.pass(20 * time.Second)
	s.update(0, 1, 2, 3, 4, 5, 6, 7)
	s.is("the same address", "e7", 0.1)
	s.pass(20 * time.Second)

	s.list = append(s.list, evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: "slow"}, NotReady: true, Handle: 99})
	s.replace()
	s.pass(time.Hour) // created
	s.pool.SetState("slow", evenkeel.Ready)
	s.is("first healthy", "slow", 0.1)
	s.pass(0)
	s.pass(5 * time.Second)
	s.is("five seconds later", "slow", 0.5)
}

// Endpoints that leave while they are ejected or have a slow start are in nobody's count.
func TestBug29EndpointsThatLeaveDuringASlowStartCountForNothing(t *testing.T) {
	c := slowly(rotating)
	c.Outlier = &outlier.Config{}
	s := newSlow(t, c, 4)
	s.pass(time.Minute)
	for round := range 20 {
		s.update(0, 1, 2, 3, 4+2*round, 5+2*round)
		s.is("two of six", fmt.Sprintf("e%d", 4+2*round), 0.1)
		s.pass(time.Second)
		s.update(0, 1, 2, 3)
		s.pass(time.Second)
	}
	s.update(0, 1, 2, 3, 100)
	s.is("after all of them", "e100", 0.1)
	s.is("after all of them", "e0", 1)
}

// A list that goes empty and back is a first list each time, and nothing is kept of it.
func TestBug60SlowStartsOfListsThatComeAndGo(t *testing.T) {
	s := newSlow(t, slowly(evenkeel.Config{Policy: picker.Random{}}), 3)
	for range 2000 {
		s.list = nil
		s.replace()
		s.list = members(3)
		s.replace()
		s.now = s.now.Add(time.Millisecond)
	}
	s.pass(time.Second)
	for _, m := range s.list {
		s.is("the last list", m.ID, 1)
	}
}
