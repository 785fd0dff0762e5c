package evenkeel_test

import (
	"errors"
	"testing"

	"github.com/evenkeel/evenkeel"
)

// A branch's pick by ID is to the branch's own handle, by its own states, and counts for all.
func TestPickIDOfABranchIsItsOwn(t *testing.T) {
	_, both := branches(t, evenkeel.Config{Limit: evenkeel.LimitConfig{PerEndpoint: 2}}, 2, 3)
	// The second branch has another order, and less than the home.
	if err := both[1].UpdateAt(origin, []evenkeel.Member[int]{membersOf(1, 3)[2], membersOf(1, 3)[1]}); err != nil {
		t.Fatal(err)
	}
	both[0].SetState("e1", evenkeel.NotReady)
	pick, err := both[1].PickIDAt(origin, "e1", evenkeel.Request{})
	if err != nil || pick.Handle() != 101 || both[0].InFlight("e1") != 1 {
		t.Fatalf("handle %d, %v, %d in flight; want 101, none, 1", pick.Handle(), err, both[0].InFlight("e1"))
	}
	for k, id := range map[int]string{0: "e1", 1: "e0"} { // not ready there; not in the list there
		if _, err := both[k].PickIDAt(origin, id, evenkeel.Request{}); !errors.Is(err, evenkeel.ErrNoneReady) {
			t.Errorf("branch %d, %s: %v, want ErrNoneReady", k, id, err)
		}
	}
	for range 2 {
		_, err = both[0].PickIDAt(origin, "e2", evenkeel.Request{})
	}
	if _, full := both[1].PickIDAt(origin, "e2", evenkeel.Request{}); err != nil || !errors.Is(full, evenkeel.ErrOverloaded) {
		t.Errorf("%v, then %v: want ErrOverloaded, as the bound is that of all", err, full)
	}
	pick.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
	if s := both[0].StatsAt(origin); s.Endpoints[1].InFlight != 0 || s.Endpoints[1].Picks != 1 {
		t.Errorf("e1 is %+v after its only request", s.Endpoints[1])
	}
	both[1].Close()
	if _, err := both[1].PickIDAt(origin, "e1", evenkeel.Request{}); !errors.Is(err, evenkeel.ErrClosed) {
		t.Errorf("%v of a closed branch", err)
	}
}
