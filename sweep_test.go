package evenkeel_test

import (
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// After a new list sweeps are due ten milliseconds later, and then after as long as it has been
// since, up to a second: what newcomers show settles ever more slowly.
func TestSweepsComeSoonAfterANewList(t *testing.T) {
	steps := []struct{ at, next time.Duration }{
		{0, 10 * time.Millisecond},
		{5 * time.Millisecond, 15 * time.Millisecond},
		{10 * time.Millisecond, 20 * time.Millisecond},
		{20 * time.Millisecond, 40 * time.Millisecond},
		{40 * time.Millisecond, 80 * time.Millisecond},
		{640 * time.Millisecond, 1280 * time.Millisecond},
		{1280 * time.Millisecond, 2280 * time.Millisecond},
		{time.Minute, 61 * time.Second},
	}
	p := newPool(t, evenkeel.Config{}, 3)
	check := func(what string, from time.Time) {
		t.Helper()
		for _, s := range steps {
			if got := p.Sweep(from.Add(s.at)).Sub(from); got != s.next {
				t.Errorf("%s: swept after %v, the next is due after %v, want %v", what, s.at, got, s.next)
			}
		}
	}
	check("a new pool", origin)

	later := origin.Add(time.Hour)
	if err := p.UpdateAt(later, members(4)); err != nil {
		t.Fatal(err)
	}
	check("a new list", later)

	quiet := later.Add(time.Hour)
	if err := p.UpdateAt(quiet, members(4)); err != nil { // nothing new
		t.Fatal(err)
	}
	p.SetState("e1", evenkeel.NotReady)
	if got := p.Sweep(quiet).Sub(quiet); got != time.Second {
		t.Errorf("after an equal list and a change of state the next is due after %v, want 1s", got)
	}
}

// Whoever sweeps when the last sweep has said sweeps eight times in the first second of a new list, and
// once a second from there.
func TestSweepsFollowedAsToldAreFew(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 3)
	count := 0
	for at := origin; at.Before(origin.Add(time.Minute)); at = p.Sweep(at) {
		count++
	}
	if count < 60 || count > 70 {
		t.Errorf("%d sweeps in the first minute, want 60 and a few", count)
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
