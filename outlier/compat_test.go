package outlier_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

func idsUpTo(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("h%d", i+1)
	}
	return ids
}

var all = outlier.PercentOf(100)

// Envoy draws the jitter of each ejection anew, from 0 to the most, on top of the time.
func TestEnvoyEjectionsLastLongerByTheirJitter(t *testing.T) {
	for _, tc := range []struct {
		draw uint64
		want time.Duration
	}{{0, 30 * time.Second}, {1 << 63, 35 * time.Second}, {^uint64(0), 40*time.Second - 1}} {
		d, err := outlier.NewDetector(outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: all, MaxEjectionJitter: 10 * time.Second},
			func() uint64 { return tc.draw }, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, d: d}
		b.update("a")
		b.observe("a", outlier.Failed, 5)
		if got := d.Stats(0, 0).Wait; got > tc.want || got < tc.want-time.Microsecond {
			t.Errorf("draw %x: out for %v, want %v", tc.draw, got, tc.want)
		}
	}
}

// Of verdicts that are enforced to 30 %, as many count, and the others are counted.
func TestEnforcementIsAShareOfTheVerdicts(t *testing.T) {
	c := outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: all, Interval: time.Second, BaseEjectionTime: time.Second}
	c.Envoy.EnforceConsecutive5xx = outlier.PercentOf(30)
	d, err := outlier.NewDetector(c, rand.New(rand.NewPCG(3, 3)).Uint64, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, d: d}
	b.update("a")
	out := 0
	const rounds = 2000
	for range rounds {
		b.observe("a", outlier.Failed, 5)
		out += len(b.ejected())
		b.d.CheckPassed(0, b.now)
	}
	if out < 530 || out > 670 { // 600 ± 3.4 standard deviations
		t.Errorf("%d of %d were enforced, want 30 %%", out, rounds)
	}
	if got := d.Stats(0, 0).Unenforced; got != uint64(rounds-out) {
		t.Errorf("%d count as not enforced, want %d", got, rounds-out)
	}
}

func splitConfig() outlier.Config {
	c := outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: all}
	c.Envoy.SplitLocalOrigin = true
	c.Envoy.Consecutive5xx, c.Envoy.ConsecutiveGateway, c.Envoy.ConsecutiveLocal = outlier.Off, outlier.Off, outlier.Off
	return c
}

// Failures to connect have a success rate and a percentage of their own.
func TestEnvoyJudgesLocalOriginByItself(t *testing.T) {
	load := func(b *bench, e, well outlier.Event) {
		for i, id := range idsUpTo(6) {
			b.observe(id, well, 100)
			if i == 0 {
				b.observe(id, e, 900)
			}
		}
		b.now += int64(10 * time.Second)
		b.sweep()
	}
	t.Run("success rate", func(t *testing.T) {
		b := newBench(t, splitConfig(), idsUpTo(6)...)
		load(b, outlier.Unreached, outlier.Connected)
		b.wantEjected("by rate", "h1")
		if got := b.d.Stats(0, 0).Reason; got != outlier.LowLocalSuccessRate {
			t.Errorf("for its %v", got)
		}
	})
	t.Run("success rate not enforced", func(t *testing.T) {
		c := splitConfig()
		c.Envoy.EnforceLocalSuccessRate = outlier.PercentOf(0)
		b := newBench(t, c, idsUpTo(6)...)
		load(b, outlier.Unreached, outlier.Connected)
		b.wantEjected("not enforced")
	})
	t.Run("percentage", func(t *testing.T) {
		c := splitConfig()
		c.Envoy.EnforceLocalSuccessRate = outlier.PercentOf(0)
		c.Envoy.EnforceLocalFailurePercentage = all
		b := newBench(t, c, idsUpTo(6)...)
		load(b, outlier.TimedOut, outlier.Connected)
		b.wantEjected("by percentage", "h1")
		if got := b.d.Stats(0, 0).Reason; got != outlier.HighLocalFailurePercentage {
			t.Errorf("for its %v", got)
		}
	})
	t.Run("answers", func(t *testing.T) {
		b := newBench(t, splitConfig(), idsUpTo(6)...)
		load(b, outlier.Failed, outlier.Succeeded)
		b.wantEjected("by rate", "h1")
		if got := b.d.Stats(0, 0).Reason; got != outlier.LowSuccessRate {
			t.Errorf("for its %v", got)
		}
	})
}

// "At or above" in Envoy, "above" in gRFC A50.
func TestFailurePercentageAtTheLimit(t *testing.T) {
	for _, mode := range []outlier.Mode{outlier.Envoy, outlier.A50} {
		c := outlier.Config{Mode: mode, MaxEjectionPercent: all}
		c.Envoy.Consecutive5xx = outlier.Off
		c.Envoy.SuccessRate.Enforce = outlier.PercentOf(0)
		c.Envoy.FailurePercentage.Enforce = all
		c.A50.FailurePercentage = &outlier.FailurePercentage{}
		b := newBench(t, c, idsUpTo(5)...)
		for _, id := range idsUpTo(5) {
			b.observe(id, outlier.Succeeded, 85)
		}
		b.observe("h2", outlier.Failed, 482) // 85.009 %
		b.observe("h3", outlier.Failed, 481) // 84.98 %
		b.now = int64(10 * time.Second)
		b.sweep()
		b.wantEjected(mode.String()+" near the limit", "h2")

		b = newBench(t, c, idsUpTo(5)...)
		for _, id := range idsUpTo(5) {
			b.observe(id, outlier.Succeeded, 15)
		}
		for _, id := range idsUpTo(5)[:4] {
			b.observe(id, outlier.Succeeded, 85)
		}
		b.observe("h5", outlier.Failed, 85)
		b.now = int64(10 * time.Second)
		b.sweep()
		if mode == outlier.Envoy {
			b.wantEjected("envoy at the limit", "h5")
		} else {
			b.wantEjected("a50 at the limit")
		}
	}
}

// In the compatible modes what is known dies with the member, one of one can be ejected, and
// nothing is ever probed or ramped.
func TestCompatibleModesAreStrict(t *testing.T) {
	b := newBench(t, outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: all}, "a")
	b.observe("a", outlier.Failed, 5)
	b.wantEjected("one of one", "a")
	b.now = int64(time.Minute)
	if b.d.ProbeDue(b.now, true) {
		t.Error("a probe is due")
	}
	if _, _, ok := b.d.Probe(b.now, true); ok {
		t.Error("there is a probe")
	}
	if _, ok := b.host("a").TryProbe(b.now); ok {
		t.Error("there is a permit")
	}
	b.observe("a", outlier.Succeeded, 100)
	b.wantEjected("successes do not bring it back", "a")
	b.update()
	b.update("a")
	b.wantEjected("gone and back")
	if got := b.d.Stats(0, b.now); got.Multiplier != 0 || got.Epoch != 0 {
		t.Errorf("it still knows %+v", got)
	}
	b.observe("a", outlier.Failed, 5)
	b.now += int64(30 * time.Second)
	b.sweep()
	if got := b.host("a").State(b.now); got != outlier.Available {
		t.Errorf("after its time it is %v, want no ramp", got)
	}
	if f := b.d.RampFactor(0, b.now); f != 1 {
		t.Errorf("its factor is %v", f)
	}
	for _, ch := range b.d.StartRamp(0, b.now) {
		t.Errorf("a ramp begins: %+v", ch)
	}
}

// There is no guard against mass failure: all time out, and as many go as the cap allows.
func TestEnvoyEjectsForTimeoutsThatAllHave(t *testing.T) {
	b := newBench(t, outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: all}, idsUpTo(4)...)
	for range 5 {
		for _, id := range idsUpTo(4) {
			b.observe(id, outlier.TimedOut, 1)
		}
	}
	if n := len(b.ejected()); n != 4 {
		t.Errorf("%d are out, want 4", n)
	}
}

// Results go on counting while ejected: A50 judges by them, and a run that began there is
// forgotten with the return.
func TestResultsCountWhileEjectedInTheCompatibleModes(t *testing.T) {
	c := outlier.Config{Mode: outlier.A50, MaxEjectionPercent: all}
	c.A50.FailurePercentage = &outlier.FailurePercentage{MinHosts: 5, RequestVolume: 10}
	b := newBench(t, c, idsUpTo(5)...)
	round := func(bad string) {
		for _, id := range idsUpTo(5) {
			e := outlier.Succeeded
			if id == bad {
				e = outlier.Failed
			}
			b.observe(id, e, 10)
		}
		b.now += int64(10 * time.Second)
		b.sweep()
	}
	round("h1")
	b.wantEjected("the first", "h1")
	round("h2") // five with the volume only if h1 is one of them
	b.wantEjected("the second", "h1", "h2")

	e := newBench(t, outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: all}, "a", "b")
	e.observe("a", outlier.Failed, 5)
	e.observe("a", outlier.Failed, 4)
	e.now = int64(30 * time.Second)
	e.sweep()
	e.wantEjected("time is served")
	e.observe("a", outlier.Failed, 4)
	e.wantEjected("a new run is needed")
	e.observe("a", outlier.Failed, 1)
	e.wantEjected("which is now full", "a")
}

// A50 takes every status but OK for a failure, Envoy what HTTP calls a server error; a caller
// that left is nobody's.
func TestEventsOfTheModes(t *testing.T) {
	server := picker.GRPCFacts{BytesSent: true, BytesReceived: true}
	for _, tc := range []struct {
		e                outlier.Event
		soft, envoy, a50 string // good, bad, or nothing
	}{
		{outlier.EventOfHTTP(200, false), "good", "good", "good"},
		{outlier.EventOfHTTP(302, false), "good", "good", "good"},
		{outlier.EventOfHTTP(404, false), "good", "good", "bad"},
		{outlier.EventOfHTTP(429, false), "nothing", "good", "bad"},
		{outlier.EventOfHTTP(500, false), "bad", "bad", "bad"},
		{outlier.EventOfHTTP(501, false), "good", "bad", "bad"},
		{outlier.EventOfHTTP(502, true), "bad", "bad", "bad"},
		{outlier.EventOfHTTP(503, true), "nothing", "bad", "bad"},
		{outlier.EventOfHTTP(599, false), "bad", "bad", "bad"},
		{outlier.EventOfHTTP(0, false), "nothing", "nothing", "nothing"},
		{outlier.EventOfHTTP(600, false), "nothing", "nothing", "nothing"},
		{outlier.EventOfGRPC(0, server), "good", "good", "good"},
		{outlier.EventOfGRPC(0, picker.GRPCFacts{}), "nothing", "nothing", "nothing"},
		{outlier.EventOfGRPC(1, server), "nothing", "good", "bad"},
		{outlier.EventOfGRPC(1, picker.GRPCFacts{CallerLeft: true, BytesSent: true}), "nothing", "nothing", "nothing"},
		{outlier.EventOfGRPC(5, server), "good", "good", "bad"},
		{outlier.EventOfGRPC(8, server), "nothing", "good", "bad"},
		{outlier.EventOfGRPC(8, picker.GRPCFacts{}), "nothing", "nothing", "nothing"},
		{outlier.EventOfGRPC(13, server), "bad", "bad", "bad"},
		{outlier.EventOfGRPC(14, server), "bad", "bad", "bad"},
		{outlier.EventOfGRPC(14, picker.GRPCFacts{}), "bad", "bad", "bad"},
		{outlier.EventOfGRPC(4, server), "bad", "bad", "bad"},
		{outlier.EventOf(picker.Timeout), "bad", "bad", "bad"},
		{outlier.EventOf(picker.Canceled), "nothing", "nothing", "nothing"},
		{outlier.EventOf(picker.Outcome(200)), "nothing", "nothing", "nothing"},
		{outlier.Event(200), "nothing", "nothing", "nothing"},
	} {
		for mode, want := range map[outlier.Mode]string{outlier.Soft: tc.soft, outlier.Envoy: tc.envoy, outlier.A50: tc.a50} {
			if got := effectIn(t, mode, tc.e); got != want {
				t.Errorf("%v in %v is %s, want %s", tc.e, mode, got, want)
			}
		}
	}
}

// effectIn tells what an event does from what becomes of the endpoint.
func effectIn(t *testing.T, mode outlier.Mode, e outlier.Event) string {
	t.Helper()
	c := outlier.Config{Mode: mode, MaxEjectionPercent: all}
	c.Envoy.SuccessRate.Enforce = outlier.PercentOf(0)
	c.A50.FailurePercentage = &outlier.FailurePercentage{Threshold: outlier.PercentOf(40), MinHosts: 1, RequestVolume: 9}
	b := newBench(t, c, "a", "b")
	if mode == outlier.A50 { // of nine requests or ten, four fail or five
		b.observe("a", outlier.Failed, 4)
		b.observe("a", outlier.Succeeded, 4)
		b.observe("a", e, 2)
		b.now = int64(10 * time.Second)
		b.sweep()
		switch {
		case len(b.ejected()) == 1:
			return "bad" // 6 of 10
		}
		b = newBench(t, c, "a", "b")
		b.observe("a", outlier.Failed, 8)
		b.observe("a", e, 1)
		b.now = int64(10 * time.Second)
		b.sweep()
		if len(b.ejected()) == 1 {
			return "good" // it made nine of eight
		}
		return "nothing"
	}
	b.observe("a", outlier.Failed, 4)
	b.observe("a", e, 1)
	if len(b.ejected()) == 1 {
		return "bad"
	}
	b.observe("a", outlier.Failed, 1)
	if len(b.ejected()) == 1 {
		return "nothing"
	}
	return "good"
}

// Runs begin anew when their limits change: in Envoy that is a new cluster.
func TestRunsBeginAnewWithOtherLimits(t *testing.T) {
	for mode, outAfter := range map[outlier.Mode]int{outlier.Soft: 3, outlier.Envoy: 3} {
		c := outlier.Config{Mode: mode, MaxEjectionPercent: all}
		b := newBench(t, c, "a", "b")
		b.observe("a", outlier.Failed, 4)
		c.Soft.ConsecutiveFailures, c.Envoy.Consecutive5xx = 3, 3
		if _, err := b.d.SetConfig(c, b.now); err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; len(b.ejected()) == 0 && n < 10; n++ {
			b.observe("a", outlier.Failed, 1)
		}
		if n != outAfter {
			t.Errorf("%v: out after %d more failures, want %d", mode, n, outAfter)
		}
	}
}

// Who takes part in Envoy's percentages is settled before the success rate ejects: with five that take part and
// one of them ejected there are still five.
func TestEnvoyPercentagesTakeThoseWhoWereInBefore(t *testing.T) {
	c := outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: all}
	c.Envoy.Consecutive5xx = outlier.Off
	c.Envoy.SuccessRate.StdevFactor = 1.2
	c.Envoy.FailurePercentage.Enforce = all
	b := newBench(t, c, idsUpTo(5)...)
	b.observe("h1", outlier.Failed, 100)
	b.observe("h2", outlier.Failed, 86)
	b.observe("h2", outlier.Succeeded, 14)
	for _, id := range idsUpTo(5)[2:] {
		b.observe(id, outlier.Succeeded, 100)
	}
	b.at(10 * time.Second)
	b.sweep()
	b.wantEjected("both", "h1", "h2")
	for i, want := range []outlier.Reason{outlier.LowSuccessRate, outlier.HighFailurePercentage} {
		if got := b.d.Stats(i, b.now).Reason; got != want {
			t.Errorf("h%d for its %v, want %v", i+1, got, want)
		}
	}
}

// Envoy's multiplier stops at what has an effect, so that it does not take hours to decay.
func TestEnvoyMultiplierStopsGrowing(t *testing.T) {
	b := newBench(t, outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: all}, "a", "b")
	for range 40 {
		b.observe("a", outlier.Failed, 5)
		b.d.CheckPassed(0, b.now)
	}
	if got := b.d.Stats(0, b.now).Multiplier; got != 11 { // 30 s · 11 is the first that is not below 300 s + 30 s
		t.Errorf("after 40 ejections it is %d, want 11", got)
	}
}
