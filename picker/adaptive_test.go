package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// known returns a swept snapshot of Adaptive in which every member has answered 20 requests,
// each in its own latency, all at the same time.
func known(t *testing.T, list []picker.Endpoint, seed uint64, latency func(i int) time.Duration) (s *picker.Snapshot, now int64) {
	t.Helper()
	g, s := build(t, picker.Adaptive{}, list, rand.New(rand.NewPCG(seed, 75)).Uint64)
	for i := range list {
		now = max(now, answerEvery(t, s, i, 20, latency(i), 0))
	}
	g.Sweep(now)
	s.Sweep(now)
	return s, now
}

// shareOf returns the part of some thousand picks, one at a time, that the members of which is true get.
func shareOf(t *testing.T, s *picker.Snapshot, now int64, which func(i int) bool) float64 {
	t.Helper()
	const total = 4000
	got := 0
	for range total {
		p, i, err := s.Pick(picker.Request{}, now)
		if err != nil {
			t.Fatal(err)
		}
		if which(i) {
			got++
		}
		p.Done(now, picker.Result{})
	}
	return float64(got) / total
}

// Four of 64 endpoints are four times as fast as the others. Two uniform draws see one of
// them in one pick of eight. Drawn by 1/cost³ each of the four has 64 times the chance of another,
// and together 256 of 316: three draws miss them all once in a hundred and fifty picks.
func TestFastEndpointsAreFoundAmongMany(t *testing.T) {
	fast := func(i int) bool { return i%16 == 5 }
	s, now := known(t, endpoints(64), 1, func(i int) time.Duration {
		if fast(i) {
			return usual / 4
		}
		return usual
	})
	m := s.Members()
	fresh := picker.NewSnapshot(m, nil, picker.Adaptive{}, picker.Adaptive{}.Build(m, nil))
	for name, s := range map[string]*picker.Snapshot{"swept": s, "fresh": fresh} {
		if got := shareOf(t, s, now, fast); got < 0.98 {
			t.Errorf("%s: the four fast ones of 64 get %.1f %% of idle picks, want 98 at least", name, 100*got)
		}
	}
}

// Eight of 64 are fast, and one of those has more than half of their weight: fast draws are in
// proportion to weight too. If they were not, it would have an eighth of those picks in
// which the first two draws, which are by weight, see no fast one.
func TestFastDrawsAreByWeightToo(t *testing.T) {
	list := endpoints(64)
	list[8].Weight = picker.WeightOf(9)
	s, now := known(t, list, 5, func(i int) time.Duration {
		if i%8 == 0 {
			return usual / 4
		}
		return usual
	})
	got := shareOf(t, s, now, func(i int) bool { return i == 8 })
	if want := 9.0 / 16; math.Abs(got-want) > 0.05 {
		t.Errorf("it gets %.1f %% of idle picks, want %.1f", 100*got, 100*want)
	}
}

// How much faster an endpoint is counts up to e² times: an estimate that says "a thousand
// times" may be an error, and must not draw everything. Ten of 64 have the chance of 403 and
// one that of 403 too: it is the best of all, and is seen by 3·403/(11·403+53) of the picks
// and by 2/64 more.
func TestOneThatSeemsFastestDoesNotDrawEverything(t *testing.T) {
	s, now := known(t, endpoints(64), 2, func(i int) time.Duration {
		switch {
		case i == 0:
			return time.Microsecond
		case i <= 10:
			return usual / 10
		}
		return usual
	})
	got := shareOf(t, s, now, func(i int) bool { return i == 0 })
	if got < 0.2 || got > 0.4 {
		t.Errorf("it gets %.1f %% of idle picks, want 30 ± 10", 100*got)
	}
}

// The fast draws know nothing of the last second: five fast endpoints of twenty have become busy,
// so that any of the slow ones, which are idle, is the better choice. Nearly all fast draws
// are busy ones; two uniform draws find an idle one in 95 % of the picks.
func TestUniformDrawsFindTheIdleWhenTheFastAreBusy(t *testing.T) {
	fast := func(i int) bool { return i%4 == 1 }
	s, now := known(t, endpoints(20), 3, func(i int) time.Duration {
		if fast(i) {
			return usual / 100
		}
		return usual
	})
	for i := range 20 {
		for range 200 {
			if fast(i) {
				holdAt(t, s, i, now)
			}
		}
	}
	missed := 5.0 / 20 * 4 / 19
	if got := shareOf(t, s, now, func(i int) bool { return !fast(i) }); got < 1-missed-0.02 {
		t.Errorf("the idle ones get %.1f %% of the picks, want %.1f at least", 100*got, 100*(1-missed-0.02))
	}
}

// What the table of fast endpoints says is as old as the last sweep.
func TestFastDrawsFollowEachSweep(t *testing.T) {
	f := newFleet(t, picker.Adaptive{}, endpoints(64), 77)
	speed := func(fast int) answer {
		return func(i int, _ int64) (time.Duration, picker.Outcome) {
			if i == fast {
				return usual / 10, picker.Success
			}
			return usual, picker.Success
		}
	}
	f.run(30*time.Second, 50, speed(7))
	clear(f.counts)
	f.run(10*time.Second, 50, speed(7))
	before := f.share("e7")
	f.run(3*time.Minute, 50, speed(-1)) // it is as slow as the others now
	clear(f.counts)
	f.run(30*time.Second, 50, speed(-1))
	if after := f.share("e7"); before < 0.5 || after > 0.1 {
		t.Errorf("ten times as fast as 63 others it has %.0f %%, and three minutes later, as slow as they are, %.0f %%; "+
			"want most of the requests, and few", 100*before, 100*after)
	}
}

// While nothing is in flight shares are the weights: a tie, which is a tenth of a doubling or 7 % of the
// latency, goes to the first drawn by weight; of up to eight of equal weight, which are all
// compared, to any.
func TestTiesOfFewGoByWeight(t *testing.T) {
	for _, weights := range [][]float64{{1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 8}, {8, 1}, {1, 2, 3, 4, 5}, {1, 1, 1, 1, 1, 1, 1, 93}, {0.25, 0.5, 0.25}} {
		s, now := known(t, weighted(weights...), 4, func(i int) time.Duration { return usual + time.Duration(i%3)*usual/40 })
		sum := 0.0
		for _, w := range weights {
			sum += w
		}
		const total = 4000
		for i, w := range weights {
			q := w / sum
			got := shareOf(t, s, now, func(k int) bool { return k == i })
			if math.Abs(got-q) > 5*math.Sqrt(q*(1-q)/total) {
				t.Errorf("weights %v: member %d gets %.3f of idle picks, want %.3f", weights, i, got, q)
			}
		}
	}
}
