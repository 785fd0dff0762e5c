package evenkeel_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/subset"
)

// A lot of 64 clients leaves most of them without any of ten endpoints. They get one each, the same
// for as long as the list is, and not all the same.
func TestNoClientIsWithoutAnEndpoint(t *testing.T) {
	clients := map[string]int{}
	for index := range 64 {
		p := subsetted(t, 10, subset.Config{ClientIndex: subset.IndexOf(index), LotSize: 64, MinAvailable: -1})
		ids, generation := selectedIDs(p), p.Generation()
		list := members(10)
		list[3].Weight = evenkeel.WeightOf(2)
		slices.Reverse(list)
		if err := p.UpdateAt(origin, list); err != nil {
			t.Fatal(err)
		}
		p.Sweep(origin.Add(time.Second))
		if got := selectedIDs(p); len(ids) == 0 || !slices.Equal(got, ids) || p.Generation() != generation {
			t.Errorf("client %d has %v, and then %v", index, ids, got)
		}
		if len(ids) == 1 {
			clients[ids[0]]++
		}
	}
	for id, n := range clients {
		if n > 20 {
			t.Errorf("%d of 64 clients have %s", n, id)
		}
	}
}

// Where everybody is known to be down, that is what a pick says.
func TestSubsetOfAFleetThatIsDownIsNotEmpty(t *testing.T) {
	p := subsetted(t, 10, subset.Config{ClientIndex: subset.IndexOf(1), LotSize: 64})
	for _, m := range members(10) {
		p.SetState(m.ID, evenkeel.NotReady)
	}
	if err := p.SetConfigAt(origin, evenkeel.Config{Subset: &subset.Config{ClientIndex: subset.IndexOf(2), LotSize: 64}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.PickAt(origin, evenkeel.Request{}); err != evenkeel.ErrNoneReady || len(selectedIDs(p)) == 0 {
		t.Errorf("%v with %v selected, want %v", err, selectedIDs(p), evenkeel.ErrNoneReady)
	}
}

// 460 endpoints are between two doublings: a client that began with 300 holds another lot than one
// that begins now.
func TestWhatASubsetHoldsComesThroughAChangeOfConfiguration(t *testing.T) {
	c := subset.Config{Size: 10, ClientIndex: subset.IndexOf(3)}
	p := subsetted(t, 300, c)
	if err := p.UpdateAt(origin, members(460)); err != nil {
		t.Fatal(err)
	}
	ids := selectedIDs(p)
	if slices.Equal(ids, selectedIDs(subsetted(t, 460, c))) {
		t.Fatal("nothing is held")
	}
	for _, less := range []int{3, -1} {
		own := c
		own.MinAvailable, own.ClientCount = less, 40
		if err := p.SetConfigAt(origin, evenkeel.Config{Subset: &own}); err != nil || !slices.Equal(selectedIDs(p), ids) {
			t.Errorf("%v: %v became %v", err, ids, selectedIDs(p))
		}
	}
	for _, list := range [][]evenkeel.Member[int]{nil, members(460)} { // nobody for a moment
		if err := p.UpdateAt(origin, list); err != nil {
			t.Fatal(err)
		}
	}
	if got := selectedIDs(p); !slices.Equal(got, ids) {
		t.Errorf("%v became %v through an empty list", ids, got)
	}
}

// Of forty endpoints one accepts connections, and it is not among the eight that a client with a
// size of four has at a time. It is found within minutes, and kept.
func TestTheLastEndpointThatIsUpIsFound(t *testing.T) {
	p := subsetted(t, 0, subset.Config{Size: 4, Seed: 3})
	if err := p.UpdateAt(origin, connecting(40)); err != nil {
		t.Fatal(err)
	}
	all, _ := subset.Order(subset.Client{Seed: 3}, subset.Members{IDs: idsOf(connecting(40))})
	up := connecting(40)[all[39]].ID
	now, found := origin, time.Duration(0)
	for now.Sub(origin) < time.Hour {
		selected := selectedIDs(p)
		if len(selected) > 8 {
			t.Fatalf("%d are selected", len(selected))
		}
		if slices.Contains(selected, up) {
			p.SetState(up, evenkeel.Ready)
			if found == 0 {
				found = now.Sub(origin)
			}
		}
		if _, err := p.PickAt(now, evenkeel.Request{}); (err == nil) != (found > 0) {
			t.Fatalf("after %v: %v, and it was found after %v", now.Sub(origin), err, found)
		}
		now = p.Sweep(now)
	}
	if found == 0 || found > 20*time.Minute {
		t.Errorf("found after %v", found)
	}
}

func idsOf(list []evenkeel.Member[int]) (ids []string) {
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return ids
}

// Everything at once, for the race detector; and nothing is in flight at the end.
func TestSelectionMayChangeUnderAnything(t *testing.T) {
	p, err := evenkeel.NewPool[int](evenkeel.Config{}, evenkeel.Options{OnWarning: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	lists := [][]evenkeel.Member[int]{connecting(40), members(50), members(30)}
	if err := p.Update(lists[1]); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, do := range []func(i int){
		func(i int) { _ = p.Update(lists[i%3]) },
		func(i int) { _ = p.SetConfig(evenkeel.Config{Subset: subsetsOfChurn[i%len(subsetsOfChurn)]}) },
		func(i int) { p.SetState(fmt.Sprintf("e%d", i%50), evenkeel.State(i%3/2)) },
		func(i int) { p.Sweep(time.Now().Add(time.Duration(i) * time.Second)) },
		func(int) {
			if generation := p.Generation(); len(p.Selected()) == 0 || p.Generation() < generation {
				t.Error("nobody is selected, or the generation went back")
			}
		},
		func(int) { _ = p.Stats() },
		func(int) {
			if k, err := p.Pick(evenkeel.Request{}); err == nil {
				if id := fmt.Sprintf("e%d", k.Handle()); k.Record().ID() != id {
					t.Errorf("the handle is that of %s, the record that of %s", id, k.Record().ID())
				}
				k.Done(evenkeel.Result{Outcome: evenkeel.Success})
			}
		},
	} {
		all.Go(func() {
			for i := range 300 {
				do(i)
			}
		})
	}
	all.Wait()
	if err := p.Replace(evenkeel.Config{}, lists[1]); err != nil {
		t.Fatal(err)
	}
	for _, e := range p.Stats().Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%s: in flight %d at rest", e.ID, e.InFlight)
		}
	}
}
