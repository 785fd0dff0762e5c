package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// shown returns what a load of 3 s shows that ends after 2.5 s.
func shown(t *testing.T, redraw bool) (text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newLoad(settings{duration: 3 * time.Second, rate: 10}, allLanes())
		d.lanes[0].errors.Store(1234)
		d.lanes[3].errors.Store(5)
		d.reached.Store(int64(time.Second))
		time.AfterFunc(1500*time.Millisecond, func() { d.reached.Store(int64(2 * time.Second)) })
		over := make(chan struct{})
		time.AfterFunc(2500*time.Millisecond, func() { close(over) })
		var out bytes.Buffer
		p := progress{out: &out, redraw: redraw}
		p.show(d, over)
		text = out.String()
	})
	return text
}

func TestProgressIsALineASecond(t *testing.T) {
	const want = "errors so far, round robin / Evenkeel:\n" +
		"   1 of 3 s   gRPC  1,234 / 0        HTTP      0 / 5       one fails\n" +
		"   2 of 3 s   gRPC  1,234 / 0        HTTP      0 / 5\n"
	if got := shown(t, false); got != want {
		t.Errorf("shows\n%s\nwant\n%s", got, want)
	}
}

func TestProgressOnATerminalIsOneLineDrawnAgain(t *testing.T) {
	const want = "errors so far, round robin / Evenkeel:\n" +
		"\r   1 of 3 s   gRPC  1,234 / 0        HTTP      0 / 5       one fails\x1b[K" +
		"\r   2 of 3 s   gRPC  1,234 / 0        HTTP      0 / 5\x1b[K\n"
	if got := shown(t, true); got != want {
		t.Errorf("shows %q, want %q", got, want)
	}
}

func TestWhatIsNoFileIsNoTerminal(t *testing.T) {
	if isTerminal(&bytes.Buffer{}) {
		t.Error("a buffer is taken for a terminal")
	}
}
