package outlier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// What may be picked says its version.
func TestVersionChangesWithWhatMayBePicked(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b", "c")
	last, lastList := b.d.Version(), fmt.Sprint(b.d.Available(nil))
	check := func(what string, changed bool) {
		t.Helper()
		v, list := b.d.Version(), fmt.Sprint(b.d.Available(nil))
		if (v != last) != changed || list != lastList && v == last {
			t.Errorf("%s: version %d after %d, %s after %s", what, v, last, list, lastList)
		}
		last, lastList = v, list
	}
	b.observe("a", outlier.Failed, 4)
	check("four failures", false)
	b.observe("a", outlier.Failed, 1)
	check("five", true)
	b.sweep()
	check("a sweep", false)
	b.update("a", "b", "c")
	check("the same list", false)
	b.update("c", "b", "a")
	check("another order", true)
	b.update("a", "b", "c")
	check("the first order", true)
	b.d.SetStanding(1, outlier.Drained, 0)
	check("one is drained", true)
	b.d.SetStanding(1, outlier.Drained, 0)
	check("again", false)
	b.d.SetStanding(2, outlier.Failing, 0)
	check("one fails its checks", true)
}

// A single usable endpoint stays, and AtLeastOne is for pools where the cap allows none.
func TestAtLeastOneIsExplicit(t *testing.T) {
	for _, tc := range []struct {
		n       int
		cap     float64
		atLeast bool
		want    int
	}{{1, 100, false, 0}, {1, 100, true, 0}, {2, 10, false, 0}, {2, 10, true, 1}, {2, 50, false, 1}, {3, 50, false, 1}, {3, 66, false, 1},
		{3, 67, false, 2}, {9, 10, false, 0}, {9, 10, true, 1}, {10, 10, false, 1}, {11, 10, false, 1}, {20, 10, false, 2}, {4, 0, false, 0}} {
		b := newBench(t, outlier.Config{MaxEjectionPercent: outlier.PercentOf(tc.cap), AtLeastOne: tc.atLeast}, idsUpTo(tc.n)...)
		for _, id := range idsUpTo(tc.n) {
			b.observe(id, outlier.Failed, 10)
		}
		if got := len(b.ejected()); got != tc.want {
			t.Errorf("%+v: %d ejected", tc, got)
		}
	}
}

// What is known of an endpoint survives that it leaves and returns, for a minute.
func TestVerdictsSurviveALeave(t *testing.T) {
	for away, out := range map[time.Duration]bool{0: true, time.Second: true, time.Minute: true, time.Minute + 1: false} {
		b := newBench(t, outlier.Config{}, "a", "b", "c")
		b.observe("a", outlier.Failed, 5)
		h := b.host("a")
		b.update("b", "c")
		b.now += int64(away)
		b.update("c", "a", "b")
		if got := len(b.ejected()) == 1; got != out || (b.host("a") == h) != out {
			t.Errorf("after %v away it is ejected: %v", away, got)
		}
	}
}

// However many different endpoints come and go, twice the list is remembered.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b")
	b.observe("a", outlier.Failed, 5)
	b.update("b", "c")
	for i := range 3 {
		b.now++
		b.update(fmt.Sprint("x", i), fmt.Sprint("y", i))
	}
	b.update("a", "b")
	b.wantEjected("after six others")
}
