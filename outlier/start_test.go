package outlier_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// wants expects the factor of a member, after a sweep.
func (b *bench) wants(what, id string, want float64) {
	b.t.Helper()
	b.sweep()
	if got := b.d.RampFactor(b.index(id), b.now); math.Abs(got-want) > 1e-9 {
		b.t.Errorf("%s: at %v %s has %v, want %v", what, time.Duration(b.now), id, got, want)
	}
}

// newStarts returns members with slow starts of the default form.
func newStarts(t *testing.T, mode outlier.Mode, ids ...string) *bench {
	b := newBench(t, outlier.Config{Mode: mode}, ids...)
	b.d.SetSlowStart(&outlier.Ramp{}, b.now)
	b.update(ids...)
	return b
}

func TestSlowStartIsTheSameInAllModes(t *testing.T) {
	for _, mode := range []outlier.Mode{outlier.Soft, outlier.Envoy, outlier.A50, outlier.NoEjection} {
		b := newStarts(t, mode, "a", "b", "c", "d")
		b.at(20 * time.Second)
		b.update("a", "b", "c", "d", "e")
		b.wants(mode.String(), "e", 0.1)
		if s := b.d.Stats(b.index("e"), b.now); !s.SlowStart || !b.d.Ramps(b.index("e"), b.now) {
			t.Errorf("%v: no slow start: %+v", mode, s)
		}
		b.at(25 * time.Second)
		b.wants(mode.String(), "e", 0.5)
		b.at(30 * time.Second)
		b.wants(mode.String(), "e", 1)
		if s := b.d.Stats(b.index("e"), b.now); s.SlowStart || b.d.Ramps(b.index("e"), b.now) {
			t.Errorf("%v: a slow start without end: %+v", mode, s)
		}
		b.d.SetStanding(b.index("e"), outlier.Drained, b.now)
		b.d.SetStanding(b.index("e"), outlier.Usable, b.now)
		b.d.SetSlowStart(&outlier.Ramp{Window: -1}, b.now)
		b.wants("off", "e", 1)
	}
}

// What SetStanding brings may be known some time after it was: it begins with the next sweep.
func TestSlowStartBeginsWithTheNextSweep(t *testing.T) {
	b := newStarts(t, outlier.NoEjection, "a", "b", "c", "d")
	b.at(20 * time.Second)
	b.d.SetStanding(3, outlier.Failing, b.now)
	b.d.SetStanding(3, outlier.Usable, b.now)
	b.at(29 * time.Second)
	if got := b.d.RampFactor(3, b.now); got != 0.1 {
		t.Errorf("%v before the sweep, want the floor", got)
	}
	b.wants("the sweep", "d", 0.1)
	b.at(34 * time.Second)
	b.wants("5 s later", "d", 0.5)
}

// Lists whose IDs are others each time leave nothing behind, and one that misses many members for a moment is
// not taken for that.
func TestSlowStartsOfWhoLeftAreBounded(t *testing.T) {
	b := newStarts(t, outlier.NoEjection, "a", "b", "c", "d")
	for i := range 1000 {
		ids := []string{"a"}
		for k := range 10 {
			ids = append(ids, fmt.Sprint(i, k))
		}
		b.update(ids...)
		if n := b.d.Left(); n > 2*11 {
			t.Fatalf("%d are remembered of a list of 11", n)
		}
	}
	b.at(11 * time.Second)
	b.sweep()
	if n := b.d.Left(); n != 0 {
		t.Errorf("%d are remembered after 11 s", n)
	}
}

func TestBug63ClockStepsNeitherEndNorFreezeASlowStart(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, 1000 * time.Hour} {
		b := newStarts(t, outlier.NoEjection, "a", "b", "c", "d")
		b.at(2 * time.Hour)
		b.update("a", "b", "c", "d", "e")
		b.at(2*time.Hour + 3*time.Second)
		b.wants("before the step", "e", 0.3)
		if step < 0 { // of a member
			stays := newStarts(t, outlier.NoEjection, "a", "b", "c", "d")
			stays.at(2 * time.Hour)
			stays.update("a", "b", "c", "d", "e")
			stays.at(2*time.Hour + step)
			stays.wants("an hour back", "e", 0.1)
			stays.at(2*time.Hour + 5*time.Second + step)
			stays.wants("5 s later", "e", 0.5)
		}
		b.update("a", "b", "c", "d")
		b.at(2*time.Hour + 3*time.Second + step)
		if step > 0 { // a gap counts as an hour, by which it is over
			b.update("a", "b", "c", "d", "e")
			b.wants("away for an hour", "e", 0.1)
			continue
		}
		b.update("a", "b", "c", "d", "e")
		b.wants("an hour back", "e", 0.3)
		b.at(2*time.Hour + 5*time.Second + step)
		b.wants("two seconds later", "e", 0.5)
	}
}

// startModel is who ought to have which factor, by the rules as they are told.
type startModel struct {
	from, away, left map[string]int64 // instants
	earned           map[string]bool
}

// list replaces the list, with standings.
func list(b *bench, ids []string, standing map[string]outlier.Standing) {
	b.t.Helper()
	members := make([]outlier.Member, len(ids))
	for k, id := range ids {
		members[k] = outlier.Member{ID: id, Standing: standing[id]}
	}
	if _, err := b.d.Update(members, b.now); err != nil {
		b.t.Fatal(err)
	}
}

// The tracking agrees with a naive account of it over random histories.
func TestSlowStartsAgreeWithANaiveAccount(t *testing.T) {
	const long, window = int64(10 * time.Second), int64(10 * time.Second)
	r := rand.New(rand.NewPCG(8, 8))
	for range 30 {
		ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
		b := newStarts(t, outlier.NoEjection, ids...)
		standing := map[string]outlier.Standing{}
		m := startModel{map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]bool{}}
		back := func(id string) {
			if at, away := m.away[id]; m.earned[id] || away && b.now-at >= long {
				m.from[id] = b.now
			}
			delete(m.away, id)
			delete(m.earned, id)
		}
		goes := func(id string) {
			if _, away := m.away[id]; !away {
				m.away[id] = b.now
			}
		}
		for range 300 {
			b.now += r.Int64N(int64(4 * time.Second))
			b.sweep()
			id := fmt.Sprintf("%c", 'a'+rune(r.IntN(12)))
			at := slices.Index(ids, id)
			switch {
			case r.IntN(3) == 0 && at >= 0 && len(ids) > 9:
				ids = slices.Delete(slices.Clone(ids), at, at+1)
				list(b, ids, standing)
				goes(id)
				m.left[id] = b.now
				delete(standing, id)
			case at < 0:
				ids = append(slices.Clone(ids), id)
				list(b, ids, standing)
				if b.now-m.left[id] >= long || b.now-m.away[id] >= long {
					m.earned[id] = true
				}
				back(id)
			case at >= 0:
				s := outlier.Standing(r.IntN(4))
				if s == standing[id] {
					continue
				}
				b.d.SetStanding(at, s, b.now)
				standing[id] = s
				if s == outlier.Usable {
					back(id)
				} else {
					goes(id)
					m.earned[id] = m.earned[id] || s != outlier.Unready
				}
			}
			b.sweep()
			open, ramping := 0, 0
			for _, o := range ids {
				if standing[o] == outlier.Usable {
					open++
					if from, ok := m.from[o]; ok && b.now-from < window {
						ramping++
					}
				}
			}
			for k, o := range ids {
				want := 1.0
				if from, ok := m.from[o]; ok && standing[o] == outlier.Usable && open > 1 && 2*ramping <= open {
					want = outlier.SlowStart(time.Duration(b.now-from), time.Duration(window), 1, 0.1)
				}
				if got := b.d.RampFactor(k, b.now); math.Abs(got-want) > 1e-9 {
					t.Fatalf("at %v %s (%v) has %v, want %v", time.Duration(b.now), o, standing[o], got, want)
				}
			}
		}
	}
}
