package evenkeel_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// Nothing but a return starts anything.
func TestSlowStartIsOfReturnsAlone(t *testing.T) {
	s := newSlow(t, slowly(rotating), 5)
	all := func(what string) {
		t.Helper()
		s.pass(50 * time.Millisecond)
		for _, m := range s.list {
			s.is(what, m.ID, 1)
		}
	}
	all("the first list")
	s.pass(time.Minute)
	slices.Reverse(s.list)
	s.replace()
	all("another order")
	s.list[1].Weight = evenkeel.WeightOf(3)
	s.replace()
	all("another weight")
	s.list[2].Handle = 77
	s.replace()
	all("another handle")
	if err := s.pool.SetConfigAt(s.now, slowly(evenkeel.Config{Policy: picker.Random{}})); err != nil {
		t.Fatal(err)
	}
	all("another policy")
	s.state("e3", evenkeel.NotReady, evenkeel.Connection)
	s.pass(9 * time.Second)
	s.state("e3", evenkeel.Ready, evenkeel.Connection)
	all("nine seconds without a connection")
	s.update(0, 1, 2, 3)
	s.pass(9 * time.Second)
	s.update(0, 1, 2, 3, 4)
	all("nine seconds out of the list")
}

// Each way back is a slow start.
func TestSlowStartOfEachWayBack(t *testing.T) {
	ways := map[string]func(s *slow){
		"joined": func(s *slow) { s.update(0, 1, 2, 3, 4, 5); s.update(0, 1, 2, 4) },
		"checked": func(s *slow) {
			s.state("e4", evenkeel.Failing, evenkeel.Checks)
			s.state("e4", evenkeel.Ready, evenkeel.Checks)
		},
		"resumed": func(s *slow) { s.pool.Drain("e4"); s.pool.Resume("e4") },
		"weighed": func(s *slow) {
			s.list[4].Weight = evenkeel.WeightOf(0)
			s.replace()
			s.list[4].Weight = evenkeel.Weight{}
			s.replace()
		},
		"connected": func(s *slow) {
			s.state("e4", evenkeel.NotReady, evenkeel.Connection)
			s.pass(11 * time.Second)
			s.state("e4", evenkeel.Ready, evenkeel.Connection)
		},
		"listed": func(s *slow) { s.update(0, 1, 2, 3); s.pass(11 * time.Second); s.update(0, 1, 2, 3, 4) },
	}
	for name, way := range ways {
		s := newSlow(t, slowly(rotating), 5)
		s.pass(30 * time.Second)
		way(s)
		id := "e4"
		if name == "joined" {
			s.update(0, 1, 2, 3, 4, 5)
			id = "e5"
		}
		s.is(name, id, 0.1)
		s.pass(2 * time.Second)
		if e := s.stats(id); e.Share < 0.1 || e.Share > 0.2+1e-6 {
			t.Errorf("%s: a share of %v after 2 s", name, e.Share)
		}
		s.pass(9 * time.Second)
		s.is(name, id, 1)
		s.is(name, "e0", 1)
	}
}

// A connection that a newcomer has to be given first is where its slow start begins, however long that takes; with the
// pool's first list there is none, unless it takes long.
func TestSlowStartBeginsWhenANewcomerCanBeUsed(t *testing.T) {
	s := newSlow(t, slowly(rotating), 4)
	s.list = append(members(6)[:4], evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: "e4"}, NotReady: true})
	s.replace()
	s.pass(5 * time.Minute)
	s.is("not connected", "e4", 1)
	s.pool.SetState("e4", evenkeel.Ready)
	s.is("connected", "e4", 0.1)

	p, err := evenkeel.NewPool[int](slowly(rotating), evenkeel.Options{Start: origin})
	if err != nil {
		t.Fatal(err)
	}
	list := members(4)
	for i := range list {
		list[i].NotReady = true
	}
	if err := p.UpdateAt(origin, list); err != nil {
		t.Fatal(err)
	}
	for i, m := range list {
		now := origin.Add(time.Duration(i) * 4 * time.Second)
		p.Sweep(now)
		p.SetState(m.ID, evenkeel.Ready)
		want := 1.0
		if i == 3 {
			want = 0.1
		}
		if e := statsByID(p.StatsAt(now))[m.ID]; math.Abs(e.Share-want) > 1e-6 {
			t.Errorf("connected %v after the first list, %s has a share of %v, want %v", now.Sub(origin), m.ID, e.Share, want)
		}
	}
}

// The end of an ejection is a return in Soft, also without a ramp of its own; in the modes that are others' it is none.
func TestSlowStartAfterAnEjection(t *testing.T) {
	c := slowly(rotating)
	c.Outlier = &outlier.Config{Ramp: outlier.Ramp{Window: -1}}
	s := newSlow(t, c, 5)
	s.bad[2] = true
	s.send(time.Second, time.Millisecond)
	s.bad[2] = false
	for i := 0; !s.stats("e2").Available; i++ {
		if s.send(10*time.Millisecond, time.Millisecond); i > 1000 {
			t.Fatalf("well for 10 s: %+v", s.stats("e2"))
		}
	}
	s.is("released", "e2", 0.1)
	s.send(11*time.Second, time.Millisecond)
	s.is("at the end", "e2", 1)

	// An ejection that a configuration ends was no absence.
	s.bad[2] = true
	s.send(time.Second, time.Millisecond)
	if !isOut(s.stats("e2")) {
		t.Fatal("it is not ejected again")
	}
	c.Outlier = &outlier.Config{Mode: outlier.NoEjection}
	if err := s.pool.SetConfigAt(s.now, c); err != nil {
		t.Fatal(err)
	}
	s.is("reconfigured", "e2", 1)

	c.Outlier = &outlier.Config{Mode: outlier.Envoy, BaseEjectionTime: time.Second, Interval: time.Second, MaxEjectionPercent: outlier.PercentOf(50)}
	s = newSlow(t, c, 5)
	s.bad[2] = true
	s.send(100*time.Millisecond, time.Millisecond)
	s.bad[2] = false
	if s.stats("e2").Available {
		t.Fatal("it is not ejected")
	}
	for !s.stats("e2").Available {
		s.send(10*time.Millisecond, time.Millisecond)
	}
	s.is("released as in Envoy", "e2", 1)
}
