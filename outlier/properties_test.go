package outlier_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/outlier"
)

// world drives a Detector with random everything, and remembers what invariants need.
type world struct {
	*bench
	r       *rand.Rand
	c       outlier.Config
	open    []request
	states  map[string]outlier.State
	nothing bool // only successes
}

func newWorld(t *testing.T, seed uint64, c outlier.Config) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 59))
	d, err := outlier.NewDetector(c, r.Uint64, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{bench: &bench{t: t, d: d}, r: r, c: c, states: map[string]outlier.State{}}
	w.shuffle(2 + r.IntN(12))
	return w
}

// shuffle makes a list of n, in random order.
func (w *world) shuffle(n int) {
	ids := idsUpTo(n)
	w.r.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	w.update(ids...)
	w.note(nil)
}

func (w *world) event() outlier.Event {
	if w.nothing {
		return []outlier.Event{outlier.Succeeded, outlier.Ignored, outlier.Throttled}[w.r.IntN(3)]
	}
	return outlier.Event(w.r.IntN(12))
}

// note checks changes against the states they claim to change, and the cap against ejections.
func (w *world) note(changes []outlier.Change) {
	w.t.Helper()
	for _, c := range changes {
		if c.From == c.To || w.states[c.ID] != c.From || w.d.Host(c.Index) != c.Host {
			w.t.Errorf("%+v, and it was %v", c, w.states[c.ID])
		}
		w.states[c.ID] = c.To
		if c.To == outlier.Ejected {
			w.capHolds(c)
		}
	}
	for i := range w.d.Len() {
		s := w.d.Stats(i, w.now)
		if s.State == outlier.Probing {
			s.State = outlier.Ejected
		}
		if old, known := w.states[s.ID]; known && old != s.State && changes != nil {
			w.t.Errorf("%s became %v and nobody was told (%v)", s.ID, s.State, old)
		}
		w.states[s.ID] = s.State
	}
}

func (w *world) capHolds(c outlier.Change) {
	w.t.Helper()
	out, usable := 0, 0
	for i := range w.d.Len() {
		s := w.d.Stats(i, w.now)
		if w.c.Mode == outlier.Soft && s.Standing != outlier.Usable || s.Standing == outlier.Drained {
			continue
		}
		usable++
		if s.State == outlier.Ejected || s.State == outlier.Probing {
			out++
		}
	}
	percent, _ := w.c.MaxEjectionPercent.Value()
	allowed := percent * float64(usable) / 100
	if w.c.Mode == outlier.A50 {
		allowed += 1 - 1e-9 // may be passed by one
	}
	if float64(out) > allowed+1e-9 {
		w.t.Errorf("%s: %d of %d are out, with a cap of %v %%", c.ID, out, usable, percent)
	}
}

func (w *world) step() {
	w.t.Helper()
	i := w.r.IntN(w.d.Len())
	h := w.d.Host(i)
	switch k := w.r.IntN(100); {
	case k < 60:
		e := w.event()
		for range 1 + w.r.IntN(6) {
			w.finish(h, e, h.Token())
		}
	case k < 70:
		w.open = append(w.open, request{real: h, token: h.Token()})
	case k < 78 && len(w.open) > 0:
		j := w.r.IntN(len(w.open))
		w.finish(w.open[j].real, w.event(), w.open[j].token)
		w.open = slices.Delete(w.open, j, j+1)
	case k < 82:
		if j, token, ok := w.d.Probe(w.now, w.r.IntN(2) == 0); ok {
			w.open = append(w.open, request{real: w.d.Host(j), token: token})
		}
	case k < 97:
		w.now += w.r.Int64N(int64(3 * time.Second))
		_, changes := w.d.Sweep(w.now)
		w.note(nonNil(changes))
	case k < 99:
		w.note(nonNil(w.d.SetStanding(i, outlier.Standing(w.r.IntN(4)), w.now)))
	default:
		w.shuffle(2 + w.r.IntN(12))
	}
}

func (w *world) finish(h *outlier.Host, e outlier.Event, token outlier.Token) {
	if h.Observe(e, token, w.now) {
		w.note(nonNil(w.d.Act(h, w.now)))
	}
}

// seedsOf is fewer under the race detector, which has nothing to find in one goroutine.
func seedsOf(n int) int {
	if testcost.Race {
		return n / 8
	}
	return n
}

func nonNil(c []outlier.Change) []outlier.Change {
	if c == nil {
		return []outlier.Change{}
	}
	return c
}

func configOf(mode outlier.Mode, percent float64) outlier.Config {
	c := capped(mode, percent)
	c.MaxEjectionJitter = 5 * time.Second
	c.Envoy.SplitLocalOrigin = percent > 30
	c.Envoy.EnforceConsecutiveGateway = outlier.PercentOf(50)
	c.Envoy.FailurePercentage = outlier.FailurePercentage{Enforce: all, MinHosts: 2, RequestVolume: 10}
	c.A50.SuccessRate = &outlier.SuccessRate{MinHosts: 2, RequestVolume: 10, StdevFactor: 0.5, Enforce: outlier.PercentOf(70)}
	c.A50.FailurePercentage = &outlier.FailurePercentage{MinHosts: 2, RequestVolume: 10, Threshold: outlier.PercentOf(50)}
	return c
}

// No ejection passes the cap, every change is told once with the states it changes, and counts are those of
// the records.
func TestInvariantsOfRandomHistories(t *testing.T) {
	for _, mode := range modes {
		for seed := range uint64(seedsOf(40)) {
			w := newWorld(t, seed, configOf(mode, []float64{0, 10, 34, 50, 100}[seed%5]))
			for range 500 {
				w.step()
				c := w.d.Counts()
				available, total := 0, 0
				for i := range w.d.Len() {
					s := w.d.Stats(i, w.now)
					if s.Standing != outlier.Drained {
						total++
					}
					if s.Standing == outlier.Usable && s.State != outlier.Ejected && s.State != outlier.Probing {
						available++
					}
				}
				if c != (outlier.Counts{Available: available, Total: total}) {
					t.Fatalf("counts are %+v, want %d of %d", c, available, total)
				}
			}
			if t.Failed() {
				t.Fatalf("%v, seed %d", mode, seed)
			}
		}
	}
}

// With successes alone, and what blames nobody, nobody is ever out.
func TestSuccessesEjectNobody(t *testing.T) {
	for _, mode := range []outlier.Mode{outlier.Soft, outlier.Envoy} {
		for seed := range uint64(seedsOf(20)) {
			w := newWorld(t, seed, configOf(mode, 100))
			w.nothing = true
			for range 500 {
				w.step()
				if out := w.ejected(); len(out) > 0 {
					t.Fatalf("%v, seed %d: %v", mode, seed, out)
				}
			}
		}
	}
}

// Whoever is ejected is tried again within the longest wait (Soft: if there are requests), or back within
// the longest time and one interval.
func TestEverybodyIsTriedAgain(t *testing.T) {
	for _, mode := range modes {
		for seed := range uint64(seedsOf(30)) {
			w := newWorld(t, seed, configOf(mode, 100))
			for range 300 {
				w.step()
			}
			for i := range w.d.Len() {
				w.d.SetStanding(i, outlier.Usable, w.now)
			}
			limit := 300*time.Second + 5*time.Second + 10*time.Second
			if mode == outlier.Soft {
				limit = 30*time.Second + 9600*time.Millisecond + time.Second // a lost probe, a wait, a sweep
			}
			end := w.now + int64(limit)
			waiting := map[string]bool{}
			for _, id := range w.ejected() {
				waiting[id] = true
			}
			for w.now < end && len(waiting) > 0 {
				w.now += int64(500 * time.Millisecond)
				w.d.Sweep(w.now)
				for {
					i, _, ok := w.d.Probe(w.now, true)
					if !ok {
						break
					}
					delete(waiting, w.d.Stats(i, w.now).ID)
				}
				for id := range waiting {
					if s := w.d.Stats(w.index(id), w.now).State; s == outlier.Available || s == outlier.Ramping {
						delete(waiting, id)
					}
				}
			}
			if len(waiting) > 0 {
				t.Fatalf("%v, seed %d: %v are not tried within %v", mode, seed, waiting, limit)
			}
		}
	}
}

// The same list, in any order and any number of times, changes nothing.
func TestOrderOfTheListIsIrrelevant(t *testing.T) {
	for seed := range uint64(seedsOf(30)) {
		r := rand.New(rand.NewPCG(seed, 60))
		c := configOf(outlier.Soft, 34)
		ids := idsUpTo(9)
		plain, mixed := newBench(t, c, ids...), newBench(t, c, ids...)
		for range 400 {
			shuffled := slices.Clone(ids)
			r.Shuffle(len(ids), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			plain.update(ids...)
			mixed.update(shuffled...)
			id, e, n, by := ids[r.IntN(9)], outlier.Event(r.IntN(12)), 1+r.IntN(6), r.Int64N(int64(time.Second))
			for _, b := range []*bench{plain, mixed} {
				b.now += by
				b.sweep()
				b.observe(id, e, n)
			}
			if got, want := fmt.Sprint(mixed.ejected()), fmt.Sprint(plain.ejected()); got != want {
				t.Fatalf("seed %d: %s are out, in plain order %s", seed, got, want)
			}
		}
	}
}

// More successes never make a run of failures longer.
func TestMoreSuccessesNeverEject(t *testing.T) {
	for seed := range uint64(seedsOf(200)) {
		r := rand.New(rand.NewPCG(seed, 61))
		c := outlier.Config{MaxEjectionPercent: all}
		c.Soft.NoRate = true
		few, more := newBench(t, c, "a", "b", "c"), newBench(t, c, "a", "b", "c")
		for range 40 {
			e := outlier.Event(r.IntN(12))
			few.observe("a", e, 1)
			more.observe("a", e, 1)
			if r.IntN(4) == 0 {
				more.observe("a", outlier.Succeeded, 1)
			}
			if len(more.ejected()) > 0 && len(few.ejected()) == 0 {
				t.Fatalf("seed %d: ejected with more successes", seed)
			}
			if len(few.ejected()) > 0 {
				break
			}
		}
	}
}

// Panic is exactly when the share is below the threshold, and with hysteresis below the other. By default one endpoint
// that is out keeps no panic up that it would not begin: of two it would for good.
func TestPanicFollowsTheShare(t *testing.T) {
	for _, p := range []outlier.Panic{{}, {Threshold: outlier.PercentOf(0)}, {Threshold: outlier.PercentOf(30), Leave: outlier.PercentOf(30)},
		{Threshold: outlier.PercentOf(100)}, {Threshold: outlier.PercentOf(50), Leave: outlier.PercentOf(90)}} {
		enter, ok := p.Threshold.Value()
		if !ok {
			enter = 50
		}
		leave, told := p.Leave.Value()
		if !told {
			leave = math.Min(enter+10, 100)
		}
		for total := range 30 {
			for up := range total + 1 {
				share := 100 * float64(up) / float64(total)
				c := outlier.Counts{Available: up, Total: total}
				in, stay := share < enter, share < leave && enter > 0
				if !told && up == total-1 {
					stay = in
				}
				if total == 0 {
					in, stay = false, false
				}
				if p.Next(false, c) != in || p.Next(true, c) != stay {
					t.Errorf("%+v, %d of %d: %v from calm, %v from panic", p, up, total, p.Next(false, c), p.Next(true, c))
				}
			}
		}
	}
}

// A ramp only grows, from its floor to 1, and never passes it.
func TestRampGrows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 62))
	for range 2000 {
		window := time.Duration(1 + r.Int64N(int64(time.Minute)))
		aggression, floor := r.Float64()*5, r.Float64()
		last := 0.0
		for k := range 50 {
			got := outlier.SlowStart(window*time.Duration(k-2)/40, window, aggression, floor)
			if !(got >= floor && got <= 1 && got >= last) {
				t.Fatalf("window %v, aggression %v, floor %v: %v after %v", window, aggression, floor, got, last)
			}
			last = got
		}
		if last != 1 {
			t.Fatalf("it ends at %v", last)
		}
	}
}

// FuzzInstants: whatever the clock says, nothing is stuck for good and no number is out of its range.
func FuzzInstants(f *testing.F) {
	f.Add(uint8(0), int64(0), int64(math.MaxInt64), int64(math.MinInt64))
	f.Add(uint8(1), int64(-5), int64(1<<62), int64(3))
	f.Add(uint8(2), int64(math.MinInt64), int64(-1), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, mode uint8, a, b, c int64) {
		d, err := outlier.NewDetector(configOf(outlier.Mode(mode%3), 100), middle, a)
		if err != nil {
			t.Fatal(err)
		}
		w := &bench{t: t, d: d, now: a}
		w.update("x", "y", "z")
		for _, now := range []int64{a, b, c, b, a} {
			w.now = now
			w.observe("x", outlier.Failed, 10)
			w.sweep()
			if i, token, ok := d.Probe(now, false); ok {
				w.finish(d.Host(i), outlier.Failed, token)
			}
			for i := range 3 {
				s := d.Stats(i, now)
				if f := d.RampFactor(i, now); s.Wait < 0 || s.Wait > 310*time.Second || !(f >= 0 && f <= 1) {
					t.Errorf("at %d: waits %v, factor %v", now, s.Wait, f)
				}
			}
		}
		w.now = 0
		w.sweep()
		for range 700 {
			w.now += int64(time.Second)
			w.sweep()
			if i, token, ok := d.Probe(w.now, true); ok {
				w.finish(d.Host(i), outlier.Succeeded, token)
			}
		}
		w.wantEjected("when all has been well for long")
	})
}
