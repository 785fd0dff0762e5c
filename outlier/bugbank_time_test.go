package outlier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// One of three swallows requests, which time out after a second: it is out within 15 s, and traffic moves.
func TestBug55ABlackHoleIsEjectedByItsTimeouts(t *testing.T) {
	for perSecond, within := range map[int]time.Duration{100: 2 * time.Second, 3: 15 * time.Second, 1: 20 * time.Second} {
		b := newBench(t, outlier.Config{}, "a", "b", "c")
		type hung struct {
			at int64
			tk outlier.Token
		}
		var waiting []hung
		out := time.Duration(-1)
		for i := range 60 * perSecond {
			b.now = int64(i) * int64(time.Second) / int64(perSecond)
			for len(waiting) > 0 && waiting[0].at+int64(time.Second) <= b.now {
				b.finish(b.host("a"), outlier.TimedOut, waiting[0].tk)
				waiting = waiting[1:]
			}
			b.sweep()
			list := b.d.Available(nil)
			if len(list) < 3 {
				out = time.Duration(b.now)
				break
			}
			if i%3 == 0 {
				waiting = append(waiting, hung{b.now, b.host("a").Token()})
			} else {
				b.observe([]string{"a", "b", "c"}[i%3], outlier.Succeeded, 1)
			}
		}
		if out < 0 || out > within {
			t.Errorf("%d requests a second: out after %v, want %v", perSecond, out, within)
		}
	}
}

// Whoever listens hears once of each change, however many failures or successes come.
func TestBug57OneChangeIsToldOnce(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	told := 0
	tell := func(e outlier.Event, n int) {
		h := b.host("a")
		token := h.Token()
		for range n {
			if h.Observe(e, token, b.now) {
				told += len(b.d.Act(h, b.now))
			}
		}
		_, changes := b.d.Sweep(b.now)
		told += len(changes)
	}
	tell(outlier.Failed, 20)
	if told != 1 {
		t.Errorf("20 failures are told %d times", told)
	}
	tell(outlier.Succeeded, 20)
	if told != 2 {
		t.Errorf("20 failures and 20 successes are told %d times", told)
	}
}

// A clock that steps back by an hour does not freeze ejections, and one that steps forward does not do more than an
// hour would.
func TestBug63ClockStepsNeitherFreezeNorHurry(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour, 48 * time.Hour, -48 * time.Hour} {
		base := int64(100 * time.Hour)
		for _, mode := range []outlier.Mode{outlier.Soft, outlier.Envoy} {
			d, err := outlier.NewDetector(capped(mode, 100), middle, base)
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{t: t, d: d, now: base}
			b.update("a", "b", "c")
			b.observe("a", outlier.Failed, 5)
			b.now += int64(time.Second) / 10
			b.sweep()
			b.now += int64(step)
			b.sweep()
			wait := d.Stats(0, b.now).Wait
			bound := map[outlier.Mode]time.Duration{outlier.Soft: 500 * time.Millisecond, outlier.Envoy: 30 * time.Second}[mode]
			if step < 0 && (wait > bound || wait < bound-time.Second/10) {
				t.Errorf("%v: after a step of %v it waits %v, want about %v", mode, step, wait, bound)
			}
			if step > 0 && wait != 0 {
				t.Errorf("%v: after a step of %v it waits %v", mode, step, wait)
			}
			for range 60 {
				b.now += int64(time.Second)
				b.sweep()
				if i, token, ok := d.Probe(b.now, true); ok {
					b.finish(d.Host(i), outlier.Succeeded, token)
				}
			}
			b.wantEjected(fmt.Sprint(mode, " a minute after a step of ", step))
		}
	}
}

// A gap of two days, such as a sleeping laptop's, is an hour: who is out for two is still out after it.
func TestBug63AGapCountsAsAnHourAtMost(t *testing.T) {
	c := capped(outlier.Envoy, 100)
	c.BaseEjectionTime = 90 * time.Minute
	b := newBench(t, c, "a", "b")
	b.observe("a", outlier.Failed, 5)
	b.now += int64(48 * time.Hour)
	b.sweep()
	b.wantEjected("after the first gap", "a")
	if got := b.d.Stats(0, b.now).Wait; got != 30*time.Minute {
		t.Errorf("it waits %v more, want 30m", got)
	}
	b.now += int64(48 * time.Hour)
	b.sweep()
	b.wantEjected("after the second")
}

// Results of requests that began before an ejection do not mix with what is learnt after it.
func TestBug64ResultsOfAnotherEpochAreDropped(t *testing.T) {
	for _, mode := range modes {
		c := capped(mode, 100)
		c.A50.FailurePercentage = &outlier.FailurePercentage{MinHosts: 1, RequestVolume: 5}
		b := newBench(t, c, "a", "b", "c")
		old := b.host("a").Token()
		b.observe("a", outlier.Failed, 5)
		b.at(10 * time.Second)
		b.sweep()
		b.wantEjected(mode.String(), "a")
		for range 100 { // neither do they bring it back …
			b.finish(b.host("a"), outlier.Succeeded, old)
		}
		b.wantEjected(mode.String()+" after old successes", "a")
		for range 1000 { // … nor eject it again, at any time
			b.finish(b.host("a"), outlier.Failed, old)
			b.now += int64(time.Second)
			b.sweep()
			if i, token, ok := b.d.Probe(b.now, true); ok {
				b.finish(b.d.Host(i), outlier.Succeeded, token)
			}
		}
		b.wantEjected(mode.String() + " after old failures")
		if got := b.host("a").Epoch(); got != 1 {
			t.Errorf("%v: it was ejected %d times", mode, got)
		}
	}
}
