package hash

import (
	"runtime"
	"testing"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

func TestMaglevBuildNeedsLittleBesidesTheTable(t *testing.T) {
	for name, list := range map[string][]Endpoint{
		"equal":        fleet(1000),
		"1:1000":       append(fleet(999), Endpoint{ID: "heavy", Weight: 1000}),
		"1..10":        weighted(1000, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
		"a thousandth": append(weighted(999, 0.001), Endpoint{ID: "heavy", Weight: 1_000_000}),
	} {
		var m *Maglev
		total := allocated(func() { m = newTestMaglev(t, list, MaglevConfig{}) })
		if scratch := total - m.Stats().Bytes; scratch > 1<<20 {
			t.Errorf("%s: a build needs %d bytes besides the table's %d, want at most a MiB", name, scratch, m.Stats().Bytes)
		}
	}
}

func TestMaglevBytesAreOneOrTwoASlot(t *testing.T) {
	for _, c := range []struct{ n, slot int }{{10, 1}, {255, 1}, {1000, 2}, {10_000, 2}} {
		s := newTestMaglev(t, fleet(c.n), MaglevConfig{}).Stats()
		if want := c.slot*DefaultMaglevSize + 40*c.n; s.Bytes != want {
			t.Errorf("%d endpoints: %d bytes, want %d a slot and 40 an endpoint, %d", c.n, s.Bytes, c.slot, want)
		}
	}
}

// What Stats says is held is what is held.
func TestRingHoldsWhatItsStatsSay(t *testing.T) {
	list := fleet(625)
	var ring *Ring
	keep := func() { ring = newTestRing(t, list, RingConfig{}) }
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	keep()
	runtime.GC()
	runtime.ReadMemStats(&after)
	held, said := int(after.HeapAlloc)-int(before.HeapAlloc), ring.Stats().Bytes
	if held > said+said/20+8192 { // size classes, and a page or two of the runtime's own
		t.Errorf("the ring holds %d bytes, Stats says %d", held, said)
	}
	runtime.KeepAlive(ring)
	runtime.KeepAlive(list)
}

func TestSharesInStats(t *testing.T) {
	s := newTestMaglev(t, weighted(100, 1, 10), MaglevConfig{}).Stats()
	// 119.16 slots a unit of weight: 119 at least and 120 at most.
	if s.Endpoints != 100 || s.Slots != DefaultMaglevSize || s.MinShare < 118/119.2 || s.MinShare > 1 || s.MaxShare < 1 || s.MaxShare > 120/119.1 {
		t.Errorf("the table's stats are %+v", s)
	}
	r := newTestRing(t, fleet(100), RingConfig{}).Stats()
	if r.Slots != 16_000 || r.MinShare < 0.7 || r.MinShare > 0.92 || r.MaxShare < 1.1 || r.MaxShare > 1.35 {
		t.Errorf("the ring's stats are %+v", r)
	}
	if one := newTestRing(t, fleet(1), RingConfig{}).Stats(); one.MinShare != 1 || one.MaxShare != 1 {
		t.Errorf("the stats of a ring of one are %+v", one)
	}
	if one := newTestRing(t, fleet(1), RingConfig{Points: 1}).Stats(); one.MinShare != 1 || one.MaxShare != 1 || one.Slots != 1 {
		t.Errorf("the stats of a ring of one point are %+v", one)
	}
}
