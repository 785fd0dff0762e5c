package health

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestFactorIsMonotoneAndInRange(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for range 2000 {
		window := r.Int64N(int64(MaxSlowStart)) + 1
		aggression := math.Exp(r.Float64()*9 - 4.5)
		least := r.Float64()
		last := 0.0
		for i := range int64(50) {
			f := SlowStartFactor(window/48*i, window, aggression, least)
			if !(f >= last && f <= 1 && f >= least && f > 0) {
				t.Fatalf("factor %v after %v, aggression %v, least %v", f, last, aggression, least)
			}
			last = f
		}
		if f := SlowStartFactor(window, window, aggression, least); f != 1 {
			t.Fatalf("factor %v at the window's end", f)
		}
	}
}

// Whatever comes in, a factor is a number above 0 and at most 1.
func FuzzSlowStartFactor(f *testing.F) {
	f.Add(int64(0), int64(0), 0.0, 0.0)
	f.Add(int64(-5), int64(math.MaxInt64), math.NaN(), math.NaN())
	f.Add(int64(1), int64(2), math.Inf(1), math.Inf(-1))
	f.Add(int64(1), int64(2), 1e-300, 2.0)
	f.Fuzz(func(t *testing.T, elapsed, window int64, aggression, least float64) {
		if got := SlowStartFactor(elapsed, window, aggression, least); !(got > 0 && got <= 1) {
			t.Fatalf("factor %v", got)
		}
	})
}

// Ramps run from each endpoint's own return, and end although others begin theirs.
func TestBug48RampsAreEachEndpointsOwn(t *testing.T) {
	c := SlowStartConfig{}
	var a, b Ramp
	a.Fill()
	b.Turn(true, 100*sec) // joins a pool that runs
	if a.Ramping(100*sec, c) || !b.Ramping(100*sec, c) || a.Factor(100*sec, c) != 1 || b.Factor(100*sec, c) != 0.1 {
		t.Error("the newcomer ramps, and nobody else does")
	}
	a.Turn(true, 101*sec)
	if a.Ramping(101*sec, c) {
		t.Error("an update began a ramp")
	}
	a.Turn(false, 105*sec) // ejected; b goes on
	if f := b.Factor(105*sec, c); f != 0.5 || a.Factor(105*sec, c) != 1 {
		t.Errorf("factor %v halfway, want 0.5", f)
	}
	b.Turn(false, 106*sec) // goes, and the same address comes back
	if b.Ramping(106*sec, c) {
		t.Error("who is away is ramping")
	}
	b.Turn(true, 120*sec)
	if at, ok := b.Ends(120*sec, c); !ok || at != 130*sec || b.Factor(120*sec, c) != 0.1 {
		t.Errorf("the ramp ends at %d, %v; want 10 s after the return", at, ok)
	}
	if _, ok := b.Ends(130*sec, c); ok || b.Factor(130*sec, c) != 1 {
		t.Error("the ramp has no end")
	}
	if f := b.Factor(119*sec, c); f != 0.1 {
		t.Errorf("factor %v before the ramp began, by a clock that stepped", f)
	}
}

func TestNobodyRampsIfMostDo(t *testing.T) {
	for _, c := range []struct {
		ramping, available int
		want               bool
	}{{0, 0, false}, {0, 5, false}, {1, 1, true}, {1, 2, false}, {2, 3, true}, {5, 10, false}, {6, 10, true}} {
		if got := SkipSlowStart(c.ramping, c.available); got != c.want {
			t.Errorf("%d of %d: %v, want %v", c.ramping, c.available, got, c.want)
		}
	}
}

func TestSlowStartConfigReportsAllProblems(t *testing.T) {
	err := SlowStartConfig{Window: -1, Aggression: math.NaN(), Least: 1.5}.Validate()
	for _, want := range []string{
		"health: SlowStartConfig.Window is -1ns, want 0 or 1ms to 1h0m0s",
		"health: SlowStartConfig.Aggression is NaN, want 0 or 0.1 to 10",
		"health: SlowStartConfig.Least is 1.5, want 0 to 1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if (SlowStartConfig{Least: math.NaN()}).Validate() == nil || (SlowStartConfig{Window: 2 * time.Hour}).Validate() == nil {
		t.Error("a share of NaN, or a window of two hours, is taken")
	}
	for _, c := range []SlowStartConfig{{}, {Window: time.Minute, Aggression: MaxAggression, Least: 1}, {Least: 1e-9}} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestDepartureIsOverWhenEmptyOrAtItsLimit(t *testing.T) {
	var d Departure
	if d.Begun() || d.Over(sec, 0) || d.Next() != math.MaxInt64 {
		t.Error("it is over before it began")
	}
	d.Begin(sec, 30*sec)
	for _, c := range []struct {
		now, inFlight int64
		want          bool
	}{{sec, 1, false}, {30 * sec, 1, false}, {31 * sec, 1, true}, {2 * sec, 0, true}} {
		if got := d.Over(c.now, c.inFlight); got != c.want {
			t.Errorf("over %v at %d s with %d in flight", got, c.now/sec, c.inFlight)
		}
	}
	if d.Next() != 31*sec {
		t.Errorf("next at %d", d.Next())
	}
	d.Cancel()
	if d.Begun() || d.Over(100*sec, 0) {
		t.Error("over although it is back")
	}
	for _, limit := range []int64{0, -1, math.MaxInt64} {
		d.Begin(sec, limit)
		if d.Over(math.MaxInt64-1, 1) || !d.Over(sec, 0) || d.Next() != math.MaxInt64 {
			t.Errorf("a limit of %d", limit)
		}
	}
}
