package evenkeel_test

import (
	"errors"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// An ejected endpoint is tried only within what it may have, and what goes to it beyond the pool's limit
// is within that too.
func TestTriesAndOverflowAreWithinWhatAnEndpointMayHave(t *testing.T) {
	config := capped(1, picker.RoundRobin{})
	config.Limit.Disabled = true
	c := newTraffic(t, config, 4)
	c.bad[1] = true
	for !isOut(c.stats("e1")) {
		c.send(10*time.Millisecond, time.Millisecond)
	}
	now := c.now.Add(10 * time.Second)
	try := func() (tries []evenkeel.Pick[int]) {
		for range 100 {
			k, err := c.pool.PickAt(now, evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if k.Handle() == 1 {
				tries = append(tries, k)
				continue
			}
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
		}
		return tries
	}
	first := try()
	if len(first) != 1 {
		t.Fatalf("%d tries at a time, want 1", len(first))
	}
	now = now.Add(time.Minute) // it is given up, and another would be due
	c.pool.Sweep(now)
	now = now.Add(time.Minute)
	if again := try(); len(again) != 0 {
		t.Errorf("%d tries while it has as many as it may", len(again))
	}
	first[0].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	if e := c.stats("e1"); e.InFlight != 0 {
		t.Errorf("%d in flight, want none", e.InFlight)
	}
	if again := try(); len(again) != 1 {
		t.Errorf("%d tries when it has room, want 1", len(again))
	}
}

func TestOverflowIsWithinWhatAnEndpointMayHave(t *testing.T) {
	p, picks, now := distressed(t, evenkeel.Config{Outlier: &outlier.Config{}}, 10, 20)
	for i := range picks {
		if picks[i].Handle() == 3 {
			picks[i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Failure})
		}
	}
	for !isOut(statsByID(p.StatsAt(now))["e3"]) {
		if k, err := p.PickAt(now, evenkeel.Request{}); err != nil {
			t.Fatal(err)
		} else if k.Handle() == 3 {
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Failure})
		}
	}
	if err := p.SetConfigAt(now, evenkeel.Config{Outlier: &outlier.Config{}, Limit: evenkeel.LimitConfig{PerEndpoint: 7}}); err != nil {
		t.Fatal(err)
	}
	over := 0
	var beyond []evenkeel.Pick[int]
	for range 100 {
		k, err := p.PickAt(now, evenkeel.Request{})
		if err == nil && k.Handle() == 3 {
			over++
			beyond = append(beyond, k)
		}
		if refusal, ok := errors.AsType[*evenkeel.OverloadError](err); ok && refusal.Endpoint {
			t.Errorf("%v, want the pool's limit to be the reason", err)
		}
	}
	if s := p.StatsAt(now); over != 1 || s.Overflowed > 1 {
		t.Errorf("%d went to the ejected one, %d of them beyond the pool's limit; want 1, as one at a time overflows", over, s.Overflowed)
	}
	for i := range beyond {
		beyond[i].DoneAt(now, evenkeel.Result{}) // which leaves it ejected
	}
	again := 0
	for range 100 {
		if k, err := p.PickAt(now, evenkeel.Request{}); err == nil && k.Handle() == 3 {
			again++
		}
	}
	if again != 1 {
		t.Errorf("%d went to the ejected one when it had room again, want 1", again)
	}
}

// A refusal for full endpoints takes no place within the pool's limit.
func TestFullEndpointsTakeNoPlaceWithinTheLimit(t *testing.T) {
	p, picks, now := distressed(t, evenkeel.Config{}, 2, 8)
	for i := range picks {
		picks[i].DoneAt(now, evenkeel.Result{})
	}
	begun := 0
	for _, most := range []int{1, 0} {
		if err := p.SetConfigAt(now, evenkeel.Config{Limit: evenkeel.LimitConfig{PerEndpoint: most}}); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if _, err := p.PickAt(now, evenkeel.Request{}); err == nil {
				begun++
			}
		}
		if most == 1 && begun != 2 {
			t.Errorf("%d began on two endpoints that may have one each", begun)
		}
	}
	if s := p.StatsAt(now); begun != 8 || s.Full != 48 {
		t.Errorf("%d began, %d were refused by full endpoints; want the limit of 8, and 48", begun, s.Full)
	}
}
