package main

import (
	"os"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// least recent: near 34 %, far 33 %, remote 33 %
	// priced: remote gets 0.0 %
}

func TestMistakesInSettingsAreNamed(t *testing.T) {
	_, err := evenkeel.NewPool[int](evenkeel.Config{Policy: LeastRecent{Draws: 9}}, evenkeel.Options{})
	if err == nil || !strings.Contains(err.Error(), "LeastRecent.Draws is 9, want 1 to 8") {
		t.Errorf("nine draws: %v", err)
	}
	bad := picker.P2C{Signal: Priced{Prices: &map[string]float64{"x": 0.5}}}
	if _, err := evenkeel.NewPool[int](evenkeel.Config{Policy: bad}, evenkeel.Options{}); err == nil || !strings.Contains(err.Error(), `price of "x" is 0.5`) {
		t.Errorf("a price below one: %v", err)
	}
}

// A turn that was taken stays taken over updates.
func TestTurnsSurviveUpdates(t *testing.T) {
	pool, err := evenkeel.NewPool[int](evenkeel.Config{Policy: LeastRecent{Draws: 8}}, evenkeel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	for k := range 300 {
		list := []evenkeel.Member[int]{}
		for i := range 3 { // another order each time
			id := (i + k) % 3
			list = append(list, evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: string(rune('a' + id))}, Handle: id})
		}
		if err := pool.Update(list); err != nil {
			t.Fatal(err)
		}
		pick, err := pool.Pick(evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		counts[pick.Handle()]++
		pick.Done(evenkeel.Result{Outcome: evenkeel.Success})
	}
	for i := range 3 {
		if counts[i] < 80 || counts[i] > 120 {
			t.Errorf("shares %v of 300", counts)
		}
	}
}

func TestPicksDoNotAllocate(t *testing.T) {
	for _, policy := range []evenkeel.Policy{LeastRecent{}, picker.P2C{Signal: Priced{Prices: &map[string]float64{"a": 2}}}} {
		pool, err := evenkeel.NewPool[int](evenkeel.Config{Policy: policy}, evenkeel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Update([]evenkeel.Member[int]{{Endpoint: evenkeel.Endpoint{ID: "a"}}, {Endpoint: evenkeel.Endpoint{ID: "b"}}}); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(500, func() {
			pick, err := pool.Pick(evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			pick.Done(evenkeel.Result{Outcome: evenkeel.Success})
		}); n != 0 {
			t.Errorf("%T: %v allocations", policy, n)
		}
	}
}
