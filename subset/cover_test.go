package subset

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// coverSelector returns a Selector with its first subset, who is down, and what the subset is at some second.
func coverSelector(t *testing.T, min int) (*Selector, []int, map[int]bool, func(seconds int) []int) {
	t.Helper()
	s := newSelector(t, Config{Algorithm: UseRendezvous, Size: 12, MinAvailable: min, Seed: 7})
	base := update(t, s, listOf(everybody(100)))
	down := map[int]bool{}
	return s, base, down, func(seconds int) []int {
		got, changed := s.Cover(int64(seconds)*int64(time.Second), func(i int) bool { return down[i] })
		if again, more := s.Cover(int64(seconds)*int64(time.Second), func(i int) bool { return down[i] }); more || !slices.Equal(got, again) {
			t.Errorf("at %d s: %v (%v), and then %v", seconds, got, changed, again)
		}
		return got
	}
}

func TestCoverAddsTheNextOnesAndGivesThemBack(t *testing.T) {
	_, base, down, at := coverSelector(t, 10)
	m := listOf(everybody(100))
	all, _ := Order(Client{Seed: 7}, m)
	if got := at(0); !slices.Equal(got, base) {
		t.Fatalf("with all up it is %v", got)
	}
	for _, i := range base[:5] {
		down[i] = true
	}
	down[all[12]] = true // the next one is down too: it is passed over
	want := ascendingInts(append(slices.Clone(base), all[13:16]...))
	if got := at(1); !slices.Equal(got, want) {
		t.Fatalf("with five down it is %v, want %v", got, want)
	}
	down[base[0]], down[base[1]] = false, false
	for _, s := range []int{2, 30, 61} {
		if got := at(s); !slices.Equal(got, want) {
			t.Fatalf("after %d s it is %v, want %v still", s, got, want)
		}
	}
	want = ascendingInts(append(slices.Clone(base), all[13]))
	if got := at(62); !slices.Equal(got, want) {
		t.Fatalf("a minute after two are up it is %v, want %v", got, want)
	}
	clear(down)
	at(63)
	if got := at(124); !slices.Equal(got, base) {
		t.Fatalf("a minute after all are up it is %v, want %v", got, base)
	}
}

func TestCoverDoesNotFlap(t *testing.T) {
	_, base, down, at := coverSelector(t, 12)
	var seen [][]int
	for s := range 600 {
		down[base[3]] = s%40 < 20 // up for 20 s, down for 20 s
		down[base[5]] = s%14 < 5
		seen = append(seen, at(s))
	}
	changed := 0
	for i := 1; i < len(seen); i++ {
		if !slices.Equal(seen[i-1], seen[i]) {
			changed++
		}
	}
	if changed > 2 {
		t.Errorf("two flapping endpoints change the subset %d times", changed)
	}
}

func TestCoverIsBounded(t *testing.T) {
	s, base, _, _ := coverSelector(t, 12)
	everything := func(int) bool { return true }
	for second := range 5 {
		// What was added is not known to be down yet, and then it is.
		got, _ := s.Cover(int64(second), func(i int) bool { return slices.Contains(s.Subset(), i) })
		if len(got) > 2*len(base) {
			t.Fatalf("%d endpoints of a size of %d", len(got), len(base))
		}
	}
	if got, changed := s.Cover(10, everything); changed || len(got) != 24 {
		t.Errorf("with all down there are %d, changed %v", len(got), changed)
	}
	none := newSelector(t, Config{MinAvailable: -1})
	want := update(t, none, listOf(everybody(100)))
	if got, _ := none.Cover(0, everything); !slices.Equal(got, want) {
		t.Errorf("-1 adds: %v", got)
	}
	few := newSelector(t, Config{})
	update(t, few, listOf(everybody(5)))
	if got, changed := few.Cover(0, everything); changed || len(got) != 5 {
		t.Errorf("there are no more than five: %v", got)
	}
}

// A new list keeps what was added, by its name.
func TestCoverComesThroughAnUpdate(t *testing.T) {
	s, base, down, at := coverSelector(t, 12)
	down[base[0]], down[base[1]] = true, true
	before := names(listOf(everybody(100)), at(0))
	reversed := listOf(everybody(100))
	slices.Reverse(reversed.IDs)
	reversed.Ordinals = nil
	if after := names(reversed, update(t, s, reversed)); !slices.Equal(before, after) {
		t.Errorf("%v becomes %v", before, after)
	}
	added := s.cover.added[0]
	less := Members{IDs: slices.Delete(slices.Clone(reversed.IDs), added, added+1)}
	if got := update(t, s, less); len(got) != 13 {
		t.Errorf("without one that was added there are %d, want 13", len(got))
	}
}

// Whatever happens, there are enough while there can be, and the naive count agrees.
func TestCoverKeepsEnoughUnderRandomChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range 40 {
		s := newSelector(t, Config{Size: 12, MinAvailable: 1 + r.IntN(14), ClientIndex: IndexOf(r.IntN(100)), Seed: 3})
		n := 20 + r.IntN(200)
		update(t, s, Members{IDs: endpointNames[:n]})
		down := map[int]bool{}
		for step := range 200 {
			i := r.IntN(n)
			down[i] = r.IntN(3) == 0
			if r.IntN(20) == 0 {
				n = max(20, n+r.IntN(21)-10)
				update(t, s, Members{IDs: endpointNames[:n]})
			}
			got, _ := s.Cover(int64(step)*int64(5*time.Second), func(i int) bool { return down[i] })
			up := 0
			for _, i := range got {
				if !down[i] {
					up++
				}
			}
			if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) || got[len(got)-1] >= n {
				t.Fatalf("%v of %d", got, n)
			}
			if up < s.config.MinAvailable && len(s.cover.added) < s.size && len(got) < n {
				for i := range n {
					if !down[i] && !slices.Contains(got, i) {
						t.Fatalf("%d of %v are up, and %d could be added", up, got, i)
					}
				}
			}
		}
	}
}

// Two were added. One of them is not needed for a minute, the other at times: it stays.
func TestCoverGivesBackOnlyWhatCouldGoAllTheTime(t *testing.T) {
	_, base, down, at := coverSelector(t, 12)
	down[base[0]], down[base[1]] = true, true
	if got := at(0); len(got) != 14 {
		t.Fatalf("%d with two down, want 14", len(got))
	}
	down[base[0]] = false
	for s := 1; s < 61; s++ {
		down[base[1]] = s%20 < 15
		if got := at(s); len(got) != 14 {
			t.Fatalf("%d after %d s, want 14", len(got), s)
		}
	}
	down[base[1]] = false
	if got := at(61); len(got) != 13 {
		t.Errorf("%d after a minute, want 13", len(got))
	}
}

// One was not needed for most of a minute, and then others had to be added: it has to be without
// need for a whole minute again.
func TestCoverStartsAnewWhenMoreIsAdded(t *testing.T) {
	s, base, down, _ := coverSelector(t, 12)
	at := func(second, want int) {
		t.Helper()
		got, _ := s.Cover(int64(second)*int64(time.Second), func(i int) bool { return down[i] })
		if len(got) != want {
			t.Fatalf("%d after %d s, want %d", len(got), second, want)
		}
	}
	down[base[0]] = true
	at(0, 13)
	down[base[0]] = false
	at(1, 13)
	down[base[1]], down[base[2]] = true, true
	at(50, 14)
	clear(down)
	at(51, 14)
	at(61, 14)
	at(110, 14)
	at(111, 12)
}

func TestCoverDoesNotDependOnTheCallersList(t *testing.T) {
	m := listOf(everybody(100))
	s := newSelector(t, Config{Size: 12, Seed: 7, MinAvailable: 12})
	base := update(t, s, m)
	clear(m.IDs)
	down := func(i int) bool { return i == base[0] }
	got, _ := s.Cover(0, down)
	all, _ := Order(Client{Seed: 7}, listOf(everybody(100)))
	if want := ascendingInts(append(base, all[12])); !slices.Equal(got, want) {
		t.Errorf("with one down it is %v, want %v", got, want)
	}
}

// With a size of four, eight dead endpoints would be all that a client ever tries. Others get their
// turn, not more at a time, and what is known to be of no use is left out.
func TestCoverTriesOthersWhileNobodyIsAvailable(t *testing.T) {
	for _, known := range []bool{false, true} {
		s := newSelector(t, Config{Size: 4, Seed: 7, MinAvailable: 2})
		update(t, s, listOf(everybody(40)))
		tried := map[int]bool{}
		down := func(i int) bool { return tried[i] && slices.Contains(s.Subset(), i) || known && i%2 == 0 }
		turns := 0
		for second := range 1200 {
			got, changed := s.Cover(int64(second)*int64(time.Second), down)
			if len(got) > 8 {
				t.Fatalf("%d endpoints of a size of four", len(got))
			}
			if changed {
				turns++
			}
			for _, i := range got {
				tried[i] = true
			}
		}
		if want := 20; len(tried) < want || !known && len(tried) != 40 || turns > 2+1200/60 {
			t.Errorf("known %v: %d were tried in %d turns", known, len(tried), turns)
		}
		for i := range tried {
			if _, base := slices.BinarySearch(s.base, i); known && i%2 == 0 && !base {
				t.Errorf("%d was known to be down", i)
			}
		}
	}
}

// As soon as one is available, nobody makes room any more; and who is alone in being up is found.
func TestCoverStaysWhileSomebodyIsAvailable(t *testing.T) {
	s := newSelector(t, Config{Size: 4, Seed: 7, MinAvailable: 2})
	update(t, s, listOf(everybody(40)))
	m := listOf(everybody(40))
	all, _ := Order(Client{Seed: 7}, m)
	up := all[len(all)-1]
	down := func(i int) bool { return i != up && slices.Contains(s.Subset(), i) }
	var found int
	for second := range 3600 {
		got, changed := s.Cover(int64(second)*int64(time.Second), down)
		switch has := slices.Contains(got, up); {
		case has && found == 0:
			found = second
		case found > 0 && (changed || !has):
			t.Fatalf("at %d s the subset changed to %v, after one was found at %d s", second, got, found)
		}
	}
	if found == 0 {
		t.Error("the only one that is up was never found")
	}
}
