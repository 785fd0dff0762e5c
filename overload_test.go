package evenkeel_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// ejectThird fails the requests of endpoint e3 until it is ejected, and returns what is in flight then.
func ejectThird(t *testing.T, p *evenkeel.Pool[int], open []evenkeel.Pick[int], now time.Time) []evenkeel.Pick[int] {
	t.Helper()
	for i := range open {
		if open[i].Handle() == 3 {
			open[i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Failure})
		}
	}
	for !isOut(statsByID(p.StatsAt(now))["e3"]) {
		k, err := p.PickAt(now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if k.Handle() == 3 {
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Failure})
			continue
		}
		open = append(open, k)
	}
	return open
}

// What the limit holds back tries an ejected endpoint, beyond the limit and one at a time: of a queue that
// is too long clients would give up, and the endpoint would not.
func TestRequestsBeyondTheLimitOverflowToEjectedEndpoints(t *testing.T) {
	p, open, now := distressed(t, evenkeel.Config{Outlier: &outlier.Config{}}, 10, 20)
	open = ejectThird(t, p, open, now)
	var over evenkeel.Pick[int]
	refused := 0
	for range 60 {
		switch k, err := p.PickAt(now, evenkeel.Request{}); {
		case errors.Is(err, evenkeel.ErrOverloaded):
			refused++
		case err != nil:
			t.Fatal(err)
		case k.Handle() == 3:
			over = k
		default:
			open = append(open, k)
		}
	}
	if s := p.StatsAt(now); over.Record() == nil || refused < 30 || s.Overflowed != 1 || statsByID(s)["e3"].InFlight != 1 {
		t.Fatalf("%d of 60 were refused, and %d overflowed: %+v", refused, s.Overflowed, statsByID(s)["e3"])
	}
	avoid := evenkeel.Request{Avoid: []*evenkeel.Record{over.Record()}}
	for i := range 3 {
		over.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
		if _, err := p.PickAt(now, avoid); !errors.Is(err, evenkeel.ErrOverloaded) {
			t.Errorf("one that has been there: %v", err)
		}
		var err error
		if over, err = p.PickAt(now, evenkeel.Request{}); i < 2 && (err != nil || over.Handle() != 3) {
			t.Fatalf("after a good answer: %v", err)
		}
	}
	if s := p.StatsAt(now); s.Overflowed != 0 || !statsByID(s)["e3"].Available {
		t.Errorf("after three good answers: %+v", statsByID(s)["e3"])
	}
}

// Streams that an ejected endpoint still has do not keep it from being tried.
func TestStreamsDoNotKeepOthersFromOverflowing(t *testing.T) {
	p, open, now := distressed(t, evenkeel.Config{Outlier: &outlier.Config{}}, 10, 20)
	for {
		k, err := p.PickAt(now, evenkeel.Request{Kind: picker.Stream})
		if err != nil {
			t.Fatal(err)
		}
		if k.Handle() == 3 {
			break
		}
	}
	ejectThird(t, p, open, now)
	for range 60 {
		if k, err := p.PickAt(now, evenkeel.Request{}); err == nil && k.Handle() == 3 {
			return
		}
	}
	t.Error("nothing went to the ejected one")
}

// Without panic all may be ejected. Then one of them is better than nobody; Envoy has it otherwise.
func TestWhereAllAreEjectedOneOfThemIsTried(t *testing.T) {
	for mode, want := range map[outlier.Mode]error{outlier.Soft: nil, outlier.Envoy: evenkeel.ErrNoneReady} {
		never := outlier.Panic{Threshold: outlier.PercentOf(0)}
		c := rotating
		c.Outlier = &outlier.Config{Mode: mode, MaxEjectionPercent: outlier.PercentOf(100), Panic: never}
		send := newTraffic(t, c, 4)
		send.bad = map[int]bool{0: true, 1: true, 2: true, 3: true}
		for i := 0; send.pool.StatsAt(send.now).Ejected < 4 && i < 100; i++ {
			send.send(time.Millisecond, time.Millisecond)
		}
		k, err := send.pool.PickAt(send.now, evenkeel.Request{})
		if !errors.Is(err, want) {
			t.Fatalf("%v: %v, want %v", mode, err, want)
		}
		if want != nil {
			continue
		}
		for range 3 {
			one, err := send.pool.PickAt(send.now, evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			defer one.DoneAt(send.now, evenkeel.Result{})
		}
		if _, err := send.pool.PickAt(send.now, evenkeel.Request{}); !errors.Is(err, evenkeel.ErrNoneReady) {
			t.Errorf("a second one of an endpoint: %v", err)
		}
		k.DoneAt(send.now, evenkeel.Result{Outcome: evenkeel.Success})
	}
}

// While requests are refused nobody who is back takes less than a full share.
func TestNobodyRampsWhileThereIsALimit(t *testing.T) {
	for _, limited := range []bool{true, false} {
		p, open, now := distressed(t, evenkeel.Config{Policy: picker.RoundRobin{}, Outlier: &outlier.Config{}, Limit: evenkeel.LimitConfig{Disabled: !limited}}, 10, 20)
		for i := range open {
			open[i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
		}
		p.SetStates([]evenkeel.StateChange{{ID: "e3", State: evenkeel.Failing, Source: evenkeel.Checks}})
		p.SetStates([]evenkeel.StateChange{{ID: "e3", State: evenkeel.Ready, Source: evenkeel.Checks}})
		s := p.StatsAt(now)
		if got := statsByID(s)["e3"].Ejection.State; got != outlier.Ramping || (s.Limit > 0) != limited {
			t.Fatalf("%v, and the limit is %d", got, s.Limit)
		}
		sent := 0
		for range 1000 {
			if k, err := p.PickAt(now, evenkeel.Request{}); err == nil {
				if k.Handle() == 3 {
					sent++
				}
				k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
			}
		}
		if (sent > 80) != limited {
			t.Errorf("limited: %v, and one of ten that is back got %d of 1,000", limited, sent)
		}
	}
}

// In a panic ejected endpoints are as good as the others, and as limited.
func TestNothingOverflowsInAPanic(t *testing.T) {
	p, open, now := distressed(t, evenkeel.Config{Policy: picker.RoundRobin{}}, 4, 40)
	for i := range open {
		if open[i].Handle() < 3 {
			open[i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Failure})
		}
	}
	if s := p.StatsAt(now); !s.Panicking || s.Ejected != 3 {
		t.Fatalf("%+v", s)
	}
	refused := false
	for range 100 {
		if _, err := p.PickAt(now, evenkeel.Request{}); err != nil {
			refused = errors.Is(err, evenkeel.ErrOverloaded)
		}
	}
	if s := p.StatsAt(now); !refused || s.Overflowed != 0 {
		t.Errorf("refused: %v, %d overflowed", refused, s.Overflowed)
	}
}

// backAtTheLimit returns a pool at its limit in which e3 is on a ramp and idle.
func backAtTheLimit(t *testing.T) (p *evenkeel.Pool[int], now time.Time) {
	t.Helper()
	p, open, now := distressed(t, evenkeel.Config{Policy: picker.RoundRobin{}, Outlier: &outlier.Config{}}, 10, 100)
	for range 250 { // until the timeouts are forgotten, and with them that many failed at once, which is a reason for no ramp
		now = now.Add(100 * time.Millisecond)
		p.Sweep(now)
	}
	ejectThird(t, p, open, now)
	for range 3 {
		k := beyondTheLimit(t, p, now)
		k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	}
	if e := statsByID(p.StatsAt(now))["e3"]; e.Ejection.State != outlier.Ramping || e.InFlight != 0 {
		t.Fatalf("after three good answers: %+v", e)
	}
	return p, now
}

// beyondTheLimit picks until a request goes beyond the limit, which is to be one to e3.
func beyondTheLimit(t *testing.T, p *evenkeel.Pool[int], now time.Time) evenkeel.Pick[int] {
	t.Helper()
	for range 1000 {
		k, err := p.PickAt(now, evenkeel.Request{})
		if err != nil {
			t.Fatalf("beyond the limit: %v", err)
		}
		if p.StatsAt(now).Overflowed == 1 {
			if k.Handle() != 3 {
				t.Fatalf("beyond the limit: %d", k.Handle())
			}
			return k
		}
		if k.Handle() == 3 { // within it
			k.DoneAt(now, evenkeel.Result{})
		}
	}
	t.Fatal("no limit")
	return evenkeel.Pick[int]{}
}

// While an endpoint that is on its way back has nothing to do, nobody is refused for the limit's sake; a second
// request at a time is.
func TestRequestsBeyondTheLimitGoToIdleEndpointsOnARamp(t *testing.T) {
	p, now := backAtTheLimit(t)
	for range 5 {
		k := beyondTheLimit(t, p, now)
		if _, err := p.PickAt(now, evenkeel.Request{}); !errors.Is(err, evenkeel.ErrOverloaded) {
			t.Errorf("beside one in flight: %v", err)
		}
		k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	}
	k := beyondTheLimit(t, p, now)
	avoid := evenkeel.Request{Avoid: []*evenkeel.Record{k.Record()}}
	k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	if _, err := p.PickAt(now, avoid); !errors.Is(err, evenkeel.ErrOverloaded) {
		t.Errorf("one that has been there: %v", err)
	}
	if s := p.StatsAt(now); s.Overflowed != 0 {
		t.Errorf("%d beyond the limit at rest", s.Overflowed)
	}
}

// What such requests bring counts: two failures in a row end a ramp, whoever's they are.
func TestFailuresBeyondTheLimitEndARamp(t *testing.T) {
	p, now := backAtTheLimit(t)
	for range 2 {
		k := beyondTheLimit(t, p, now)
		k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Failure})
	}
	if e := statsByID(p.StatsAt(now))["e3"]; !isOut(e) || e.Ejection.ProbesFailed == 0 {
		t.Errorf("after two failures: %+v, want it ejected again, with the next back-off", e)
	}
}

// Nobody who asks to be left alone gets what the others have no room for, ejected or not.
func TestNothingBeyondTheLimitGoesWhereItIsNotWanted(t *testing.T) {
	p, now := backAtTheLimit(t)
	k := beyondTheLimit(t, p, now)
	k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Overload, RetryAfter: 10 * time.Second})
	for range 20 {
		if _, err := p.PickAt(now, evenkeel.Request{}); !errors.Is(err, evenkeel.ErrOverloaded) {
			t.Fatalf("beyond the limit: %v, want no request", err)
		}
	}
	if e := statsByID(p.StatsAt(now))["e3"]; e.Ejection.State != outlier.Ramping {
		t.Errorf("to be asked for less is no failure: %+v", e)
	}
}

// Policies that need no time have none from their picks. They leave those alone that ask for it all the same, from
// the beginning of the answer until the hint is over, whether or not anybody sweeps.
func TestHintsAreRespectedByPoliciesThatNeedNoTime(t *testing.T) {
	for _, policy := range []evenkeel.Policy{picker.RoundRobin{}, picker.Random{}, picker.WeightedRoundRobin{}, picker.P2C{Signal: picker.InFlight}, picker.Hash{Fallback: picker.Random{}}} {
		for _, config := range []evenkeel.Config{bare(policy), {Policy: policy, Outlier: &outlier.Config{}}} {
			synctest.Test(t, func(t *testing.T) {
				p, err := evenkeel.NewPool[int](config, evenkeel.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Update(members(10)); err != nil {
					t.Fatal(err)
				}
				count := func() (n [10]int) {
					for range 1000 {
						k, err := p.Pick(evenkeel.Request{})
						if err != nil {
							t.Fatal(err)
						}
						n[k.Handle()]++
						k.Done(evenkeel.Result{Outcome: evenkeel.Success})
					}
					return n
				}
				time.Sleep(time.Minute) // after which nobody has swept
				refused := map[int]bool{}
				for len(refused) < 3 {
					k, err := p.Pick(evenkeel.Request{})
					if err != nil {
						t.Fatal(err)
					}
					r := evenkeel.Result{Outcome: evenkeel.Overload, RetryAfter: 10 * time.Second}
					if len(refused) == 0 {
						k.Answered(r)
						if e := p.Stats().Endpoints[k.Handle()]; e.Avoided == 0 {
							t.Errorf("%T: nothing is known when the answer begins", policy)
						}
					}
					refused[k.Handle()] = true
					k.Done(r)
				}
				time.Sleep(8 * time.Second)
				for i, n := range count() {
					if refused[i] != (n == 0) {
						t.Errorf("%T: endpoint %d, of which %v said that it wants none, gets %d requests", policy, i, refused, n)
					}
				}
				time.Sleep(4 * time.Second)
				for i, n := range count() {
					if n < 50 {
						t.Errorf("%T: afterwards endpoint %d gets %d of 1,000 requests", policy, i, n)
					}
				}
			})
		}
	}
}
