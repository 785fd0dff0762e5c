package evenkeel_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// Bug 40: three endpoints fail for ten seconds, all of them, and recover. So does the pool, by itself, within the wait between
// probes and a second; who fails fast meanwhile is told why.
func TestBug40APoolThatWasAllOutServesAgainByItself(t *testing.T) {
	for name, p := range map[string]outlier.Panic{"panic": {}, "fail fast": {FailFast: true}, "no panic": {Threshold: outlier.PercentOf(0)}} {
		c := evenkeel.Config{Policy: picker.RoundRobin{}, Limit: evenkeel.LimitConfig{Disabled: true},
			Outlier: &outlier.Config{MaxEjectionPercent: outlier.PercentOf(100), Panic: p}}
		pool := newPool(t, c, 3)
		end := origin.Add(10 * time.Second)
		served, back := time.Time{}, time.Time{}
		var last error
		for now := origin; now.Before(end.Add(20 * time.Second)); now = now.Add(10 * time.Millisecond) {
			pool.Sweep(now)
			k, err := pool.PickAt(now, evenkeel.Request{})
			if err != nil {
				last = err
				continue
			}
			r := evenkeel.Result{Outcome: evenkeel.Unreached}
			if !now.Before(end) {
				r.Outcome = evenkeel.Success
				if served.IsZero() {
					served = now
				}
			}
			k.DoneAt(now, r)
			if s := pool.StatsAt(now); s.Ready == 3 && !s.Panicking && now.After(end) && back.IsZero() {
				back = now
			}
		}
		if within := 9600*time.Millisecond + time.Second; served.IsZero() || served.Sub(end) > within || back.IsZero() || back.Sub(end) > within {
			t.Errorf("%s: served again after %v, all back after %v, want %v", name, served.Sub(end), back.Sub(end), within)
		}
		switch {
		case name != "fail fast" && last != nil: // without a panic one that is ejected is better than nobody
			t.Errorf("%s: %v", name, last)
		case name == "fail fast" && (!errors.Is(last, evenkeel.ErrPanic) || !strings.Contains(last.Error(), "too few endpoints")):
			t.Errorf("failing fast: %v", last)
		}
	}
}

// sharedPool is newPool with a source of randomness that goroutines may share.
func sharedPool(t *testing.T, c evenkeel.Config, n int) *evenkeel.Pool[int] {
	t.Helper()
	p, err := evenkeel.NewPool[int](c, evenkeel.Options{Start: origin})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.UpdateAt(origin, members(n)); err != nil {
		t.Fatal(err)
	}
	return p
}

// Bug 41: whoever checks tells the pool while it sweeps, publishes, or closes; no order of locks lets two of them wait for each other.
func TestBug41VerdictsOfChecksWhileThePoolCloses(t *testing.T) {
	rounds := 10_000
	if testcost.Race {
		rounds = 1000
	}
	watchdog := time.AfterFunc(time.Minute, func() {
		buf := make([]byte, 1<<20)
		panic("somebody waits for ever:\n" + string(buf[:runtime.Stack(buf, true)]))
	})
	defer watchdog.Stop()
	config := evenkeel.Config{Outlier: &outlier.Config{Soft: outlier.SoftConfig{ConsecutiveFailures: 1, ChecksReturn: true}}}
	for i := range rounds {
		p := sharedPool(t, config, 3)
		var wg sync.WaitGroup
		for _, do := range []func(){
			p.Close,
			func() {
				for _, s := range []evenkeel.State{evenkeel.Failing, evenkeel.Ready} {
					p.SetStates([]evenkeel.StateChange{{ID: "e0", State: s, Source: evenkeel.Checks}, {ID: "e1", State: s, Source: evenkeel.Checks}})
				}
			},
			func() { p.Sweep(origin.Add(time.Second)) },
			func() {
				if k, err := p.PickAt(origin, evenkeel.Request{}); err == nil {
					k.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Failure})
				}
			},
		} {
			wg.Go(do)
		}
		wg.Wait()
		p.Close()
		if _, err := p.PickAt(origin, evenkeel.Request{}); !errors.Is(err, evenkeel.ErrClosed) {
			t.Fatalf("round %d: %v after Close", i, err)
		}
		for _, e := range p.StatsAt(origin).Endpoints {
			if e.InFlight != 0 {
				t.Fatalf("round %d: %+v", i, e)
			}
		}
	}
}

// Bug 57: hooks run without locks, so that they may ask the pool anything, and once per change.
func TestBug57HooksMayCallBackAndComeOncePerChange(t *testing.T) {
	told := 0
	var p *evenkeel.Pool[int]
	p, err := evenkeel.NewPool[int](evenkeel.Config{}, evenkeel.Options{OnWarning: func(string) {
		told++
		if p == nil {
			return
		}
		_ = p.Stats()
		_ = p.Update(members(10))
		p.Drain("e1")
		p.Sweep(time.Now())
		if k, err := p.Pick(evenkeel.Request{}); err == nil {
			k.Done(evenkeel.Result{})
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	small := evenkeel.Config{Subset: &subset.Config{Size: 3, Seed: 1}}
	if err := p.Replace(small, members(10)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		p.Sweep(time.Now())
		if err := p.SetConfig(small); err != nil {
			t.Fatal(err)
		}
	}
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}

// Bug 58: Close is final and may be called again, by anybody, beside anything; whoever picks after it is told so.
func TestBug58CloseOfAPoolIsFinalWhateverRacesWithIt(t *testing.T) {
	rounds := 10_000
	if testcost.Race {
		rounds = 1000
	}
	for i := range rounds {
		p := sharedPool(t, evenkeel.Config{}, 3)
		var wg sync.WaitGroup
		wg.Go(p.Close)
		wg.Go(p.Close)
		wg.Go(func() { _ = p.UpdateAt(origin, members(1+i%5)) })
		wg.Go(func() { _ = p.SetConfigAt(origin, evenkeel.Config{Policy: picker.RoundRobin{}}) })
		wg.Go(func() {
			if k, err := p.PickAt(origin, evenkeel.Request{}); err == nil {
				k.DoneAt(origin, evenkeel.Result{})
			} else if !errors.Is(err, evenkeel.ErrClosed) {
				t.Errorf("round %d: %v", i, err)
			}
		})
		wg.Wait()
		if _, err := p.PickAt(origin, evenkeel.Request{}); !errors.Is(err, evenkeel.ErrClosed) {
			t.Fatalf("round %d: %v after Close", i, err)
		}
		if err := p.UpdateAt(origin, members(7)); !errors.Is(err, evenkeel.ErrClosed) {
			t.Fatalf("round %d: a list after Close: %v", i, err)
		}
	}
}
