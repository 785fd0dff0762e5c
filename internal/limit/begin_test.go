package limit

import "testing"

// Where nobody took the time of most answers, what hangs at one endpoint is no measure of what the others can do: the
// limit begins with room to spare, whether the answers were observed or only counted. Where enough times say
// that answers come late it begins at what is in flight.
func TestLimitBeginsWithRoomWhereTimesAreNotKnown(t *testing.T) {
	const hung = 6
	for _, c := range []struct {
		name                    string
		untimed, quick, late    int
		timedOut, counted, want int
	}{
		{"observed without a deadline", 94, 0, 0, 6, 0, 2*hung + 10},
		{"counted by their ends", 0, 0, 0, 6, 94, 2*hung + 10},
		{"half and half", 40, 0, 0, 6, 54, 2*hung + 10},
		{"half of them unknown, the others at once", 0, 47, 0, 6, 47, 2*hung + 10},
		{"half of them late", 49, 0, 45, 6, 0, hung},
		{"half of them late, the others counted", 0, 0, 45, 6, 49, hung},
		{"all timed out", 0, 0, 0, 30, 0, hung},
	} {
		l := newLimiter(t, Config{})
		l.Ended(0)
		l.Sweep(0, hung)
		for range c.untimed {
			l.Observe(Answered, 20*ms, 0)
		}
		for range c.quick {
			l.Observe(Answered, 20*ms, sec)
		}
		for range c.late {
			l.Observe(Answered, 550*ms, sec)
		}
		for range c.timedOut {
			l.Observe(TimedOut, 0, 0)
		}
		l.Ended(int64(c.untimed + c.quick + c.late + c.timedOut + c.counted))
		l.Sweep(sec, hung)
		if n, ok := l.Limit(); n != c.want || !ok {
			t.Errorf("%s: the limit begins at %d (%v), want %d", c.name, n, ok, c.want)
		}
	}
}

// A limit that began with room in an overload is where it would have begun without within a second, from when on
// times are taken.
func TestRoomForUnknownTimesIsGoneWithinASecondOfOverload(t *testing.T) {
	l := newLimiter(t, Config{})
	l.Ended(0)
	l.Sweep(0, 400)
	for range 10 {
		l.Observe(TimedOut, 0, 0)
	}
	l.Ended(100)
	now := l.Sweep(sec, 400)
	if n, _ := l.Limit(); n != 810 {
		t.Fatalf("the limit begins at %d, want 810", n)
	}
	for range 8 {
		for range 20 {
			l.Observe(Answered, 700*ms, sec)
		}
		l.Ended(20)
		now = l.Sweep(now, 400)
	}
	if n, _ := l.Limit(); n > 400 || now > 2*sec {
		t.Errorf("the limit is %d after %d ms", n, (now-sec)/ms)
	}
}
