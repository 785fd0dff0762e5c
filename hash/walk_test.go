package hash

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"
)

// keyTable is what tables of this file have in common.
type keyTable interface {
	Lookup(key uint64) int
	Candidates(key uint64) iter.Seq[int]
	Walk(key uint64) Walk
	AppendN(dst []int, key uint64, n int) []int
	Fingerprint() uint64
	Stats() Stats
}

// eachTable calls f with each kind of table of a list.
func eachTable(t *testing.T, list []Endpoint, f func(t *testing.T, name string, table keyTable)) {
	t.Helper()
	f(t, fmt.Sprintf("maglev of %d", len(list)), newTestMaglev(t, list, MaglevConfig{Size: 1009, Seed: 3}))
	f(t, fmt.Sprintf("ring of %d", len(list)), newTestRing(t, list, RingConfig{Seed: 3}))
	f(t, fmt.Sprintf("ketama of %d", len(list)), newTestRing(t, list, RingConfig{Ketama: true}))
	f(t, fmt.Sprintf("rendezvous of %d", len(list)), mustRendezvous(t, list, RendezvousConfig{Seed: 3}))
}

func TestCandidatesAreEachEndpointOnce(t *testing.T) {
	for _, list := range [][]Endpoint{
		fleet(1), fleet(2), fleet(3), fleet(8), fleet(9), fleet(10), fleet(100), fleet(300),
		weighted(30, 1, 0, 2), weighted(7, 0, 0, 1), append(fleet(12), Endpoint{ID: "heavy", Weight: 10_000}),
	} {
		var want []int
		for i, e := range list {
			if e.Weight > 0 {
				want = append(want, i)
			}
		}
		eachTable(t, list, func(t *testing.T, name string, table keyTable) {
			for _, key := range append(someKeys(11, 50), 0, 1, math.MaxUint64) {
				got := slices.Collect(table.Candidates(key))
				if len(got) == 0 || got[0] != table.Lookup(key) {
					t.Fatalf("%s: key %d has candidates %v, want the owner %d first", name, key, got, table.Lookup(key))
				}
				var walked []int
				for w := table.Walk(key); ; {
					i, ok := w.Next()
					if !ok {
						if again, ok := w.Next(); ok || again != -1 || i != -1 {
							t.Fatalf("%s: a walk that has ended goes on with %d", name, again)
						}
						break
					}
					walked = append(walked, i)
				}
				if !slices.Equal(walked, got) {
					t.Fatalf("%s: a walk for key %d goes %v, want %v", name, key, walked, got)
				}
				for _, n := range []int{-1, 0, 1, 2, 5, len(got), len(got) + 5} {
					some := table.AppendN([]int{-7}, key, n)
					if want := append([]int{-7}, got[:max(min(n, len(got)), 0)]...); !slices.Equal(some, want) {
						t.Fatalf("%s: AppendN of %d gives %v, want %v", name, n, some, want)
					}
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("%s: key %d has candidates %v, want each of %v once", name, key, got, want)
				}
			}
		})
	}
}

func TestAZeroWalkHasNoCandidates(t *testing.T) {
	var w Walk
	if i, ok := w.Next(); ok || i != -1 {
		t.Errorf("a zero walk gives %d, %v", i, ok)
	}
}

func TestCandidatesStopWhenTheCallerDoes(t *testing.T) {
	eachTable(t, fleet(20), func(t *testing.T, name string, table keyTable) {
		for n := 1; n < 20; n++ {
			seen := 0
			for range table.Candidates(5) {
				if seen++; seen == n {
					break
				}
			}
			if seen != n {
				t.Errorf("%s: %d candidates, want %d", name, seen, n)
			}
		}
	})
}

// The keys of one endpoint that is down must not all fall to the same neighbour.
func TestTheKeysOfOneDeadEndpointSpreadOverAllOthers(t *testing.T) {
	list := fleet(10)
	eachTable(t, list, func(t *testing.T, name string, table keyTable) {
		counts := make([]int, len(list))
		total := 0
		for _, key := range someKeys(12, 50_000) {
			if c := table.AppendN(nil, key, 2); c[0] == 4 {
				counts[c[1]]++
				total++
			}
		}
		for i, n := range counts {
			// A ring of 160 points gives shares that differ by a fifth or so; 2 is far from all.
			if share := float64(n) / float64(total) * 9; i != 4 && (share < 0.4 || share > 2) {
				t.Errorf("%s: endpoint %d gets %.2f of a fair share of the dead one's keys", name, i, share)
			}
		}
	})
}

// With everybody but two down, those two share the load, whatever the order of their IDs and
// whatever the keys.
func TestTheEndOfAWalkSpreadsToo(t *testing.T) {
	list := fleet(100)
	consecutive := make([]uint64, 2000)
	for i := range consecutive {
		consecutive[i] = uint64(i)
	}
	eachTable(t, list, func(t *testing.T, name string, table keyTable) {
		for kind, keys := range map[string][]uint64{"hashes": someKeys(13, 2000), "consecutive": consecutive} {
			counts := [2]int{}
			for _, key := range keys {
				for i := range table.Candidates(key) {
					if i == 20 || i == 70 {
						counts[i/50]++
						break
					}
				}
			}
			if counts[0] < 850 || counts[1] < 850 { // seven standard deviations below 1000
				t.Errorf("%s, %s: the last two get %v of 2000 keys, want about half each", name, kind, counts)
			}
		}
	})
}

// A zone's endpoints often have IDs that are neighbours. When all zones but one are down, that
// one's endpoints share the load, and none gets what is meant for the others.
func TestAnOutageOfNeighboursSpreads(t *testing.T) {
	for _, c := range []struct{ n, from, to int }{{100, 45, 55}, {100, 90, 100}, {300, 0, 30}, {129, 100, 128}, {1000, 500, 510}} {
		eachTable(t, fleet(c.n), func(t *testing.T, name string, table keyTable) {
			up := c.to - c.from
			counts := make([]int, up)
			for _, key := range someKeys(19, 500*up) {
				for i := range table.Candidates(key) {
					if c.from <= i && i < c.to {
						counts[i-c.from]++
						break
					}
				}
			}
			for k, n := range counts {
				// Rings are uneven by themselves.
				if share := float64(n) / 500; share < 0.6 || share > 1.5 {
					t.Errorf("%s, %d to %d are up: number %d has %.2f times the mean, want 0.6 to 1.5", name, c.from, c.to, c.from+k, share)
				}
			}
		})
	}
}

// A ring of which one endpoint has nearly all points is not searched to the end.
func TestAWalkLooksAtABoundedNumberOfPoints(t *testing.T) {
	ring := newTestRing(t, append(fleet(12), Endpoint{ID: "heavy", Weight: 10_000}), RingConfig{})
	for _, key := range someKeys(18, 200) {
		s := walkState{key: key}
		for ring.next(&s) >= 0 {
		}
		if s.score > ringScan {
			t.Fatalf("key %d: a walk looked at %d points, want at most %d", key, s.score, ringScan)
		}
	}
}

// A table is on the path of every request: an allocation there would be paid by each.
func TestLookupsAndWalksDoNotAllocate(t *testing.T) {
	m := newTestMaglev(t, fleet(300), MaglevConfig{})
	r := newTestRing(t, fleet(300), RingConfig{})
	buf := make([]int, 0, 20)
	key := uint64(0)
	for name, f := range map[string]func(){
		"Sum":                        func() { sink += int(Sum("a key of some length, more than a block of 32 bytes")) },
		"SumSeed":                    func() { sink += int(SumSeed("a key", 7)) },
		"KetamaSum":                  func() { sink += int(KetamaSum("a key")) },
		"Maglev.Lookup":              func() { sink += m.Lookup(key) },
		"Ring.Lookup":                func() { sink += r.Lookup(key) },
		"Maglev.AppendN":             func() { buf = m.AppendN(buf[:0], key, 20) },
		"Ring.AppendN":               func() { buf = r.AppendN(buf[:0], key, 20) },
		"Maglev.Walk":                func() { w := m.Walk(key); walkTo(&w, 20) },
		"Ring.Walk":                  func() { w := r.Walk(key); walkTo(&w, 20) },
		"Maglev behind an interface": func() { w := keyTable(m).Walk(key); walkTo(&w, 20) },
		"Ring behind an interface":   func() { w := keyTable(r).Walk(key); walkTo(&w, 20) },
		"Maglev.Candidates": func() {
			left := 20
			for i := range m.Candidates(key) {
				sink += i
				if left--; left == 0 {
					break
				}
			}
		},
		"Ring.Candidates": func() {
			left := 20
			for i := range r.Candidates(key) {
				sink += i
				if left--; left == 0 {
					break
				}
			}
		},
	} {
		if n := testing.AllocsPerRun(100, func() { key += golden; f() }); n != 0 {
			t.Errorf("%s makes %v allocations, want 0", name, n)
		}
	}
}

func walkTo(w *Walk, n int) {
	for range n {
		i, _ := w.Next()
		sink += i
	}
}
