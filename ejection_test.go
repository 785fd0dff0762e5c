package evenkeel_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// rotating is a configuration that sees no failures by itself.
var rotating = evenkeel.Config{Policy: picker.RoundRobin{}, Limit: evenkeel.LimitConfig{Disabled: true}}

// traffic sends requests through a pool, of which those to endpoints in bad fail, and sweeps it as it asks.
type traffic struct {
	tb    testing.TB
	pool  *evenkeel.Pool[int]
	now   time.Time
	sweep time.Time
	bad   map[int]bool
	sent  map[int]int
}

func newTraffic(tb testing.TB, c evenkeel.Config, n int) *traffic {
	return &traffic{tb: tb, pool: newPool(tb, c, n), now: origin, sweep: origin.Add(10 * time.Millisecond), bad: map[int]bool{}, sent: map[int]int{}}
}

// send sends one request every gap for d.
func (c *traffic) send(d, gap time.Duration) {
	c.tb.Helper()
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(gap) {
		if !c.now.Before(c.sweep) {
			c.sweep = c.pool.Sweep(c.now)
		}
		k, err := c.pool.PickAt(c.now, evenkeel.Request{})
		if err != nil {
			c.tb.Fatal(err)
		}
		c.sent[k.Handle()]++
		r := evenkeel.Result{Outcome: evenkeel.Success}
		if c.bad[k.Handle()] {
			r.Outcome = evenkeel.Failure
		}
		k.DoneAt(c.now.Add(time.Millisecond), r)
	}
}

func (c *traffic) stats(id string) evenkeel.EndpointStats {
	c.tb.Helper()
	e, ok := statsByID(c.pool.StatsAt(c.now))[id]
	if !ok {
		c.tb.Fatalf("no endpoint %s", id)
	}
	return e
}

// A policy that is blind to failures stops sending to whoever fails, finds out with single
// requests when it is well, and brings it back by and by.
func TestFailingEndpointIsEjectedProbedAndBroughtBack(t *testing.T) {
	for _, tc := range []namedPolicy{{"round_robin", picker.RoundRobin{}}, {"random", picker.Random{}}, {"p2c_in_flight", picker.P2C{Signal: picker.InFlight}},
		{"stride", picker.WeightedRoundRobin{}}, {"least", picker.Least{Signal: picker.InFlight}}} {
		t.Run(tc.name, func(t *testing.T) {
			c := newTraffic(t, evenkeel.Config{Policy: tc.policy, Limit: evenkeel.LimitConfig{Disabled: true}}, 5)
			c.bad[2] = true
			c.send(time.Second, time.Millisecond)
			e := c.stats("e2")
			if e.Available || !isOut(e) || e.Ejection.Reason != outlier.ConsecutiveFailures {
				t.Fatalf("after a second of failures: %+v", e)
			}
			if got := e.Reasons(); !slices.Contains([]string{"ejected: consecutive failures", "probing: consecutive failures"}, got[0]) {
				t.Errorf("reasons %q", got)
			}
			clear(c.sent)
			c.send(20*time.Second, time.Millisecond)
			if n := c.sent[2]; n < 2 || n > 8 {
				t.Errorf("%d requests tried it in 20 s, want one at each of 0.5 s · 2^k", n)
			}
			c.bad[2] = false
			for i := 0; c.stats("e2").Ejection.State != outlier.Ramping; i++ {
				if c.send(100*time.Millisecond, time.Millisecond); i > 100 { // the longest wait, with its jitter
					t.Fatalf("well for 10 s: %+v", c.stats("e2"))
				}
			}
			clear(c.sent)
			c.send(time.Second, time.Millisecond)
			if n := c.sent[2]; n > 120 {
				t.Errorf("%d of 1,000 requests in a second of the ramp, want less than half of 200", n)
			}
			c.send(5*time.Second, time.Millisecond)
			clear(c.sent)
			if c.send(time.Second, time.Millisecond); c.sent[2] < 80 || c.sent[2] > 190 {
				t.Errorf("%d of 1,000 requests in the seventh of ten seconds, want well between 20 and 200", c.sent[2])
			}
			c.send(7*time.Second, time.Millisecond)
			clear(c.sent)
			c.send(time.Second, time.Millisecond)
			if n := c.sent[2]; n < 150 || n > 260 {
				t.Errorf("%d of 1,000 requests after the ramp, want 200", n)
			}
			if e := c.stats("e2"); !e.Available || e.Ejection.State != outlier.Available || e.InFlight != 0 {
				t.Errorf("at the end: %+v", e)
			}
		})
	}
}

// What was sent before an endpoint was ejected says nothing about it afterwards.
func TestResultsFromBeforeAnEjectionTeachNothing(t *testing.T) {
	c := evenkeel.Config{Policy: picker.P2C{}, Outlier: &outlier.Config{}, Limit: evenkeel.LimitConfig{Disabled: true}}
	p := newPool(t, c, 3)
	var late []evenkeel.Pick[int]
	for range 60 {
		k, err := p.PickAt(origin, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		late = append(late, k)
	}
	now := origin.Add(time.Millisecond)
	failed := 0
	for i := range late {
		if late[i].Handle() == 1 && failed < 5 {
			late[i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Failure})
			failed++
		}
	}
	before := statsByID(p.StatsAt(now))["e1"]
	if !isOut(before) {
		t.Fatalf("%d failures: %+v", failed, before)
	}
	for i := range late {
		if late[i].Handle() == 1 {
			late[i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
		}
		late[i].DoneAt(now, evenkeel.Result{})
	}
	after := statsByID(p.StatsAt(now))["e1"]
	if after.InFlight != 0 || after.Success != before.Success || after.Latency != before.Latency || after.Ejection != before.Ejection {
		t.Errorf("was %+v, is %+v", before, after)
	}
}

// Policies that see failures themselves eject nobody unless told to.
func TestDefaultPolicyEjectsNobody(t *testing.T) {
	c := newTraffic(t, evenkeel.Config{}, 5)
	c.bad[2] = true
	c.send(3*time.Second, time.Millisecond)
	if e := c.stats("e2"); e.Ejection.Epoch != 0 || !e.Available || c.sent[2] > 60 {
		t.Errorf("%d requests to it, %+v", c.sent[2], e)
	}
}

// What hashes sees no failures, whatever its rule for requests without a key does: the keys of an endpoint
// that fails go on to their next candidates.
func TestKeysLeaveAnEndpointThatFails(t *testing.T) {
	p := newPool(t, evenkeel.Config{Policy: picker.Hash{}}, 5)
	served := map[int]int{}
	for i := range 400 {
		k, err := p.PickAt(origin, evenkeel.Request{Key: uint64(i%40) * 0x9e3779b97f4a7c15, HasKey: true})
		if err != nil {
			t.Fatal(err)
		}
		r := evenkeel.Result{Outcome: evenkeel.Success}
		if k.Handle() == 2 {
			r.Outcome = evenkeel.Failure
		}
		served[k.Handle()]++
		k.DoneAt(origin, r)
	}
	if e := statsByID(p.StatsAt(origin))["e2"]; !isOut(e) || served[2] != 5 {
		t.Errorf("%d requests failed, %+v", served[2], e)
	}
}

// Fewer than half are available: all are used, unless the pool is to fail fast.
func TestPanicUsesAllOrNobody(t *testing.T) {
	for _, failFast := range []bool{false, true} {
		config := rotating
		config.Outlier = &outlier.Config{Panic: outlier.Panic{FailFast: failFast}}
		c := newTraffic(t, config, 4)
		for _, id := range []string{"e0", "e1", "e2"} {
			c.pool.SetStates([]evenkeel.StateChange{{ID: id, State: evenkeel.Failing, Source: evenkeel.Checks}})
		}
		if s := c.pool.StatsAt(c.now); !s.Panicking {
			t.Fatalf("three of four fail their checks: %+v", s)
		}
		k, err := c.pool.PickAt(c.now, evenkeel.Request{})
		if failFast {
			if !errors.Is(err, evenkeel.ErrPanic) || !errors.Is(err, evenkeel.ErrNoneReady) {
				t.Errorf("fail fast: %v", err)
			}
		} else if err != nil {
			t.Error(err)
		}
		k.DoneAt(c.now, evenkeel.Result{})
		c.pool.SetStates([]evenkeel.StateChange{{ID: "e0", Source: evenkeel.Checks}, {ID: "e1", Source: evenkeel.Checks}})
		if s := c.pool.StatsAt(c.now); s.Panicking || s.Ready != 3 {
			t.Errorf("three of four pass: %+v", s)
		}
	}
}

// A check that passes ends an ejection where the rules say so.
func TestPassedCheckEndsAnEjection(t *testing.T) {
	for _, returns := range []bool{false, true} {
		config := rotating
		config.Outlier = &outlier.Config{Soft: outlier.SoftConfig{ChecksReturn: returns}}
		c := newTraffic(t, config, 4)
		c.bad[1] = true
		c.send(100*time.Millisecond, time.Millisecond)
		c.pool.SetStates([]evenkeel.StateChange{{ID: "e1", Source: evenkeel.Checks}})
		if e := c.stats("e1"); e.Available != returns {
			t.Errorf("ChecksReturn %v: %+v", returns, e)
		}
	}
}

// While some requests say that they may be sent again, others try nobody, for a while.
func TestProbesAreRequestsThatMayBeSentAgain(t *testing.T) {
	c := newTraffic(t, rotating, 4)
	c.bad[1] = true
	c.send(100*time.Millisecond, time.Millisecond)
	if !isOut(c.stats("e1")) {
		t.Fatal("not ejected")
	}
	now := c.now.Add(2 * time.Second)
	once := evenkeel.Request{Idempotent: true}
	try := func() (k evenkeel.Pick[int]) { // who gets one of a hundred: not each one for which it is due tries
		for range 100 {
			var err error
			if k, err = c.pool.PickAt(now, once); err != nil {
				t.Fatal(err)
			}
			if k.Handle() == 1 {
				return k
			}
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
		}
		return k
	}
	k := try()
	if k.Handle() != 1 {
		t.Fatal("nobody tried the ejected one")
	}
	k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Canceled}) // says nothing: the next may go at once
	for range 100 {
		k, err := c.pool.PickAt(now, evenkeel.Request{})
		if err != nil || k.Handle() == 1 {
			t.Fatalf("%v, %v, want another for a request that may not be sent again", k.Handle(), err)
		}
		k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	}
	if k = try(); k.Handle() != 1 {
		t.Fatal("nobody tried the ejected one again")
	}
	k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Failure})
	if k = try(); k.Handle() == 1 {
		t.Fatal("it was tried right after a failed try")
	}
}

// A broken body makes the good beginning of an answer none, each time.
func TestAnswersThatBreakOffEject(t *testing.T) {
	c := newTraffic(t, rotating, 4)
	for range 40 {
		k, err := c.pool.PickAt(c.now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		end := evenkeel.Success
		if k.Handle() == 3 {
			end = evenkeel.Failure
		}
		k.AnsweredAt(c.now, evenkeel.Result{Outcome: evenkeel.Success, Status: picker.HTTPStatus(200)})
		k.DoneAt(c.now, evenkeel.Result{Outcome: end})
	}
	if !isOut(c.stats("e3")) {
		t.Errorf("%+v", c.stats("e3"))
	}
}

// The failure that an answer begins with counts then, and once.
func TestFailureCountsWhenTheAnswerBegins(t *testing.T) {
	config := rotating
	config.Outlier = &outlier.Config{Soft: outlier.SoftConfig{ConsecutiveFailures: 2}}
	p := newPool(t, config, 3)
	for round := range 2 {
		for range 3 {
			k, err := p.PickAt(origin, evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if k.Handle() == 0 {
				k.AnsweredAt(origin, evenkeel.Result{Outcome: evenkeel.Failure})
				if out := isOut(statsByID(p.StatsAt(origin))["e0"]); out != (round == 1) {
					t.Errorf("round %d: ejected %v", round, out)
				}
			}
			k.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
		}
	}
}

// A change of the rules is in force from the next result on, and the end of all rules lets everybody back.
func TestChangedRulesAreInForceAtOnce(t *testing.T) {
	off := rotating
	off.Outlier = &outlier.Config{Mode: outlier.NoEjection}
	c := newTraffic(t, off, 4)
	c.bad[1] = true
	for range 2 {
		c.send(100*time.Millisecond, time.Millisecond)
		if e := c.stats("e1"); isOut(e) || !e.Available {
			t.Fatalf("without rules: %+v", e)
		}
		if err := c.pool.SetConfigAt(c.now, rotating); err != nil {
			t.Fatal(err)
		}
		c.send(100*time.Millisecond, time.Millisecond)
		if e := c.stats("e1"); !isOut(e) || e.Available {
			t.Fatalf("with rules: %+v", e)
		}
		if err := c.pool.SetConfigAt(c.now, off); err != nil {
			t.Fatal(err)
		}
	}
}
