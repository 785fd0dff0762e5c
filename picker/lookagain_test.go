package picker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

// A recovery is a fleet some of which let requests wait for a while, and then work again.
type recovery struct {
	n, down int
	waits   time.Duration // what requests to those that are down take
	ends    picker.Outcome
	rate    int64
	warm    time.Duration // for how long all work at first
	lasts   time.Duration // for how long some do not
}

func (r recovery) String() string {
	return fmt.Sprintf("%d of %d down for %v after %v, %d a second, %v after %v", r.down, r.n, r.lasts, r.warm, r.rate, r.ends, r.waits)
}

// recovered is what becomes of it.
type recovered struct {
	looks    []int           // requests to each of those that are down, but for the first minute
	together int             // the most of them within one second
	first    time.Duration   // the latest first request after
	shares   []float64       // of a fair share, two to four minutes after
	firsts   []time.Duration // each one's first request after
}

func (r recovery) run(t *testing.T) (out recovered) {
	t.Helper()
	f := newFleet(t, picker.Adaptive{}, endpoints(r.n), 7)
	const works = time.Millisecond
	f.run(r.warm, r.rate, func(int, int64) (time.Duration, picker.Outcome) { return works, picker.Success })
	out.looks, out.firsts, out.shares = make([]int, r.down), make([]time.Duration, r.down), make([]float64, r.down)
	settled := f.now + int64(time.Minute)
	second, within := int64(-1), 0
	f.run(r.lasts, r.rate, func(i int, now int64) (time.Duration, picker.Outcome) {
		if i >= r.down {
			return works, picker.Success
		}
		if now > settled {
			out.looks[i]++
			if s := now / int64(time.Second); s != second {
				second, within = s, 0
			}
			within++
			out.together = max(out.together, within)
		}
		return r.waits, r.ends
	})
	began := f.now
	after := func(d time.Duration) {
		f.run(d, r.rate, func(i int, now int64) (time.Duration, picker.Outcome) {
			if i < r.down && out.firsts[i] == 0 {
				out.firsts[i] = time.Duration(now-began) + 1
			}
			return works, picker.Success
		})
	}
	after(2 * time.Minute)
	clear(f.counts)
	after(2 * time.Minute)
	counted := f.counts
	f.counts = map[string]int{}
	after(2 * time.Minute) // for the slowest
	f.counts = counted
	for i := range r.down {
		out.shares[i] = f.share(f.snapshot.Record(i).ID()) * float64(r.n)
		if out.firsts[i] == 0 {
			out.firsts[i] = time.Hour
		}
		out.first = max(out.first, out.firsts[i])
	}
	return out
}

// However long it let requests wait, and however many others did, an endpoint that works again is
// asked within a minute and has its share within two. Meanwhile it costs a request in 45 s.
func TestWhoRecoversIsAskedWithinAMinute(t *testing.T) {
	sizes, limits := []int{2, 4, 10}, []time.Duration{time.Second, 10 * time.Second, 30 * time.Second, time.Minute}
	if testing.Short() {
		sizes, limits = []int{4, 10}, []time.Duration{time.Second, time.Minute}
	}
	for _, n := range sizes {
		for _, down := range []int{1, n/2 + 1, n - 1} {
			if down == n {
				continue
			}
			for _, waits := range limits {
				for _, ends := range []picker.Outcome{picker.Timeout, picker.Canceled, picker.Success} {
					for _, warm := range []time.Duration{0, time.Minute} {
						r := recovery{n: n, down: down, waits: waits, ends: ends, rate: 50, warm: warm, lasts: 5 * time.Minute}
						got := r.run(t)
						if got.first > time.Minute {
							t.Errorf("%v: asked after %v, want 1m at most", r, got.firsts)
						}
						for i := range down {
							if got.shares[i] < 0.8 || got.shares[i] > 1.2 {
								t.Errorf("%v: %.2f of a fair share two minutes after", r, got.shares)
								break
							}
						}
						for _, looks := range got.looks {
							if most := 7; looks > most { // four minutes in 45 s, and one or two that come of themselves
								t.Errorf("%v: %v requests in four minutes, want %d at most each", r, got.looks, most)
								break
							}
						}
						if got.together > 2 {
							t.Errorf("%v: %d of them looked at within a second", r, got.together)
						}
					}
				}
			}
		}
	}
}

// Clients that send little look rarely: a sixty-fourth of a fair share at most goes into it, beside what
// they do as estimates fade.
func TestLookingIsInProportionToTraffic(t *testing.T) {
	for _, tc := range []struct {
		n, down int
		rate    int64
		asked   time.Duration // at the latest
		part    float64       // of requests
	}{
		{4, 3, 1, 5 * time.Minute, 0.02},
		{4, 3, 50, time.Minute, 0.002},
		{10, 6, 50, time.Minute, 0.004},
		{10, 6, 250, time.Minute, 0.0008},
		{100, 51, 50, 150 * time.Second, 0.01},
		{100, 1, 50, 150 * time.Second, 0.0003},
	} {
		for _, waits := range []time.Duration{time.Second, time.Minute} {
			r := recovery{n: tc.n, down: tc.down, waits: waits, ends: picker.Timeout, rate: tc.rate, warm: time.Minute, lasts: 11 * time.Minute}
			got := r.run(t)
			looks := 0
			for _, k := range got.looks {
				looks += k
			}
			if part := float64(looks) / (600 * float64(tc.rate)); part > tc.part {
				t.Errorf("%v: %.3f %% of requests go to those that are down, want %.3f %% at most", r, 100*part, 100*tc.part)
			}
			if got.first > tc.asked {
				t.Errorf("%v: the last is asked after %v, want %v at most", r, got.first, tc.asked)
			}
		}
	}
}

// One that never answers, under requests without a time limit, is looked at less and less often.
func TestLooksThatNobodyAnswersGetRarer(t *testing.T) {
	f := newFleet(t, picker.Adaptive{}, endpoints(4), 7)
	f.run(10*time.Second, 50, healthy)
	clear(f.counts)
	f.run(9*time.Minute, 50, func(i int, _ int64) (time.Duration, picker.Outcome) {
		if i == 0 {
			return 24 * time.Hour, picker.Timeout
		}
		return usual, picker.Success
	})
	// The first, after 45 s the second, then after 45, 90, 135, and 180 s.
	if got := f.counts["e0"]; got < 4 || got > 6 {
		t.Errorf("%d requests went to it in nine minutes, want 4 to 6", got)
	}
}

// longUnasked returns three endpoints, the last of which answered once, after ten minutes, a minute ago.
func longUnasked(t *testing.T) (s *picker.Snapshot, now int64) {
	t.Helper()
	g, s := build(t, picker.Adaptive{}, endpoints(3), nil)
	const before = 600
	p := holdAt(t, s, 2, 0)
	p.Done(before*int64(time.Second), picker.Result{Outcome: picker.Success})
	for second := range int64(60) {
		now = (before + second) * int64(time.Second)
		for i := range 2 {
			answerEvery(t, s, i, 5, usual, now)
		}
		g.Sweep(now + int64(time.Second) - 1)
	}
	return s, now + int64(time.Second)
}

// A look is a request that a comparison gives; a cost that somebody reads takes none.
func TestReadingACostTakesNoLook(t *testing.T) {
	s, now := longUnasked(t)
	for range 10 {
		if picker.Latency.Cost(s.Record(2), now) < picker.Latency.Cost(s.Record(0), now) {
			t.Fatal("it costs less than the others, since a look is due")
		}
	}
	if _, i, err := s.Pick(picker.Request{}, now); err != nil || i != 2 {
		t.Errorf("pick %d, %v, want 2 that has been without requests for a minute", i, err)
	}
	if _, i, _ := s.Pick(picker.Request{}, now); i == 2 {
		t.Error("the second pick went to it too")
	}
}

// The answer to a look replaces what was known, if it is better; a worse one weighs a tenth, as any does. For
// a while, it is then no faster than the median with requests in flight.
func TestAnswerToALookStartsOver(t *testing.T) {
	for _, tc := range []struct{ x, least, most time.Duration }{
		{usual / 10, usual / 11, usual / 9},
		{100 * time.Minute, 10 * time.Second, 5 * time.Minute},
	} {
		s, now := longUnasked(t)
		p, i, _ := s.Pick(picker.Request{}, now)
		if i != 2 {
			t.Fatalf("pick %d, want 2", i)
		}
		now += int64(min(tc.x, time.Minute))
		rec := s.Record(2)
		p.Done(p.Start()+int64(tc.x), picker.Result{Outcome: picker.Success})
		if d, _ := rec.Latency(now); d < tc.least || d > tc.most {
			t.Errorf("after an answer in %v it is thought to take %v, want %v to %v", tc.x, d, tc.least, tc.most)
		}
		holdAt(t, s, 2, now)
		if got := doublings(picker.Latency.Cost(rec, now), ewma.LatencyLog2(int64(usual))); got < 0.9 {
			t.Errorf("with a request in flight it costs %.2f doublings more than the median's first, want 1 at least", got)
		}
	}
}

// It is left alone for as long as it has asked for, however long it has been without requests.
func TestLooksWaitForAnOverloadToEnd(t *testing.T) {
	f := newFleet(t, picker.Adaptive{}, endpoints(3), 7)
	first := true
	f.run(41*time.Second, 50, func(i int, _ int64) (time.Duration, picker.Outcome) {
		if i == 2 && first {
			first = false
			return 40 * time.Second, picker.Overload
		}
		return usual, picker.Success
	})
	if first {
		t.Fatal("it was not asked")
	}
	p := holdAt(t, f.snapshot, 2, f.now)
	p.Done(f.now, picker.Result{Outcome: picker.Overload, RetryAfter: 30 * time.Second})
	clear(f.counts)
	f.run(25*time.Second, 50, healthy)
	if got := f.counts["e2"]; got > 0 {
		t.Errorf("it gets %d requests before the time is over", got)
	}
}

// Nobody is looked at that has a share of its own or is not available.
func TestLooksLeaveAlone(t *testing.T) {
	for name, away := range map[string]func(f *fleet){
		"it has no share":     func(f *fleet) { f.snapshot.Record(2).SetShare(0) },
		"it is not available": func(f *fleet) { f.show(endpoints(3), []int32{0, 1}) },
	} {
		f := newFleet(t, picker.Adaptive{}, endpoints(3), 7)
		f.run(5*time.Second, 50, healthy)
		away(f)
		clear(f.counts)
		f.run(2*time.Minute, 50, healthy)
		if got := f.counts["e2"]; got > 0 {
			t.Errorf("%s: it gets %d requests", name, got)
		}
	}
}

// With weights, which draw candidates, one that has recovered is asked, too.
func TestAWeightedOneThatRecoversIsAsked(t *testing.T) {
	list := endpoints(6)
	for i := range list {
		list[i].Weight = picker.WeightOf(float64(1 + i))
	}
	f := newFleet(t, picker.Adaptive{}, list, 7)
	f.run(5*time.Minute, 50, func(i int, _ int64) (time.Duration, picker.Outcome) {
		if i < 4 {
			return 30 * time.Second, picker.Timeout
		}
		return usual, picker.Success
	})
	clear(f.counts)
	f.run(time.Minute, 50, healthy)
	for i := range 4 {
		if id := f.snapshot.Record(i).ID(); f.counts[id] == 0 {
			t.Errorf("%s got no request in a minute", id)
		}
	}
}

// A client that pauses does not look at all of them when it goes on.
func TestLooksAreNotSavedUp(t *testing.T) {
	f := newFleet(t, picker.Adaptive{}, endpoints(10), 7)
	hang := func(i int, _ int64) (time.Duration, picker.Outcome) {
		if i < 6 {
			return time.Second, picker.Timeout
		}
		return time.Millisecond, picker.Success
	}
	f.run(time.Minute, 50, hang)
	looks := 0
	for range 10 {
		f.rest(time.Minute)
		clear(f.counts)
		f.run(2*time.Second, 50, hang)
		for i := range 6 {
			looks += f.counts[f.snapshot.Record(i).ID()]
		}
	}
	// A thousand requests are one and a half times what lets each of them be looked at once.
	if most := 12; looks > most {
		t.Errorf("%d of a thousand requests went to those that hang, want %d at most", looks, most)
	}
}
