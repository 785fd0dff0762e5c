package outlier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// take takes the permit of a host that must have one.
func (b *bench) take(id string) outlier.Token {
	b.t.Helper()
	token, ok := b.host(id).TryProbe(b.now)
	if !ok {
		b.t.Fatalf("at %v there is no permit for %s", time.Duration(b.now), id)
	}
	if !token.Probe() {
		b.t.Fatal("the token is no probe's")
	}
	return token
}

func (b *bench) at(d time.Duration) { b.now = int64(d) }

func (b *bench) wantState(id string, want outlier.State) {
	b.t.Helper()
	if got := b.host(id).State(b.now); got != want {
		b.t.Errorf("at %v %s is %v, want %v", time.Duration(b.now), id, got, want)
	}
}

func (b *bench) wantWait(id string, want time.Duration) {
	b.t.Helper()
	if got := b.d.Stats(b.index(id), b.now).Wait; got != want {
		b.t.Errorf("at %v %s waits %v, want %v", time.Duration(b.now), id, got, want)
	}
}

// 0.5 s · 2^k up to 8 s between probes that fail, one at a time.
func TestProbesBackOff(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	b.observe("a", outlier.Failed, 5)
	for _, want := range []time.Duration{500, 1000, 2000, 4000, 8000, 8000, 8000} {
		wait := want * time.Millisecond
		b.wantWait("a", wait)
		b.wantState("a", outlier.Ejected)
		b.now += int64(wait) - 1
		if _, ok := b.host("a").TryProbe(b.now); ok {
			t.Fatalf("a permit before %v are over", wait)
		}
		b.now++
		b.wantState("a", outlier.Probing)
		token := b.take("a")
		if _, ok := b.host("a").TryProbe(b.now); ok {
			t.Fatal("two at a time")
		}
		b.wantState("a", outlier.Probing)
		b.now += int64(20 * time.Millisecond)
		b.finish(b.host("a"), outlier.TimedOut, token)
	}
}

// The waits spread by a fifth in either direction.
func TestProbeWaitsAreSpread(t *testing.T) {
	for draw, want := range map[uint64]time.Duration{0: 400 * time.Millisecond, 1 << 63: 500 * time.Millisecond, ^uint64(0): 600 * time.Millisecond} {
		d, err := outlier.NewDetector(outlier.Config{}, func() uint64 { return draw }, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, d: d}
		b.update("a", "b")
		b.observe("a", outlier.Failed, 5)
		if got := d.Stats(0, 0).Wait; (got - want).Abs() > time.Microsecond {
			t.Errorf("draw %x: %v, want %v", draw, got, want)
		}
	}
}

// Three in a row bring it back, each sent when the one before has come; a failure among them begins anew.
func TestThreeGoodProbesBringBack(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	b.observe("a", outlier.Failed, 5)
	b.at(time.Second)
	for _, e := range []outlier.Event{outlier.Succeeded, outlier.Succeeded, outlier.Failed} {
		b.finish(b.host("a"), e, b.take("a"))
	}
	b.wantWait("a", time.Second)
	b.at(2 * time.Second)
	for range 2 {
		b.finish(b.host("a"), outlier.Succeeded, b.take("a"))
		b.wantState("a", outlier.Probing)
	}
	b.finish(b.host("a"), outlier.CallerFault, b.take("a"))
	b.wantState("a", outlier.Ramping)
	b.at(12 * time.Second)
	b.sweep()
	b.wantState("a", outlier.Available)
}

// A caller that left decides nothing: the permit is free at once. An endpoint that asks for less is asked
// again after the same wait, which does not grow.
func TestProbesWithoutAVerdictGiveTheirPermitBack(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	b.observe("a", outlier.Failed, 5)
	b.at(time.Second)
	b.finish(b.host("a"), outlier.Succeeded, b.take("a"))
	for range 10 {
		b.finish(b.host("a"), outlier.Ignored, b.take("a"))
		b.wantWait("a", 0)
	}
	for range 3 {
		b.finish(b.host("a"), outlier.Throttled, b.take("a"))
		b.wantWait("a", 500*time.Millisecond)
		b.now += int64(500 * time.Millisecond)
	}
	b.finish(b.host("a"), outlier.Succeeded, b.take("a"))
	b.finish(b.host("a"), outlier.Succeeded, b.take("a"))
	b.wantState("a", outlier.Ramping)
}

// A probe that never ends holds the place for 30 s, and counts as failed then. If it ends after
// all, it is a request like any other.
func TestALostProbeMakesRoomForAnother(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	b.observe("a", outlier.Failed, 5)
	b.at(time.Second)
	lost := b.take("a")
	b.at(30*time.Second + 999*time.Millisecond)
	b.sweep()
	if _, ok := b.host("a").TryProbe(b.now); ok {
		t.Error("another before its time is over")
	}
	b.at(31 * time.Second)
	b.sweep()
	b.wantWait("a", time.Second)
	b.at(32 * time.Second)
	second := b.take("a")
	b.finish(b.host("a"), outlier.Failed, lost) // must not decide the second
	b.wantState("a", outlier.Probing)
	b.wantWait("a", 0)
	if _, ok := b.host("a").TryProbe(b.now); ok {
		t.Error("the late one gave the second one's permit away")
	}
	b.finish(b.host("a"), outlier.Succeeded, second)
	b.finish(b.host("a"), outlier.Failed, second) // told twice: not a probe any more
	b.take("a")
}

// Requests that overflowed to an ejected endpoint, and those of a panic, are probes that cost nothing.
func TestOtherRequestsToAnEjectedEndpointCountForItsReturn(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	late := b.host("a").Token()
	b.observe("a", outlier.Failed, 5)
	for _, e := range []outlier.Event{outlier.Succeeded, outlier.Succeeded, outlier.Failed, outlier.Succeeded, outlier.Succeeded} {
		b.observe("a", e, 1)
		b.finish(b.host("a"), outlier.Succeeded, late) // of before the ejection
	}
	b.wantState("a", outlier.Ejected)
	b.observe("a", outlier.Succeeded, 1)
	b.wantState("a", outlier.Ramping)
}

// Requests that must not be sent twice are used as probes only if nothing else came for as long as
// the longest back-off.
func TestUnsafeRequestsProbeLast(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	b.observe("b", outlier.Failed, 5)
	for _, tc := range []struct {
		at           time.Duration
		safe, unsafe bool
	}{{0, false, false}, {499 * time.Millisecond, false, false}, {500 * time.Millisecond, true, false},
		{8499 * time.Millisecond, true, false}, {8500 * time.Millisecond, true, true}} {
		b.at(tc.at)
		if got := b.d.ProbeDue(b.now, true); got != tc.safe {
			t.Errorf("at %v due for a safe one: %v", tc.at, got)
		}
		if got := b.d.ProbeDue(b.now, false); got != tc.unsafe {
			t.Errorf("at %v due for another: %v", tc.at, got)
		}
	}
	b.now--
	if _, _, ok := b.d.Probe(b.now, false); ok {
		t.Error("another is taken too soon")
	}
	b.now++
	i, token, ok := b.d.Probe(b.now, false)
	if i != 1 || !ok || !token.Probe() {
		t.Errorf("got %d, %v", i, ok)
	}
	if b.d.ProbeDue(b.now, true) {
		t.Error("one is out, and another due")
	}
	if _, _, ok := b.d.Probe(b.now, true); ok {
		t.Error("two at a time")
	}
}

// Whoever has waited longest is probed first; one that fails its checks is not.
func TestProbeTakesTheOneThatWaitsLongest(t *testing.T) {
	b := newBench(t, outlier.Config{MaxEjectionPercent: all}, "a", "b", "c", "d", "e", "f")
	for i, id := range []string{"c", "a", "b"} {
		b.now = int64(i) * ms
		b.observe(id, outlier.Failed, 5)
	}
	b.d.SetStanding(b.index("c"), outlier.Failing, b.now)
	b.at(time.Second)
	for _, want := range []string{"a", "b"} {
		i, _, ok := b.d.Probe(b.now, true)
		if !ok || b.d.Stats(i, b.now).ID != want {
			t.Errorf("probed %d (%v), want %s", i, ok, want)
		}
	}
	if _, _, ok := b.d.Probe(b.now, true); ok || b.d.ProbeDue(b.now, true) {
		t.Error("one that fails its checks is probed")
	}
}

// On the ramp two failures are enough, and the back-off goes on where it was; after it all is as at first.
func TestFailingOnTheRampCostsMore(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	b.observe("a", outlier.Failed, 5)
	b.at(time.Second)
	b.observe("a", outlier.Succeeded, 3)
	b.wantState("a", outlier.Ramping)
	b.observe("a", outlier.Failed, 1)
	b.wantState("a", outlier.Ramping)
	b.observe("a", outlier.Failed, 1)
	b.wantState("a", outlier.Ejected)
	b.wantWait("a", time.Second)
	b.observe("a", outlier.Succeeded, 3)
	b.at(11 * time.Second)
	b.sweep()
	b.wantState("a", outlier.Available)
	b.observe("a", outlier.Failed, 4)
	b.wantState("a", outlier.Available)
	b.observe("a", outlier.Failed, 1)
	b.wantWait("a", 500*time.Millisecond)
}

// A client with two requests a second for ten endpoints has twenty of each after 100 s, which is
// too long; with eight a second it has them after 25 s.
func TestWindowStretchesForThinClients(t *testing.T) {
	for perSecond, want := range map[int]time.Duration{200: 10 * time.Second, 8: 30 * time.Second, 2: 0} {
		b := newBench(t, outlier.Config{}, idsUpTo(10)...)
		found := time.Duration(0)
		for i := range 90 * perSecond {
			b.now = int64(i) * int64(time.Second) / int64(perSecond)
			if b.now%int64(time.Second) == 0 {
				b.sweep()
			}
			host := i % 10
			e := outlier.Succeeded
			if host == 3 && i/10%2 == 0 { // every other one: never five in a row
				e = outlier.Failed
			}
			b.observe(fmt.Sprintf("h%d", host+1), e, 1)
			if len(b.ejected()) > 0 && found == 0 {
				found = time.Duration(b.now)
				b.wantEjected("the one that fails", "h4")
			}
		}
		if found != want {
			t.Errorf("%d requests a second: found after %v, want %v", perSecond, found, want)
		}
	}
}

// Failures that everybody has eject nobody.
func TestRatesAreComparedWithThePool(t *testing.T) {
	b := newBench(t, outlier.Config{}, idsUpTo(10)...)
	for i := range 6000 {
		b.now = int64(i) * int64(10*time.Millisecond)
		e := outlier.Succeeded
		if i/10%3 == 0 {
			e = outlier.Failed
		}
		b.observe(fmt.Sprintf("h%d", i%10+1), e, 1)
		if i%100 == 0 {
			b.sweep()
		}
	}
	b.wantEjected("a third of everybody's requests fail")
}

// What came between a result that asked for action and the action counts too.
func TestActLooksAgain(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	h := b.host("a")
	say := func(e outlier.Event, n int) (act bool) {
		for range n {
			act = h.Observe(e, h.Token(), b.now)
		}
		return act
	}
	if !say(outlier.Failed, 5) || say(outlier.Failed, 1) || say(outlier.Succeeded, 1) {
		t.Error("the fifth failure alone asks for action")
	}
	b.d.Act(h, b.now)
	b.wantEjected("a success in time")
	say(outlier.Failed, 5)
	b.sweep() // for an owner that forgot
	b.wantEjected("five failures", "a")
	if !say(outlier.Succeeded, 3) {
		t.Error("three successes do not ask for action")
	}
	say(outlier.Failed, 1)
	b.d.Act(h, b.now)
	b.wantEjected("a failure in time", "a")
	say(outlier.Succeeded, 3)
	b.sweep()
	b.wantEjected("three successes")
}

// Where more than half are on a ramp, or one is alone, ramps would leave too little.
func TestRampsAreSkippedWhereTheyLeaveTooLittle(t *testing.T) {
	b := newBench(t, outlier.Config{}, idsUpTo(5)...)
	for i, want := range []float64{0.1, 0.1, 1, 1, 1} {
		b.d.StartRamp(i, b.now)
		if got := b.d.RampFactor(0, b.now); got != want {
			t.Errorf("%d of 5 ramping: %v, want %v", i+1, got, want)
		}
	}
	b = newBench(t, outlier.Config{}, "a")
	b.d.StartRamp(0, 0)
	if got := b.d.RampFactor(0, 0); got != 1 {
		t.Errorf("one alone has %v", got)
	}
}

// In a panic an endpoint has its full share already, and where many fail those that are well are needed.
func TestNobodyRampsWhereManyFail(t *testing.T) {
	for failing, want := range map[int]outlier.State{3: outlier.Ramping, 5: outlier.Available, 6: outlier.Available} {
		b := newBench(t, outlier.Config{MaxEjectionPercent: all}, idsUpTo(10)...)
		for i := range failing {
			b.observe(fmt.Sprintf("h%d", i+1), outlier.Failed, 5)
		}
		b.at(time.Second)
		b.sweep()
		b.observe("h1", outlier.Succeeded, 3)
		if got := b.host("h1").State(b.now); got != want {
			t.Errorf("back while %d of 10 fail: %v, want %v", failing, got, want)
		}
	}
}

// Where requests may go when the others are full.
func TestEjectedListsWhoCanTakeAnOverflow(t *testing.T) {
	b := newBench(t, outlier.Config{}, idsUpTo(5)...)
	for _, id := range []string{"h2", "h4", "h5"} {
		b.observe(id, outlier.Failed, 5)
	}
	b.d.SetStanding(3, outlier.Unready, b.now)
	if got := fmt.Sprint(b.d.Ejected(nil)); got != "[1 4]" {
		t.Errorf("%s, want [1 4]", got)
	}
	if got := b.host("h2").Token().Epoch(); got != 1 {
		t.Errorf("a request there is of epoch %d, want 1", got)
	}
}
