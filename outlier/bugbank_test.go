package outlier_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

func capped(mode outlier.Mode, percent float64) outlier.Config {
	return outlier.Config{Mode: mode, MaxEjectionPercent: outlier.PercentOf(percent)}
}

func TestBug25CapHoldsAfterTheEjection(t *testing.T) {
	for _, mode := range []outlier.Mode{outlier.Soft, outlier.Envoy} {
		for _, tc := range []struct {
			percent float64
			want    int
		}{{50, 1}, {67, 2}, {34, 1}, {33, 0}} {
			b := newBench(t, capped(mode, tc.percent), "a", "b", "c")
			for _, id := range []string{"a", "b", "c"} {
				b.observe(id, outlier.Failed, 20)
			}
			if got := len(b.ejected()); got != tc.want {
				t.Errorf("%v: %d of 3 out with a cap of %v %%, want %d", mode, got, tc.percent, tc.want)
			}
		}
	}
}

func TestBug26SmallPoolsFollowTheCapAndOneIsNeverEjected(t *testing.T) {
	want := map[int]int{1: 0, 2: 0, 3: 0, 9: 0, 10: 1, 11: 1}
	for n, want := range want {
		for _, atLeast := range []bool{false, true} {
			c := capped(outlier.Soft, 10)
			c.AtLeastOne = atLeast
			b := newBench(t, c, idsUpTo(n)...)
			for _, id := range idsUpTo(n) {
				b.observe(id, outlier.Failed, 50)
			}
			if atLeast && n > 1 {
				want = 1
			}
			if got := len(b.ejected()); got != want {
				t.Errorf("n = %d, at least one %v: %d ejected, want %d", n, atLeast, got, want)
			}
		}
	}
}

// Three of ten fail everything: the mean less 1.9 deviations is below 0, the median is not moved.
func TestBug28ManyFailingEndpointsDoNotHideEachOther(t *testing.T) {
	run := func(c outlier.Config) *bench {
		b := newBench(t, c, idsUpTo(10)...)
		for i, id := range idsUpTo(10) {
			e := outlier.Succeeded
			if i < 3 {
				e = outlier.Failed
			}
			b.observe(id, e, 100)
		}
		b.at(10 * time.Second)
		b.sweep()
		return b
	}
	c := outlier.Config{}
	c.Soft.ConsecutiveFailures = outlier.Off
	run(c).wantEjected("by the median", "h1", "h2", "h3")
	c.MaxEjectionPercent, c.Mode = all, outlier.Envoy
	c.Envoy.Consecutive5xx = outlier.Off
	run(c).wantEjected("by the mean") // as documented
}

func TestBug29EndpointsRemovedWhileEjectedFreeTheirPlace(t *testing.T) {
	for _, mode := range []outlier.Mode{outlier.Soft, outlier.Envoy} {
		b := newBench(t, capped(mode, 34), "h1", "h2", "x0")
		for i := range 50 {
			b.observe(fmt.Sprint("x", i), outlier.Failed, 5)
			b.wantEjected(fmt.Sprint(mode, " round ", i), fmt.Sprint("x", i))
			b.now += ms
			b.update("h1", "h2", fmt.Sprint("x", i+1))
			b.wantEjected("removed")
		}
	}
}

// A check that always passes does not bring back what fails requests, unless asked to; and then the
// wait grows all the same.
func TestBug36AShallowCheckDoesNotUndoEjections(t *testing.T) {
	ignoring := map[string]outlier.Config{"soft": {}, "envoy": {Mode: outlier.Envoy, MaxEjectionPercent: all}}
	e := ignoring["envoy"]
	e.Envoy.IgnoreChecks = true
	ignoring["envoy"] = e
	for name, c := range ignoring {
		b := newBench(t, c, "a", "b", "c")
		b.observe("a", outlier.Failed, 5)
		b.d.CheckPassed(b.index("a"), b.now)
		b.wantEjected(name+" ignores checks", "a")
	}
	obeying := map[string]outlier.Config{"soft": {Soft: outlier.SoftConfig{ChecksReturn: true}}, "envoy": {Mode: outlier.Envoy, MaxEjectionPercent: all}}
	for name, c := range obeying {
		b := newBench(t, c, "a", "b", "c")
		last := time.Duration(0)
		for range 4 {
			b.observe("a", outlier.Failed, 5)
			wait := b.d.Stats(b.index("a"), b.now).Wait
			if wait <= last {
				t.Errorf("%s: it waits %v after %v", name, wait, last)
			}
			last = wait
			b.now += ms
			b.d.CheckPassed(b.index("a"), b.now)
			b.wantEjected(name + " obeys checks")
		}
	}
}

func TestBug37EjectionTimeDecays(t *testing.T) {
	for _, mode := range []outlier.Mode{outlier.Envoy, outlier.A50} {
		c := capped(mode, 100)
		c.A50.FailurePercentage = &outlier.FailurePercentage{MinHosts: 1, RequestVolume: 5}
		b := newBench(t, c, "a", "b")
		sweeps := func(d time.Duration) {
			for range int64(d / (10 * time.Second)) {
				b.now += int64(10 * time.Second)
				b.sweep()
			}
		}
		for range 20 {
			b.observe("a", outlier.Failed, 5)
			sweeps(24 * time.Hour)
		}
		b.observe("a", outlier.Failed, 5)
		sweeps(10 * time.Second)
		if s := b.d.Stats(0, b.now); s.Wait > 30*time.Second {
			t.Errorf("%v: after 20 ejections in 20 days it is out for %v", mode, s.Wait)
		}
		// And without any healthy time it stays within the bound.
		for range 50 {
			b.observe("a", outlier.Failed, 5)
			sweeps(10 * time.Second)
			if s := b.d.Stats(0, b.now); s.Wait > 300*time.Second {
				t.Fatalf("%v: out for %v", mode, s.Wait)
			}
			for len(b.ejected()) > 0 {
				sweeps(10 * time.Second)
			}
		}
	}
}

func TestBug39APlaceholderThatIsDownIsNoSecondEndpoint(t *testing.T) {
	for _, s := range []outlier.Standing{outlier.Failing, outlier.Unready, outlier.Drained} {
		b := newBench(t, outlier.Config{MaxEjectionPercent: all}, "a", "b")
		b.d.SetStanding(1, s, 0)
		b.observe("a", outlier.Failed, 100)
		b.wantEjected(fmt.Sprint("beside one that is ", s))
	}
}

// Three endpoints fail for ten seconds, all of them, and recover: so does the pool within the wait and a second.
func TestBug40APoolThatWasAllOutRecoversByItself(t *testing.T) {
	for _, c := range []outlier.Config{{}, {MaxEjectionPercent: all}, {MaxEjectionPercent: all, Panic: outlier.Panic{Threshold: outlier.PercentOf(0)}}} {
		b := newBench(t, c, "a", "b", "c")
		end := int64(10 * time.Second)
		back := int64(0)
		for b.now = 0; b.now < 30*int64(time.Second) && back == 0; b.now += 10 * ms {
			e := outlier.Unreached
			if b.now >= end {
				e = outlier.Succeeded
			}
			if i, token, ok := b.d.Probe(b.now, true); ok {
				b.finish(b.d.Host(i), e, token)
			} else if list := b.d.Available(nil); len(list) > 0 {
				h := b.d.Host(int(list[b.now/ms/10%int64(len(list))]))
				b.finish(h, e, h.Token())
			}
			b.sweep()
			if b.now >= end && len(b.d.Available(nil)) == 3 && !b.d.Panicking() {
				back = b.now
			}
		}
		if took := time.Duration(back - end); back == 0 || took > 9*time.Second {
			t.Errorf("%+v: all back after %v", c.Panic, took)
		}
	}
}

func TestBug42JitterIsRefusedAboveOne(t *testing.T) {
	for _, jitter := range []float64{3, 1.0001, -0.1, math.NaN(), math.Inf(1)} {
		_, err := outlier.NewDetector(outlier.Config{Soft: outlier.SoftConfig{ProbeJitter: jitter}}, nil, 0)
		if err == nil || !strings.Contains(err.Error(), "ProbeJitter") {
			t.Errorf("jitter %v: %v", jitter, err)
		}
	}
	// Whatever is drawn, a wait with the most jitter is not negative.
	for _, draw := range []uint64{0, 1, ^uint64(0)} {
		d, err := outlier.NewDetector(outlier.Config{Soft: outlier.SoftConfig{ProbeJitter: 1}}, func() uint64 { return draw }, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, d: d}
		b.update("a", "b")
		b.observe("a", outlier.Failed, 5)
		if w := d.Stats(0, 0).Wait; w < 0 || w > time.Second {
			t.Errorf("draw %x waits %v", draw, w)
		}
	}
}

// Two sources, one says up and one says down: the worse one counts.
func TestBug44TheWorseOfTwoSourcesWins(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	b.observe("a", outlier.Failed, 5)
	b.d.CheckPassed(0, 0) // checks like it, requests do not
	if got := fmt.Sprint(b.d.Available(nil)); got != "[1 2]" {
		t.Errorf("%s may be picked", got)
	}
	b.d.SetStanding(0, outlier.Failing, 0) // now neither does
	b.observe("a", outlier.Succeeded, 3)   // requests like it, checks do not
	b.wantState("a", outlier.Ramping)
	if got := fmt.Sprint(b.d.Available(nil)); got != "[1 2]" {
		t.Errorf("%s may be picked", got)
	}
	b.d.SetStanding(0, outlier.Usable, 0)
	if got := fmt.Sprint(b.d.Available(nil)); got != "[0 1 2]" {
		t.Errorf("%s may be picked", got)
	}
}

func TestBug32RejectionsOfOurOwnAreNobodysFailure(t *testing.T) {
	for _, mode := range modes {
		c := capped(mode, 100)
		c.A50.FailurePercentage = &outlier.FailurePercentage{MinHosts: 1, RequestVolume: 1}
		b := newBench(t, c, "a", "b", "c")
		for i := range 1000 { // a full limiter for 10 s, beside some traffic
			b.observe("a", outlier.EventOf(picker.Unknown), 3)
			b.observe("b", outlier.EventOfGRPC(8, picker.GRPCFacts{}), 3) // RESOURCE_EXHAUSTED before anything was sent
			b.observe("c", outlier.EventOfGRPC(1, picker.GRPCFacts{CallerLeft: true, BytesSent: true}), 3)
			b.observe([]string{"a", "b", "c"}[i%3], outlier.Succeeded, 1)
			b.now += 10 * ms
			b.sweep()
		}
		b.now += int64(10 * time.Second)
		b.sweep()
		b.wantEjected(mode.String())
	}
}

// Ramps are each endpoint's own: others that join or ramp do not end them, and one that goes down and up again has its own.
func TestBug48RampsAreEachEndpointsOwn(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c", "d", "e")
	back := func(id string) {
		b.observe(id, outlier.Failed, 5)
		b.observe(id, outlier.Succeeded, 3)
	}
	factor := func(id string, want float64) {
		t.Helper()
		b.sweep()
		if got := b.d.RampFactor(b.index(id), b.now); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v %s has %v, want %v", time.Duration(b.now), id, got, want)
		}
	}
	b.at(20 * time.Second)
	back("a")
	b.at(24 * time.Second)
	factor("a", 0.4)
	b.update("n1", "n2", "a", "b", "c", "d", "e")
	back("b")
	factor("a", 0.4)
	factor("b", 0.1)
	b.at(26 * time.Second)
	b.d.SetStanding(b.index("b"), outlier.Failing, b.now)
	b.at(28 * time.Second)
	b.d.SetStanding(b.index("b"), outlier.Usable, b.now)
	factor("a", 0.8)
	factor("b", 0.1)
	b.at(30 * time.Second)
	factor("a", 1)
	factor("b", 0.2)
	factor("n1", 1)
}
