package outlier_test

import (
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// While more than 40 % fail at once timeouts eject nobody, fast failures do; with fewer they do too.
func TestTimeoutsDoNotEjectInAMassFailure(t *testing.T) {
	for failing, spared := range map[int]bool{1: false, 4: false, 5: true, 10: true} {
		for _, e := range []outlier.Event{outlier.TimedOut, outlier.Unreached} {
			b := newBench(t, outlier.Config{}, idsUpTo(10)...)
			for range 20 {
				for _, id := range idsUpTo(10)[:failing] {
					b.observe(id, e, 1)
				}
				b.now += 100 * ms
				b.sweep()
			}
			want := failing
			if spared && e == outlier.TimedOut {
				want = 0
			}
			if got := len(b.ejected()); got != want {
				t.Errorf("%d of 10 %v: %d ejected, want %d", failing, e, got, want)
			}
			if b.d.Distressed() != spared {
				t.Errorf("%d of 10 %v: distress is %v", failing, e, b.d.Distressed())
			}
		}
	}
}

// The first of many cannot be told from a single one. When the others show, it comes back, and those that
// failed fast do not.
func TestWhoWasEjectedForTimeoutsBeforeAMassFailureIsPardoned(t *testing.T) {
	b := newBench(t, outlier.Config{}, idsUpTo(5)...)
	b.observe("h1", outlier.Unreached, 5)
	b.observe("h2", outlier.TimedOut, 5)
	b.wantEjected("two", "h1", "h2")
	b.now += int64(time.Second)
	b.observe("h3", outlier.TimedOut, 5) // three of five
	b.wantEjected("then many", "h1")
	b.wantState("h2", outlier.Available)
	if got := b.d.Stats(b.index("h2"), b.now); got.Spared != 1 || got.ProbesFailed != 0 {
		t.Errorf("%+v", got)
	}
	b.observe("h2", outlier.TimedOut, 50)
	b.wantEjected("and later", "h1")
	// One that is out for longer had its own reasons.
	b = newBench(t, outlier.Config{}, idsUpTo(5)...)
	b.observe("h1", outlier.TimedOut, 5)
	b.now += int64(11 * time.Second)
	for _, id := range idsUpTo(5)[1:] {
		b.observe(id, outlier.TimedOut, 4)
	}
	b.observe("h2", outlier.TimedOut, 1)
	b.wantEjected("one for long", "h1")
}

// While many fail at once the wait between probes does not grow: capacity that is back is needed.
func TestProbesDoNotBackOffInAMassFailure(t *testing.T) {
	b := newBench(t, outlier.Config{MaxEjectionPercent: all}, "a", "b", "c")
	b.observe("a", outlier.Unreached, 5)
	b.observe("b", outlier.Unreached, 5)
	b.sweep()
	for range 5 {
		if !b.d.Distressed() {
			t.Fatal("two of three are out, and it is no mass failure")
		}
		b.wantWait("a", 500*time.Millisecond)
		b.now += int64(500 * time.Millisecond)
		b.finish(b.host("a"), outlier.Unreached, b.take("a"))
	}
}

// It ends when they answer again.
func TestDistressEnds(t *testing.T) {
	b := newBench(t, outlier.Config{}, idsUpTo(4)...)
	for range 100 {
		for _, id := range idsUpTo(4) {
			b.observe(id, outlier.TimedOut, 1)
		}
		b.now += 100 * ms
		b.sweep()
	}
	if !b.d.Distressed() {
		t.Fatal("all time out for 10 s, and it is over")
	}
	for range 120 {
		for _, id := range idsUpTo(4) {
			b.observe(id, outlier.Succeeded, 1)
		}
		b.now += 100 * ms
		b.sweep()
	}
	if b.d.Distressed() {
		t.Error("all are well for 12 s, and it is not over")
	}
	b.observe("h1", outlier.TimedOut, 5)
	b.wantEjected("one times out", "h1")
}

// Of two endpoints one that swallows everything is still found: one is no mass.
func TestOneOfTwoIsNoMassFailure(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b")
	b.observe("a", outlier.TimedOut, 5)
	b.wantEjected("one of two", "a")
}

// Panic begins below half and ends at 60 %. In it ejections stay, results teach, and who proves to be well returns.
func TestPanicUsesAllAndKeepsScoring(t *testing.T) {
	b := newBench(t, outlier.Config{MaxEjectionPercent: all}, idsUpTo(10)...)
	for i, id := range idsUpTo(6) {
		if b.d.Panicking() {
			t.Errorf("panic with %d out", i)
		}
		b.observe(id, outlier.Failed, 5)
	}
	if !b.d.Panicking() || len(b.d.Available(nil)) != 10 {
		t.Fatalf("with 6 of 10 out: panic %v, %v may be picked", b.d.Panicking(), b.d.Available(nil))
	}
	b.observe("h7", outlier.Failed, 5)
	b.wantEjected("a seventh", "h1", "h2", "h3", "h4", "h5", "h6", "h7")
	for _, id := range idsUpTo(2) {
		b.observe(id, outlier.Succeeded, 3)
	}
	if !b.d.Panicking() {
		t.Error("panic ends at half")
	}
	b.observe("h3", outlier.Succeeded, 3)
	if b.d.Panicking() || len(b.d.Available(nil)) != 6 {
		t.Errorf("with 6 available: panic %v, %v may be picked", b.d.Panicking(), b.d.Available(nil))
	}
}

func TestPanicMayFailFast(t *testing.T) {
	b := newBench(t, outlier.Config{Panic: outlier.Panic{FailFast: true}}, "a", "b", "c")
	for i := range 3 {
		b.d.SetStanding(i, outlier.Failing, 0)
	}
	if !b.d.Panicking() || len(b.d.Available(nil)) != 0 {
		t.Errorf("panic %v, %v may be picked", b.d.Panicking(), b.d.Available(nil))
	}
}
