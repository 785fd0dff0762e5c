package limit

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDistress(t *testing.T) {
	for _, c := range []struct {
		name                     string
		quick, near, timeouts, n int
		seconds                  int64
		want                     int // 0: none
	}{
		{"all well", 1000, 0, 0, 40, 1, 0},
		{"five in a hundred are not above 5 %", 95, 0, 5, 40, 1, 0},
		{"six are", 94, 0, 6, 40, 1, 2*40 + 10},
		{"answers near their deadline count as timeouts do", 94, 6, 0, 40, 1, 2*40 + 10},
		{"two timeouts happen on any day", 18, 0, 2, 40, 1, 0},
		{"a client with few requests waits for more", 5, 0, 3, 40, 9, 0},
		{"but for no more than ten seconds", 5, 0, 3, 40, 10, 2*40 + 10},
		{"where the median is late nobody gets room to spare", 20, 21, 0, 40, 1, 40},
		{"nothing at all", 0, 0, 0, 0, 60, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLimiter(t, Config{})
			l.Sweep(0, 0)
			for range c.quick {
				l.Observe(Answered, 10*ms, sec)
			}
			for range c.near {
				l.Observe(Answered, 601*ms, sec)
			}
			for range c.timeouts {
				l.Observe(TimedOut, 50*ms, 0)
			}
			l.Sweep(c.seconds*sec, int64(c.n))
			got, ok := l.Limit()
			if ok != (c.want > 0) || got != c.want {
				t.Errorf("limit %d, %v; want %d", got, ok, c.want)
			}
		})
	}
}

func TestWhatSaysNothingOfTheLoad(t *testing.T) {
	l := newLimiter(t, Config{})
	l.Sweep(0, 0)
	for range 1000 {
		l.Observe(Left, 100*ms, sec)        // a caller that leaves early
		l.Observe(Answered, 3600*sec, 0)    // no deadline to be near to
		l.Observe(Answered, -sec, sec)      // a clock that stepped
		l.Observe(Answered, math.MaxInt, 0) // the longest
	}
	l.Sweep(sec, 10)
	if n, ok := l.Limit(); ok {
		t.Errorf("limit %d, want none", n)
	}
	for range 1000 {
		l.Observe(Left, 900*ms, sec) // a caller that left late waited at least that long
	}
	l.Sweep(2*sec, 10)
	if _, ok := l.Limit(); !ok {
		t.Error("no limit although callers leave near their deadline")
	}
}

func TestCallersWhoLeaveEarlyDoNotHideDistress(t *testing.T) {
	l := newLimiter(t, Config{})
	l.Sweep(0, 0)
	for range 1000 {
		l.Observe(Left, 10*ms, sec)
	}
	for i := range 50 {
		l.Observe(Answered, []int64{10, 10, 10, 10, 700}[i%5]*ms, sec)
	}
	l.Sweep(sec, 10)
	if _, ok := l.Limit(); !ok {
		t.Error("no limit although a fifth of the answers is near the deadline")
	}
}

func TestClockThatStepsBackDoesNotStopTheLimit(t *testing.T) {
	l := newLimiter(t, Config{})
	l.Sweep(3600*sec, 0)
	l.Sweep(0, 0)
	for range 20 {
		l.Observe(TimedOut, sec, sec)
	}
	l.Sweep(sec, 10)
	if _, ok := l.Limit(); !ok {
		t.Error("no limit a second after the clock stepped back")
	}
}

func TestLimitFallsAndRises(t *testing.T) {
	l, now := distressed(t, Config{Floor: 4}, 100)
	now += 100 * ms
	limit := func() int { n, _ := l.Limit(); return n }
	for range 100 {
		for range 20 {
			l.Observe(Answered, 600*ms, sec)
		}
		before := limit()
		now = l.Sweep(now, 100)
		if got, want := limit(), max(before*9/10-1, 4); got > before || got < want {
			t.Fatalf("one cut from %d to %d, want a tenth", before, got)
		}
		l.aimd.lowSince = 0 // not the subject here
	}
	if limit() != 4 {
		t.Fatalf("limit %d after 100 cuts, want the floor", limit())
	}
	for range 5 { // answers in fair time, and all in use: one more for each limit of answers
		for range 20 {
			l.Observe(Answered, 300*ms, sec)
		}
		now = l.Sweep(now, int64(limit()))
	}
	if limit() < 13 || limit() > 15 { // 4, 9, 11.2, 13, 14.5 and then some; in whole requests
		t.Errorf("limit %d after 100 answers, want about 14", limit())
	}
	n := limit()
	for range 20 {
		for range 20 {
			l.Observe(Answered, 300*ms, sec)
		}
		now = l.Sweep(now, 1)
	}
	if limit() != n {
		t.Errorf("limit went from %d to %d while hardly used", n, limit())
	}
}

// At most one cut in 100 ms, however often the owner sweeps.
func TestCutsKeepTheirDistance(t *testing.T) {
	l, now := distressed(t, Config{}, 1000)
	for i := range 100 {
		for range 20 {
			l.Observe(TimedOut, sec, sec)
		}
		l.Sweep(now+int64(i)*ms, 1000)
	}
	if n, _ := l.Limit(); n != 1000 {
		t.Errorf("limit %d within 100 ms, want 1000", n)
	}
	l.Sweep(now+100*ms, 1000)
	if n, _ := l.Limit(); n != 900 {
		t.Errorf("limit %d after 100 ms, want one cut", n)
	}
}

// A client whose deadlines are as tight as its usual latency gains nothing by sending less.
func TestCutsThatDoNotHelpAreUndone(t *testing.T) {
	l, now := distressed(t, Config{}, 100)
	sum, n := 0.0, 0
	for end := now + 3600*sec; now < end; n++ {
		for range 20 {
			l.Observe(Answered, 61*ms, 100*ms)
		}
		now = l.Sweep(now, 100)
		limit, ok := l.Limit()
		if !ok {
			limit = 100
		}
		sum += float64(limit)
	}
	if mean := sum / float64(n); mean < 90 {
		t.Errorf("the limit was %.1f on average over an hour, want near 100", mean)
	}
}

func TestCutsAreNotUndoneNearTheFloor(t *testing.T) {
	l, now := distressed(t, Config{Floor: 50}, 100)
	for end := now + 60*sec; now < end; {
		for range 20 {
			l.Observe(Answered, 550*ms, sec)
		}
		now = l.Sweep(now, 100)
	}
	if n, _ := l.Limit(); n != 50 {
		t.Errorf("limit %d, want the floor, which is no test of whether cuts help", n)
	}
}

// That cuts do not help here is remembered when the limit goes and comes back.
func TestHoldOutlivesTheLimit(t *testing.T) {
	l, now := distressed(t, Config{}, 100)
	sweep := func(latency int64, inFlight int64) {
		for range 20 {
			l.Observe(Answered, latency, sec)
		}
		now = l.Sweep(now, inFlight)
	}
	for l.aimd.hold == 0 {
		sweep(550*ms, 100)
	}
	for l.aimd.on {
		sweep(550*ms, 0) // usual here, and nobody is held back
	}
	for range 15 {
		sweep(700*ms, 100)
	}
	if n, ok := l.Limit(); !ok || n != 100 {
		t.Errorf("limit %d, %v; want 100 without cuts, while they are held back", n, ok)
	}
}

func TestLimitGoesAfterTenCalmSeconds(t *testing.T) {
	l, now := distressed(t, Config{}, 100)
	for range 100 {
		l.Release()
	}
	start := now
	for range 1000 {
		now = l.Sweep(now, 0)
		if _, ok := l.Limit(); !ok {
			break
		}
	}
	if got := now - start; got < calm || got > calm+3*sec {
		t.Errorf("the limit went after %d ms, want about 10 s", got/ms)
	}
	for i := range 1000 {
		if !l.Acquire() {
			t.Fatalf("request %d was refused after the limit went", i)
		}
	}
}

// seen is what a client may observe between two sweeps.
type seen struct {
	results           tally
	inFlight, refused int64
	elapsed           int64
}

func anySeen(r *rand.Rand) (s seen) {
	for v := range s.results {
		if r.IntN(3) == 0 {
			s.results[v] = r.Int64N(40)
		}
	}
	s.inFlight = r.Int64N(150)
	if r.IntN(4) == 0 {
		s.refused = r.Int64N(10)
	}
	s.elapsed = r.Int64N([]int64{50 * ms, 300 * ms, 12 * sec}[r.IntN(3)])
	return s
}

// What holds whatever is observed: when the limit may appear, fall, rise and go.
func TestLimitMovesForAReasonOnly(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 8))
		a := aimd{floor: float64(1 + r.IntN(20)), ceiling: float64(20 + r.IntN(200))}
		var now, mattered, refused int64
		var gathered tally // since the last window or step
		for range 2000 {
			s := anySeen(r)
			now += s.elapsed
			before := a
			a.advance(s.results, s.inFlight, s.refused, now)
			for v := range gathered {
				gathered[v] += s.results[v]
			}
			refused += s.refused
			moved := a.since != before.since && before.started
			used := refused > 0 || float64(s.inFlight) > 0.8*before.limit
			// While cuts are held back a late median is what is usual here.
			slow := 2*(gathered[late]+gathered[near]) > gathered.total() && now >= before.holdUntil
			tense := gathered[near] >= 3 && 20*gathered[near] > gathered.total()
			switch {
			case a.on && !before.on:
				if !tense || gathered.total() < 20 && now-before.since < 10*sec {
					t.Fatalf("seed %d: a limit for %v", seed, gathered)
				}
			case !a.on && before.on:
				if used || slow || tense || now-mattered < 10*sec {
					t.Fatalf("seed %d: the limit went %d ms after it mattered", seed, (now-mattered)/ms)
				}
			case a.on && a.limit < before.limit && (!slow || a.limit < 0.53*before.limit && a.limit > a.floor):
				t.Fatalf("seed %d: from %v to %v for %v", seed, before.limit, a.limit, gathered)
			case a.on && a.limit > before.limit && !used && a.holdUntil == before.holdUntil:
				t.Fatalf("seed %d: up from %v to %v with %d in flight", seed, before.limit, a.limit, s.inFlight)
			}
			if a.on && !(a.limit >= a.floor && a.limit <= a.ceiling) {
				t.Fatalf("seed %d: limit %v, want %v to %v", seed, a.limit, a.floor, a.ceiling)
			}
			if moved {
				if a.on && (!before.on || used || slow || tense) {
					mattered = now
				}
				gathered, refused = tally{}, 0
			}
		}
	}
}
