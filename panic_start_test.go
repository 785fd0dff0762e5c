package evenkeel_test

import (
	"errors"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// Endpoints connect one after another, and one of two fails its checks from the start. That nobody was there
// at first is no reason not to believe the check.
func TestAPoolThatStartsDoesNotPanicForWantOfConnections(t *testing.T) {
	p, err := evenkeel.NewPool[int](evenkeel.Config{Policy: picker.RoundRobin{}}, evenkeel.Options{Start: origin})
	if err != nil {
		t.Fatal(err)
	}
	list := members(2)
	for i := range list {
		list[i].NotReady = true
	}
	if err := p.UpdateAt(origin, list); err != nil {
		t.Fatal(err)
	}
	if p.StatsAt(origin).Panicking {
		t.Error("a pool whose members are not connected yet panics")
	}
	p.SetStates([]evenkeel.StateChange{{ID: "e0"}, {ID: "e0", State: evenkeel.Failing, Source: evenkeel.Checks}})
	if k, err := p.PickAt(origin, evenkeel.Request{}); err != nil || k.Handle() != 0 {
		t.Errorf("while nobody else is there: %v", err)
	}
	p.SetStates([]evenkeel.StateChange{{ID: "e1"}})
	for range 20 {
		k, err := p.PickAt(origin, evenkeel.Request{})
		if err != nil || k.Handle() != 1 {
			t.Fatalf("endpoint %d, %v, want the one that passes its checks", k.Handle(), err)
		}
	}
}

// Fail fast is about verdicts: while most are still being connected, those that are there serve.
func TestAPoolThatStartsDoesNotFailFast(t *testing.T) {
	c := evenkeel.Config{Outlier: &outlier.Config{Panic: outlier.Panic{FailFast: true}}}
	p, err := evenkeel.NewPool[int](c, evenkeel.Options{Start: origin})
	if err != nil {
		t.Fatal(err)
	}
	list := members(10)
	for i := range list {
		list[i].NotReady = i > 0
	}
	if err := p.UpdateAt(origin, list); err != nil {
		t.Fatal(err)
	}
	if _, err := p.PickAt(origin, evenkeel.Request{}); err != nil {
		t.Errorf("the first that is connected: %v", err)
	}
	for i := range 8 {
		p.SetState(list[i].ID, evenkeel.Ready)
	}
	for i := range 7 {
		p.SetState(list[i].ID, evenkeel.NotReady)
	}
	if _, err := p.PickAt(origin, evenkeel.Request{}); !errors.Is(err, evenkeel.ErrPanic) {
		t.Errorf("with one left of eight that were there: %v, want ErrPanic", err)
	}
}
