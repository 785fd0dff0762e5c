package evenkeel_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

func TestAlwaysFailingSinceTheStartIsNotPreferred(t *testing.T) {
	for _, policy := range []evenkeel.Policy{nil, picker.P2C{}, picker.P2C{Signal: picker.PeakHold}} {
		for _, n := range []int{2, 10} {
			for _, bad := range []evenkeel.Outcome{evenkeel.Failure, evenkeel.Unreached, evenkeel.Unknown} {
				p := newPool(t, evenkeel.Config{Policy: policy}, n)
				got := make([]int, n)
				for i := range 100 * 1200 { // twenty minutes at 100/s
					now := origin.Add(time.Duration(i) * 10 * time.Millisecond)
					if i%100 == 0 {
						p.Sweep(now)
					}
					k, _ := p.PickAt(now, evenkeel.Request{})
					got[k.Handle()]++
					outcome := evenkeel.Success
					if k.Handle() == 1 {
						outcome = bad
					}
					k.DoneAt(now.Add(time.Millisecond), evenkeel.Result{Outcome: outcome})
				}
				most := 120_000 / n / 10
				if bad == evenkeel.Unknown { // of which nothing is ever known
					most = 2 * 120_000 / n
				}
				if got[1] > most {
					t.Errorf("%v, n = %d: the one that answers only %v got %d of 120,000", policy, n, bad, got[1])
				}
			}
		}
	}
}

func TestALeakIsForgivenOnceByClocklessPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := evenkeel.NewPool[int](evenkeel.Config{Policy: picker.RoundRobin{}}, evenkeel.Options{})
		_ = p.Update(members(1))
		long, _ := p.Pick(evenkeel.Request{})
		for range 11 * 60 {
			time.Sleep(time.Second)
			p.Sweep(time.Now())
		}
		for range 100 {
			k, _ := p.Pick(evenkeel.Request{})
			k.Done(evenkeel.Result{})
		}
		long.Done(evenkeel.Result{})
		p.Sweep(time.Now())
		if e := p.Stats().Endpoints[0]; e.InFlight != 0 || e.Leaked != 0 {
			t.Errorf("in flight %d, leaked %d at rest", e.InFlight, e.Leaked)
		}
	})
}

func TestDoneOnACopyHarmsNobodyElse(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 2)
	k, _ := p.PickAt(origin, evenkeel.Request{})
	k.FirstByteAt(origin)
	c := k
	k.DoneAt(origin, evenkeel.Result{})
	c.DoneAt(origin, evenkeel.Result{})
	for range 100 {
		k, err := p.PickAt(origin, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		k.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
	}
	for _, e := range p.StatsAt(origin).Endpoints {
		if e.InFlight != 0 || e.Picks < 30 {
			t.Errorf("%+v: want nothing in flight, and about half of the picks", e)
		}
	}
}

func TestRecordOutlivesTombstoneWhileAStreamIsOpen(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 1)
	_, _ = p.PickAt(origin, evenkeel.Request{Kind: picker.Stream})
	_ = p.UpdateAt(origin.Add(time.Second), nil)
	p.Sweep(origin.Add(62 * time.Second))
	_ = p.UpdateAt(origin.Add(63*time.Second), members(1))
	if n := p.Stats().Endpoints[0].InFlight; n != 1 {
		t.Errorf("in flight %d, want 1", n)
	}
}

func TestOneInstantFarAheadDoesNotStarveForEver(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 3)
	k, _ := p.PickAt(origin, evenkeel.Request{})
	bad, n := k.Handle(), 0
	k.DoneAt(origin.AddDate(20, 0, 0), evenkeel.Result{Outcome: evenkeel.Success})
	for i := range 360000 {
		now := origin.Add(2*time.Hour + time.Duration(i)*20*time.Millisecond)
		k, _ := p.PickAt(now, evenkeel.Request{})
		if k.Handle() == bad {
			n++
		}
		k.DoneAt(now.Add(time.Millisecond), evenkeel.Result{Outcome: evenkeel.Success})
		if i%50 == 0 {
			p.Sweep(now)
		}
	}
	if n == 0 {
		t.Error("never picked again in two hours")
	}
}

func TestTypedNilsAreErrors(t *testing.T) {
	for _, c := range []evenkeel.Config{
		{Policy: (*picker.P2C)(nil)},
		{Policy: picker.P2C{Signal: (*picker.LoadTable)(nil)}},
	} {
		if _, err := evenkeel.NewPool[int](c, evenkeel.Options{}); err == nil || !strings.Contains(err.Error(), "is a nil *picker.") {
			t.Errorf("%#v: %v", c, err)
		}
	}
}

func TestErrorsOfHugeIDsAreShort(t *testing.T) {
	list := members(20)
	for i := range list {
		list[i].ID = strings.Repeat("x", 1<<20)
	}
	p := newPool(t, evenkeel.Config{}, 1)
	if err := p.Update(list); err == nil || len(err.Error()) > 10_000 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}
