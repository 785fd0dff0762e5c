package hash

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

// cpuRatio returns the processor time of a over that of b: the least of several runs of each,
// in turns, without the collector.
func cpuRatio(t *testing.T, a, b func()) float64 {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	least := testcost.Least(t, 9, runtime.GC, a, b)
	return float64(least[1]) / float64(max(least[2], 1))
}

// checkRatio fails if a takes more than twice the bar of b: processor time is noisy, and the
// bars are what benchmarks are judged by.
func checkRatio(t *testing.T, what string, bar float64, a, b func()) {
	t.Helper()
	ratio := cpuRatio(t, a, b)
	t.Logf("%s: %.3f, bar %.2f", what, ratio, bar)
	if ratio > 2*bar {
		t.Errorf("%s: %.3f of the plain form's time, want at most %.2f", what, ratio, bar)
	}
}

func skipTiming(t *testing.T) {
	t.Helper()
	if testcost.Race || testing.CoverMode() != "" || strconv.IntSize < 64 {
		t.Skip("processor times say something in a plain build for 64 bits only")
	}
}

func TestMaglevLookupTakesHalfOfThePlainForm(t *testing.T) {
	skipTiming(t)
	keys := someKeys(20, 1<<12)
	for _, n := range []int{100, 1000} {
		m := newTestMaglev(t, fleet(n), MaglevConfig{})
		plain := newPlainMaglev(m.list.points, m.size)
		checkRatio(t, "Maglev lookup, n="+strconv.Itoa(n), 0.5, func() {
			for range 500 {
				for _, key := range keys {
					sink += m.Lookup(key)
				}
			}
		}, func() {
			for range 500 {
				for _, key := range keys {
					sink += plain.lookup(key)
				}
			}
		})
	}
}

func TestMaglevBuildTakesLessThanThePlainForm(t *testing.T) {
	skipTiming(t)
	equal, skewed := fleet(1000), append(fleet(999), Endpoint{ID: "heavy", Weight: 1000})
	points := newTestMaglev(t, equal, MaglevConfig{}).list.points
	build := func(list []Endpoint) func() { return func() { newTestMaglev(t, list, MaglevConfig{}) } }
	checkRatio(t, "Maglev build, n=1000", 0.7, build(equal), func() { newPlainMaglev(points, DefaultMaglevSize) })
	checkRatio(t, "Maglev build, weights 1:1000 over equal ones", 1.5, build(skewed), build(equal))
}

func TestRingLookupTakesAFractionOfABinarySearch(t *testing.T) {
	skipTiming(t)
	for _, c := range []struct {
		points int
		bar    float64
	}{{10_000, 0.2}, {100_000, 0.15}, {1_000_000, 0.4}} {
		ring := newTestRing(t, fleet(1000), RingConfig{Points: c.points / 1000})
		plain := newPointerRing(ring)
		keys := someKeys(21, 1<<16)
		checkRatio(t, "ring lookup, points="+strconv.Itoa(c.points), c.bar, func() {
			for range 2 {
				for _, key := range keys {
					sink += ring.Lookup(key)
				}
			}
		}, func() {
			for range 2 {
				for _, key := range keys {
					sink += plain.lookup(ring.place(key))
				}
			}
		})
	}
}

func TestRingUpdateTakesAFractionOfARebuild(t *testing.T) {
	skipTiming(t)
	list := fleet(625) // 100,000 points
	ring := newTestRing(t, list, RingConfig{})
	less := without(list, 300)
	update := func() {
		for range 2 {
			if _, err := ring.Update(less); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkRatio(t, "one of 625 removed, over a rebuild of a pointer ring", 0.15, update, func() {
		for range 2 {
			rebuildPointerRing(less, DefaultRingPoints)
		}
	})
	checkRatio(t, "the same over a build of this ring", 0.3, update, func() {
		for range 2 {
			newTestRing(t, less, RingConfig{})
		}
	})
}

// The plain forms answer as the tables do, or the comparison would be worth nothing.
func TestPlainFormsAreTheSameStructures(t *testing.T) {
	ring := newTestRing(t, weighted(50, 1, 2), RingConfig{})
	plain := newPointerRing(ring)
	for _, key := range someKeys(22, 10_000) {
		if got, want := ring.Lookup(key), plain.lookup(ring.place(key)&^ownerMask); got != want {
			t.Fatalf("key %d belongs to %d, with pointers to %d", key, got, want)
		}
	}
	slots := make([]int, 10)
	for _, i := range newPlainMaglev(newTestMaglev(t, fleet(10), MaglevConfig{}).list.points, DefaultMaglevSize).slots {
		slots[i]++
	}
	for i, n := range slots {
		if n != 6553 && n != 6554 {
			t.Errorf("endpoint %d of the plain table has %d slots", i, n)
		}
	}
}
