package limit

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func newBudget(tb testing.TB, c BudgetConfig) *Budget {
	tb.Helper()
	b, err := NewBudget(c)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// naiveBudget is the rule written down: lists of what happened, looked through each time.
type naiveBudget struct {
	slice    int64 // ns
	latest   int64 // slice
	deposit  int64 // thousandths
	reserve  int64
	inFlight int64
	atOnce   int64
	requests []int64 // slices
	grants   []int64 // slices, those given back excepted
	running  int64
	open     int64
}

func (n *naiveBudget) at(now int64) int64 {
	n.latest = max(n.latest, now/n.slice)
	return n.latest
}

func (n *naiveBudget) left(now int64) int64 {
	first := n.at(now) - 9
	left := n.reserve
	for _, s := range n.requests {
		if s >= first {
			left += n.deposit
		}
	}
	for _, s := range n.grants {
		if s >= first {
			left -= 1000
		}
	}
	return left
}

func (n *naiveBudget) try(now int64) bool {
	if n.left(now) < 1000 || (n.open+1)*1000 > max(n.atOnce, n.running*n.inFlight) {
		return false
	}
	n.open++
	n.grants = append(n.grants, n.at(now))
	return true
}

// heldGrant is a grant in both, and the slice that the naive one booked it in.
type heldGrant struct {
	grant Grant
	slice int64
}

// drive does one operation on both and reports whether they agree.
func (n *naiveBudget) drive(t *testing.T, b *Budget, held []heldGrant, op byte, now int64) []heldGrant {
	t.Helper()
	switch {
	case op < 110:
		b.Begin(now)
		n.requests = append(n.requests, n.at(now))
		n.running++
	case op < 140 && n.running > 0:
		b.End()
		n.running--
	case op < 200:
		g, ok := b.Try(now)
		if want := n.try(now); ok != want {
			t.Fatalf("at %d: Try %v, want %v", now, ok, want)
		}
		if ok {
			held = append(held, heldGrant{g, n.latest})
		}
	case len(held) > 0:
		i := int(op) % len(held)
		h := held[i]
		held[i] = held[len(held)-1]
		held = held[:len(held)-1]
		n.open--
		if op < 240 {
			h.grant.End()
			break
		}
		h.grant.Return()
		for j, s := range n.grants {
			if s == h.slice {
				n.grants = append(n.grants[:j:j], n.grants[j+1:]...)
				break
			}
		}
	}
	if got, want := b.Balance(now), max(n.left(now), 0)/1000; got != want {
		t.Fatalf("at %d: balance %d, want %d", now, got, want)
	}
	if b.Open() != n.open || b.InFlight() != n.running {
		t.Fatalf("at %d: %d grants and %d requests open, want %d and %d", now, b.Open(), b.InFlight(), n.open, n.running)
	}
	return held
}

func TestBudgetAgainstTheRuleWrittenDown(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		b := newBudget(t, BudgetConfig{PerSecond: 0.5, AtOnce: 2, Window: 4 * time.Second})
		n := &naiveBudget{slice: 400 * ms, deposit: 200, reserve: 2000, inFlight: 200, atOnce: 2000}
		var held []heldGrant
		now := int64(0)
		for range 2000 {
			now += r.Int64N(60) * ms
			if r.IntN(300) == 0 {
				now += r.Int64N(30) * sec
			}
			if r.IntN(50) == 0 {
				now -= min(now, sec) // somebody who is late
			}
			held = n.drive(t, b, held, byte(r.IntN(256)), now)
		}
	}
}

func FuzzBudget(f *testing.F) {
	f.Add([]byte{1, 0, 150, 0, 150, 0, 150, 0, 245, 200, 150, 255})
	f.Add([]byte{1, 0, 1, 255, 150, 1, 201, 1, 150, 250, 150, 250, 150, 250})
	f.Fuzz(func(t *testing.T, ops []byte) {
		b := newBudget(t, BudgetConfig{PerSecond: 1, AtOnce: 1, Window: time.Second})
		n := &naiveBudget{slice: 100 * ms, deposit: 200, reserve: 1000, inFlight: 200, atOnce: 1000}
		var held []heldGrant
		now := int64(0)
		for i := 0; i+1 < min(len(ops), 2000); i += 2 {
			now += int64(ops[i+1]) * ms
			held = n.drive(t, b, held, ops[i], now)
		}
	})
}

// Whatever the race, the window holds no more grants than the budget says, and there are
// no more at once.
func TestNoRaceOvershootsTheBudget(t *testing.T) {
	for range raceRounds {
		raceForTheWindow(t)
	}
}

func raceForTheWindow(t *testing.T) {
	t.Helper()
	b := newBudget(t, BudgetConfig{PerSecond: 5000, AtOnce: MaxAtOnce})
	for range 1000 {
		b.Begin(0)
	}
	var granted, clock atomic.Int64
	together(func() {
		for range 10_000 {
			if g, ok := b.Try(clock.Add(sec/10_000) % (9 * sec)); ok { // slices come and go meanwhile
				granted.Add(1)
				g.End()
			}
		}
	})
	if got := granted.Load(); got != 50_200 {
		t.Errorf("%d grants, want 10 s of 5,000/s and 20 %% of 1,000 requests", got)
	}
}

func TestNoRaceGrantsTooManyAtOnce(t *testing.T) {
	for range raceRounds {
		raceForGrantsAtOnce(t)
	}
}

func raceForGrantsAtOnce(t *testing.T) {
	t.Helper()
	b := newBudget(t, BudgetConfig{PerSecond: MaxPerSecond})
	for range 25 {
		b.Begin(0)
	}
	var open peak
	together(func() {
		for range 20_000 {
			if g, ok := b.Try(0); ok {
				open.enter()
				open.leave()
				g.End()
			}
		}
	})
	if most := open.most.Load(); most > 5 || b.Open() != 0 {
		t.Errorf("%d at once, %d at rest; want at most 20 %% of 25, and 0", most, b.Open())
	}
}

// Everything at once, changes of the window included.
func TestBudgetWithEverythingAtOnce(t *testing.T) {
	b := newBudget(t, BudgetConfig{})
	var clock atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				now := clock.Add(ms)
				b.Begin(now)
				if g, ok := b.Try(now); ok {
					if i%3 == 0 {
						g.Return()
					}
					g.End()
				}
				b.End()
			}
		})
	}
	for i := range 50 {
		if err := b.SetConfig(BudgetConfig{Window: time.Duration(1+i%3) * time.Second, PerSecond: 1000}); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if b.Open() != 0 || b.InFlight() != 0 {
		t.Errorf("%d grants, %d requests at rest", b.Open(), b.InFlight())
	}
	if got := b.Balance(clock.Load() + 3600*sec); got != 2000 {
		t.Errorf("balance %d an hour later, want the reserve of 2 s", got)
	}
}

func TestDefaultsOfTheBudget(t *testing.T) {
	b := newBudget(t, BudgetConfig{})
	if got := b.Balance(0); got != 100 {
		t.Errorf("balance %d, want 10/s for 10 s", got)
	}
	var grants []Grant
	for {
		g, ok := b.Try(0)
		if !ok {
			break
		}
		grants = append(grants, g)
	}
	if len(grants) != 3 {
		t.Errorf("%d at once with nothing in flight, want 3", len(grants))
	}
	for range 24 {
		b.Begin(0)
	}
	g, ok := b.Try(0)
	if !ok {
		t.Error("a fourth was denied with 24 in flight")
	}
	grants = append(grants, g)
	if _, ok := b.Try(0); ok {
		t.Error("a fifth was granted with 24 in flight")
	}
	for i := range grants {
		grants[i].End()
		grants[i].End()
	}
	if b.Open() != 0 || b.Denied() != 2 {
		t.Errorf("%d open, %d denied; want 0 and 2", b.Open(), b.Denied())
	}
	if got := b.Balance(0); got != 100+24/5-4 {
		t.Errorf("balance %d, want 100.8", got)
	}
}

func TestSharesThatAreNoWholeNumbers(t *testing.T) {
	for percent, want := range map[float64]int64{75: 750, 60: 600, 33.3: 333, 0.1: 1, 100: 1000, 1000: 10_000} {
		b := newBudget(t, BudgetConfig{Percent: percent, PerSecond: None})
		for range 1000 {
			b.Begin(0)
		}
		if got := b.Balance(0); got != want {
			t.Errorf("%v %% of 1000 is %d, want %d", percent, got, want)
		}
	}
}

func TestBudgetOfNoneAndDisabled(t *testing.T) {
	b := newBudget(t, BudgetConfig{Percent: None, PerSecond: None})
	b.Begin(0)
	if _, ok := b.Try(0); ok {
		t.Error("granted out of nothing")
	}
	b = newBudget(t, BudgetConfig{InFlightPercent: None, AtOnce: None})
	b.Begin(0)
	if _, ok := b.Try(0); ok {
		t.Error("granted with none at once")
	}
	b = newBudget(t, BudgetConfig{Disabled: true, PerSecond: None, AtOnce: None})
	for range 1000 {
		g, ok := b.Try(0)
		if !ok {
			t.Fatal("denied although disabled")
		}
		g.Return()
	}
}

// A clock that steps back is late, no more; one that steps ahead empties the window.
func TestBudgetAtOddInstants(t *testing.T) {
	b := newBudget(t, BudgetConfig{AtOnce: MaxAtOnce})
	for _, now := range []int64{-5, 0, math.MaxInt64, 5, math.MinInt64} {
		b.Begin(now)
		b.Balance(now)
		if g, ok := b.Try(now); ok {
			g.Return()
		}
	}
	if got := b.Balance(0); got < 100 || got > 101 {
		t.Errorf("balance %d, want the reserve", got)
	}
}

func TestNewBudgetConfigKeepsTheWindow(t *testing.T) {
	b := newBudget(t, BudgetConfig{AtOnce: MaxAtOnce})
	for range 60 {
		if _, ok := b.Try(0); !ok {
			t.Fatal("denied within the reserve")
		}
	}
	if err := b.SetConfig(BudgetConfig{PerSecond: 7}); err != nil {
		t.Fatal(err)
	}
	if got := b.Balance(0); got != 10 {
		t.Errorf("balance %d, want 70 less the 60 that are spent", got)
	}
	if err := b.SetConfig(BudgetConfig{PerSecond: math.NaN()}); err == nil || b.Balance(0) != 10 {
		t.Errorf("NaN gives %v, balance %d", err, b.Balance(0))
	}
}

func TestBudgetConfigReportsAllProblems(t *testing.T) {
	err := BudgetConfig{Percent: math.NaN(), PerSecond: math.Inf(1), Window: time.Millisecond,
		InFlightPercent: -0.5, AtOnce: -2}.Validate()
	for _, want := range []string{
		"limit: BudgetConfig.Percent is NaN, want 0 to 1000 or None",
		"limit: BudgetConfig.PerSecond is +Inf, want 0 to",
		"limit: BudgetConfig.Window is 1ms, want 0 or 1s to 10m0s",
		"limit: BudgetConfig.InFlightPercent is -0.5, want 0 to 1000 or None",
		"limit: BudgetConfig.AtOnce is -2, want 0 to",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if _, err := NewBudget(BudgetConfig{Window: -1}); err == nil {
		t.Error("NewBudget took a window of -1")
	}
	c := BudgetConfig{Percent: MaxPercent, PerSecond: MaxPerSecond, Window: MaxWindow, InFlightPercent: MaxPercent, AtOnce: MaxAtOnce}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if b := newBudget(t, c); b.Balance(0) != 600e6 {
		t.Errorf("balance %d, want 10^6/s for 10 min", b.Balance(0))
	}
}
