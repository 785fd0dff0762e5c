package evenkeel_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// slowly returns c with a slow start of the default form.
func slowly(c evenkeel.Config) evenkeel.Config {
	c.SlowStart = &evenkeel.SlowStart{}
	return c
}

// slow is a pool that is told the time, and asked for shares.
type slow struct {
	*traffic
	list []evenkeel.Member[int]
}

func newSlow(t *testing.T, c evenkeel.Config, n int) *slow {
	return &slow{newTraffic(t, c, n), members(n)}
}

// update makes the endpoints with those numbers the list.
func (s *slow) update(is ...int) {
	s.tb.Helper()
	all := members(slices.Max(is) + 1)
	s.list = nil
	for _, i := range is {
		s.list = append(s.list, all[i])
	}
	s.replace()
}

func (s *slow) replace() {
	s.tb.Helper()
	if err := s.pool.UpdateAt(s.now, s.list); err != nil {
		s.tb.Fatal(err)
	}
}

// pass lets time pass without requests, with sweeps when the pool wants them.
func (s *slow) pass(d time.Duration) {
	end := s.now.Add(d)
	for s.sweep = s.pool.Sweep(s.now); !s.sweep.After(end); {
		s.now = s.sweep
		s.sweep = s.pool.Sweep(s.now)
	}
	s.now = end
	s.sweep = s.pool.Sweep(s.now)
}

// is expects shares, within what a sweep a second allows.
func (s *slow) is(what, id string, want float64) {
	s.tb.Helper()
	e := s.stats(id)
	if math.Abs(e.Share-want) > 1e-6 {
		s.tb.Errorf("%s: %s has a share of %v, want %v", what, id, e.Share, want)
	}
	if says := slices.Contains(e.Reasons(), "slow start"); says != (want < 1) {
		s.tb.Errorf("%s: the reasons are %q with a share of %v", what, e.Reasons(), want)
	}
}

func (s *slow) state(id string, state evenkeel.State, by evenkeel.Source) {
	s.pool.SetStates([]evenkeel.StateChange{{ID: id, State: state, Source: by}})
}

// With any policy, and whether it ejects or not, an endpoint that joins gets what its age says, second by second.
func TestSlowStartBringsANewcomerInByAnyPolicy(t *testing.T) {
	for _, tc := range slices.Concat(allPolicies, []namedPolicy{{"least", picker.Least{}}, {"p2c_peak", picker.P2C{Signal: picker.PeakHold}}}) {
		for _, mode := range []outlier.Mode{outlier.NoEjection, outlier.Soft, outlier.Envoy, outlier.A50} {
			if mode != outlier.NoEjection && tc.name != "round_robin" && tc.name != "adaptive" {
				continue
			}
			s := newSlow(t, slowly(evenkeel.Config{Policy: tc.policy, Outlier: &outlier.Config{Mode: mode}}), 4)
			s.send(3*time.Second, time.Millisecond)
			s.update(0, 1, 2, 3, 4)
			line := []float64{}
			for second := range 12 {
				clear(s.sent)
				s.send(time.Second, 500*time.Microsecond)
				// Shares are moved once a second, so that a second has that of its beginning or its end.
				least, most := min(max(float64(second)/10, 0.1), 1), min(max(float64(second+1)/10, 0.1), 1)
				got := float64(s.sent[4]) / 2000 * 5
				chance := 4 * math.Sqrt(most*5/2000)
				line = append(line, math.Round(100*got)/100)
				if got < 0.8*least-chance || got > 1.25*most+chance {
					t.Errorf("%s, %v: in second %d it gets %.3f of a fifth, want %v to %v", tc.name, mode, second, got, least, most)
				}
			}
			t.Logf("%s, %v: %v", tc.name, mode, line)
			s.is(tc.name, "e4", 1)
		}
	}
}

// Where there is a slow start, the ramp of those that were ejected or failed their checks has its form.
func TestSlowStartStandsForTheRampOfReturn(t *testing.T) {
	c := rotating
	c.Outlier = &outlier.Config{}
	c.SlowStart = &evenkeel.SlowStart{Window: 40 * time.Second, Floor: outlier.PercentOf(0)}
	s := newSlow(t, c, 5)
	s.state("e4", evenkeel.Failing, evenkeel.Checks)
	s.pass(time.Second)
	s.state("e4", evenkeel.Ready, evenkeel.Checks)
	s.pass(20 * time.Second)
	if e := s.stats("e4"); e.Share < 0.45 || e.Share > 0.5 {
		t.Errorf("a share of %v after 20 s", e.Share)
	}
	c.SlowStart = &evenkeel.SlowStart{Window: 2 * time.Second}
	s = newSlow(t, c, 5)
	s.state("e4", evenkeel.Failing, evenkeel.Checks)
	s.pass(time.Second)
	s.state("e4", evenkeel.Ready, evenkeel.Checks)
	s.pass(5 * time.Second)
	if e := s.stats("e4"); e.Share != 1 {
		t.Errorf("a share of %v after 5 s, %q", e.Share, e.Reasons())
	}
}

// A share for more than half is a share for nobody. The clocks go on.
func TestSlowStartIsSkippedWhileMostAreOnTheirWay(t *testing.T) {
	s := newSlow(t, slowly(rotating), 3)
	s.pass(time.Second)
	s.update(0, 1, 2, 3, 4, 5)
	s.is("three of six", "e3", 0.1)
	s.pass(2 * time.Second)
	s.update(0, 1, 2, 3, 4, 5, 6)
	for _, id := range []string{"e0", "e3", "e6"} {
		s.is("four of seven", id, 1)
	}
	s.pass(5 * time.Second)
	s.pool.Drain("e3")
	s.is("three of six again", "e4", 0.7)
	s.is("three of six again", "e6", 0.5)

	c := slowly(rotating)
	c.Outlier = &outlier.Config{}
	s = newSlow(t, c, 5)
	s.pass(time.Second)
	s.update(0, 1, 2, 3, 4, 5, 6)
	s.is("two of seven", "e5", 0.1)
	for _, i := range []int{2, 3} { // these have a ramp, too
		s.state(members(7)[i].ID, evenkeel.Failing, evenkeel.Checks)
		s.state(members(7)[i].ID, evenkeel.Ready, evenkeel.Checks)
	}
	s.pass(50 * time.Millisecond)
	s.is("four of seven", "e5", 1)
	s.is("four of seven", "e2", 1)

	s = newSlow(t, slowly(rotating), 2)
	s.pass(time.Second)
	s.pool.Drain("e0")
	s.pool.Resume("e0")
	s.is("one of two", "e0", 0.1)
	s.pool.Drain("e1")
	s.is("the only one", "e0", 1)
}

// A list that misses an endpoint for a moment neither ends its slow start nor begins it anew.
func TestSlowStartSurvivesAListThatFlaps(t *testing.T) {
	s := newSlow(t, slowly(rotating), 4)
	s.pass(time.Second)
	s.update(0, 1, 2, 3, 4)
	s.pass(3 * time.Second)
	s.update(0, 1, 2, 3)
	s.pass(2 * time.Second)
	s.update(4, 3, 2, 1, 0)
	s.is("back after 2 s", "e4", 0.5)
	s.pass(3 * time.Second)
	s.is("8 s after it joined", "e4", 0.8)
}

// Shares are moved in ten steps at least.
func TestShortSlowStartsAreSweptOftener(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		time.Second: 100 * time.Millisecond, 4 * time.Second: 400 * time.Millisecond, 20 * time.Millisecond: 10 * time.Millisecond,
		5 * time.Second: time.Second, 0: time.Second, time.Hour: time.Second,
	} {
		for _, mode := range []outlier.Mode{outlier.NoEjection, outlier.Envoy} {
			c := rotating
			c.Outlier = &outlier.Config{Mode: mode}
			c.SlowStart = &evenkeel.SlowStart{Window: window}
			s := newSlow(t, c, 5)
			s.pass(5 * time.Second)
			if got := s.pool.Sweep(s.now).Sub(s.now); got != time.Second {
				t.Errorf("%v, %v: %v to the next sweep while nobody is on the way", mode, window, got)
			}
			s.pool.Drain("e0")
			s.pool.Resume("e0")
			if got := s.pool.Sweep(s.now).Sub(s.now); got != want {
				t.Errorf("%v, %v: %v to the next sweep, want %v", mode, window, got, want)
			}
		}
	}
}

func TestSlowStartFollowsTheConfiguration(t *testing.T) {
	s := newSlow(t, rotating, 4)
	s.pass(time.Second)
	s.update(0, 1, 2, 3, 4)
	s.is("off", "e4", 1)
	given := &evenkeel.SlowStart{Window: time.Minute, Floor: outlier.PercentOf(20)}
	c := rotating
	c.SlowStart = given
	if err := s.pool.SetConfigAt(s.now, c); err != nil {
		t.Fatal(err)
	}
	s.is("who was there before", "e4", 1)
	s.update(0, 1, 2, 3, 4, 5)
	s.is("on", "e5", 0.2)
	given.Window = time.Second // the pool has its own
	s.pass(30 * time.Second)
	s.is("half of the window", "e5", 0.5)
	c.SlowStart = &evenkeel.SlowStart{Window: time.Minute, Aggression: 2}
	if err := s.pool.SetConfigAt(s.now, c); err != nil {
		t.Fatal(err)
	}
	s.is("another curve", "e5", math.Sqrt(0.5))
	if err := s.pool.SetConfigAt(s.now, rotating); err != nil {
		t.Fatal(err)
	}
	s.is("off again", "e5", 1)
}

func TestSlowStartAndDrainTimeoutAreValidated(t *testing.T) {
	err := evenkeel.Config{SlowStart: &evenkeel.SlowStart{Window: -1, Aggression: math.NaN(), Floor: outlier.PercentOf(101)}, DrainTimeout: -time.Second}.Validate()
	for _, want := range []string{"SlowStart.Window is -1ns, want 0 to 24h0m0s", "SlowStart.Aggression is NaN, want a finite number above 0, or 0 for 1",
		"SlowStart.Floor is 101, want 0 to 100", "Config.DrainTimeout is -1s, want 0 to 24h0m0s"} {
		if err == nil || !strings.Contains(err.Error(), "evenkeel: "+want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	for _, c := range []evenkeel.Config{{SlowStart: &evenkeel.SlowStart{Window: 25 * time.Hour}}, {SlowStart: &evenkeel.SlowStart{Aggression: math.Inf(1)}},
		{SlowStart: &evenkeel.SlowStart{Aggression: -1}}, {SlowStart: &evenkeel.SlowStart{Floor: outlier.PercentOf(math.NaN())}}, {DrainTimeout: 25 * time.Hour}} {
		if c.Validate() == nil {
			t.Errorf("%+v, %v is valid", c.SlowStart, c.DrainTimeout)
		}
	}
	if err := (evenkeel.Config{SlowStart: &evenkeel.SlowStart{}, DrainTimeout: 24 * time.Hour}).Validate(); err != nil {
		t.Error(err)
	}
}

// Picks, sweeps, states, lists and configurations meet.
func TestSlowStartIsSafeForConcurrentUse(t *testing.T) {
	for _, policy := range []evenkeel.Policy{picker.Adaptive{}, picker.RoundRobin{}, picker.Hash{}, picker.EDF{}, picker.P2C{Signal: picker.InFlight}} {
		p, err := evenkeel.NewPool[int](slowly(evenkeel.Config{Policy: policy}), evenkeel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Update(members(4)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 2000 {
					k, err := p.Pick(evenkeel.Request{Key: uint64(i * g), HasKey: true})
					if err == nil {
						k.Done(evenkeel.Result{Outcome: evenkeel.Success})
					}
				}
			})
		}
		wg.Go(func() {
			for i := range 100 {
				_ = p.Update(members(4 + i%3))
				p.Sweep(time.Now())
			}
		})
		wg.Go(func() {
			for range 100 {
				p.Drain("e1")
				p.Resume("e1")
				p.Stats()
				p.Drained()
			}
		})
		wg.Go(func() {
			for i := range 30 {
				c := evenkeel.Config{Policy: policy}
				if i%2 == 0 {
					c = slowly(c)
				}
				_ = p.SetConfig(c)
			}
		})
		wg.Wait()
		for _, e := range p.Stats().Endpoints {
			if e.InFlight != 0 || e.Share < 0.1-1e-6 || e.Share > 1 {
				t.Errorf("%T: %+v", policy, e)
			}
		}
	}
}
