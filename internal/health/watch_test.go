package health

import (
	"testing"
	"time"
)

// half is the random number that spreads nothing.
const half = 1 << 63

func TestWatchFollowsWhatTheServerSays(t *testing.T) {
	var w Watch
	for _, healthy := range []bool{true, false, true} {
		e := WatchNotServing
		if healthy {
			e = WatchServing
		}
		if got := w.Next(e, half); got != (WatchAnswer{Healthy: healthy}) {
			t.Errorf("%+v for healthy %v", got, healthy)
		}
	}
}

// A server without the health service is healthy; the warning comes once, however often its
// connection is made anew.
func TestWatchTakesUnimplementedForHealthyAndWarnsOnce(t *testing.T) {
	var w Watch
	for i := range 3 {
		if got := w.Next(WatchUnimplemented, half); got != (WatchAnswer{Healthy: true, Stop: true, Warn: i == 0}) {
			t.Errorf("%+v the %d. time", got, i)
		}
	}
}

func TestBrokenWatchesBackOff(t *testing.T) {
	var w Watch
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if got := w.Next(WatchBroken, half); got != (WatchAnswer{RetryAfter: want * time.Second}) {
			t.Errorf("%+v after %d failures, want %d s", got, i+1, want)
		}
	}
	for range 100 {
		w.Next(WatchBroken, half)
	}
	if got := w.Next(WatchBroken, half); got.RetryAfter != 30*time.Second {
		t.Errorf("%v after a hundred failures", got.RetryAfter)
	}
	w.Next(WatchServing, half)
	if got := w.Next(WatchBroken, half); got != (WatchAnswer{}) {
		t.Errorf("%+v after a stream with a message, want unhealthy and at once", got)
	}
	if got := w.Next(WatchBroken, half); got.RetryAfter != time.Second {
		t.Errorf("%v, want the back-off to begin again", got.RetryAfter)
	}
	if got := w.Next(WatchBroken, 0); got.RetryAfter != 1600*time.Millisecond {
		t.Errorf("%v, want 2 s less a fifth", got.RetryAfter)
	}
}
