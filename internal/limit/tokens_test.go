package limit

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// A Release that never comes, or comes twice, heals with the sweeps.
func TestLostAndDoubledReleasesHeal(t *testing.T) {
	for _, extra := range []int{-5, 5} {
		l, now := distressed(t, Config{}, 20)
		for range 20 + extra {
			l.Release()
		}
		for range 3 {
			now = l.Sweep(now, 0)
		}
		got := 0
		for l.Acquire() {
			got++
		}
		if n, _ := l.Limit(); got != n {
			t.Errorf("%+d releases: %d requests began, want the limit of %d", extra, got, n)
		}
	}
}

// The owner's count takes a moment in which requests come and go: a difference that the
// next sweep does not confirm is not one.
func TestCountsThatDisagreeOnceChangeNothing(t *testing.T) {
	l, now := distressed(t, Config{}, 20)
	for _, n := range []int64{17, 23, 17, 20, 19, 21, 20} {
		now = l.Sweep(now, n)
		if left := l.tokens.left(); left != 0 {
			t.Fatalf("count %d: %d tokens left, want 0", n, left)
		}
	}
	for _, n := range []int64{12, 18} { // both see at least two fewer
		now = l.Sweep(now, n)
	}
	if left := l.tokens.left(); left != 2 {
		t.Errorf("%d tokens left, want 2", left)
	}
}

// A Release that meets a cut may leave a free token beside a debt.
func TestSweepSettlesFreeTokensWithTheDebt(t *testing.T) {
	l, now := distressed(t, Config{}, 20)
	l.tokens.own().free.Add(2)
	l.tokens.debt.Add(2)
	l.Sweep(now, 20)
	if l.Acquire() {
		t.Error("a request began while tokens were owed")
	}
}

func TestSecondLimitBeginsWithItsOwnTokens(t *testing.T) {
	l, now := distressed(t, Config{}, 20)
	for range 20 {
		l.Release()
	}
	for range 200 {
		now = l.Sweep(now, 0)
	}
	if _, ok := l.Limit(); ok {
		t.Fatal("the limit is still there")
	}
	for range 20 {
		l.Observe(TimedOut, sec, sec)
	}
	now = l.Sweep(now+sec, 5)
	if n, _ := l.Limit(); n != 5 || l.Acquire() {
		t.Errorf("limit %d at %d s, or a sixth request began", n, now/sec)
	}
}

// The limiter against a counter and a comparison, while the limit goes up and down.
func TestLimiterAgainstACounter(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		l, now := distressed(t, Config{}, 50)
		l.tokens.stripes = make([]stripe, 8) // more than this machine may have
		l.tokens.adjust(0)
		inFlight := 50
		limit, _ := l.Limit()
		for op := range 5000 {
			switch r.IntN(20) {
			default:
				if got, want := l.Acquire(), inFlight < limit; got != want {
					t.Fatalf("seed %d op %d: Acquire %v with %d of %d", seed, op, got, inFlight, limit)
				} else if got {
					inFlight++
				}
			case 5, 6, 7, 8, 9, 10, 11, 12, 13:
				if inFlight > 0 {
					l.Release()
					inFlight--
				}
			case 0:
				latency := []int64{10, 300, 700}[r.IntN(3)] * ms
				for range 10 {
					l.Observe(Answered, latency, sec)
				}
				now += int64(r.IntN(300)) * ms
				l.Sweep(now, int64(inFlight))
				n, ok := l.Limit()
				if !ok {
					n = math.MaxInt
				}
				limit = n
			}
			if left := l.tokens.left(); limit != math.MaxInt && left != int64(limit-inFlight) {
				t.Fatalf("seed %d op %d: %d tokens left with %d of %d", seed, op, left, inFlight, limit)
			}
			if limit == math.MaxInt {
				break
			}
		}
	}
}

// However many begin and end at once, no more are in flight than the limit says.
func TestNoRaceBeginsMoreThanTheLimit(t *testing.T) {
	for range raceRounds {
		raceForTheLimit(t, 8) // more stripes than this machine may have
		raceForTheLimit(t, 1) // in which all meet
	}
}

func raceForTheLimit(t *testing.T, stripes int) {
	t.Helper()
	const limit = 10
	l, _ := distressed(t, Config{}, limit)
	l.tokens.stripes = make([]stripe, stripes)
	l.tokens.adjust(limit)
	var inFlight peak
	together(func() {
		for range 20_000 {
			if l.Acquire() {
				inFlight.enter()
				l.Observe(Answered, ms, sec)
				inFlight.leave()
				l.Release()
			}
		}
	})
	together(func() { // faster, so that more of them meet: a lost write shows at rest
		for range 20_000 {
			if l.Acquire() {
				l.Release()
			}
		}
	})
	if most := inFlight.most.Load(); most > limit || most < 1 {
		t.Errorf("%d in flight at once, want at most %d", most, limit)
	}
	if left := l.tokens.left(); left != limit {
		t.Errorf("%d tokens at rest, want %d", left, limit)
	}
}

// Tokens that come in while some are owed, and are cut meanwhile.
func TestNoRaceLosesTokens(t *testing.T) {
	for range 3 {
		tokens := newTokens()
		tokens.adjust(-1_000_000)
		var cuts atomic.Int64
		together(func() {
			for range 200_000 {
				tokens.give()
			}
			if cuts.Add(1) == 1 { // adjust is one caller's
				for range 100 {
					tokens.adjust(-50)
				}
			}
		})
		tokens.settle()
		if left := tokens.left(); left != 8*200_000-1_000_000-5000 {
			t.Fatalf("%d tokens left, want 595,000", left)
		}
	}
}

// Everything at once: the limit appears, moves and goes, its configuration changes, while
// requests run. At rest the tokens are right after two sweeps.
func TestEverythingAtOnce(t *testing.T) {
	l := newLimiter(t, Config{})
	var inFlight atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			for !stop.Load() {
				if !l.Acquire() {
					if !errors.Is(l.Err(), ErrOverloaded) {
						t.Error("a refusal without its error")
					}
					continue
				}
				inFlight.Add(1)
				l.Observe(Answered, r.Int64N(sec), sec)
				inFlight.Add(-1)
				l.Release()
			}
		})
	}
	now := int64(0)
	for i := range 3000 {
		now += 50 * ms
		l.Sweep(now, inFlight.Load())
		if i%500 == 499 {
			if err := l.SetConfig(Config{Disabled: i%1000 == 499, Ceiling: i}); err != nil {
				t.Error(err)
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	if err := l.SetConfig(Config{}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		l.Observe(TimedOut, sec, sec)
	}
	now += 10 * sec
	for range 3 {
		now = l.Sweep(now, 0)
	}
	n, ok := l.Limit()
	if left := l.tokens.left(); !ok || left != int64(n) {
		t.Errorf("%d tokens at rest with limit %d, %v", left, n, ok)
	}
}
