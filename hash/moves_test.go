package hash

import (
	"math"
	"slices"
	"testing"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

// moves counts keys that changed owner between two lists: those that had to, because the old
// owner is gone or the new one came, and those between two endpoints in both.
func moves(keys []uint64, before, after []Endpoint, was, is func(uint64) int) (needed, avoidable int) {
	old, new := map[string]float64{}, map[string]float64{}
	for _, e := range before {
		old[e.ID] = e.Weight
	}
	for _, e := range after {
		new[e.ID] = e.Weight
	}
	for _, key := range keys {
		a, b := before[was(key)].ID, after[is(key)].ID
		switch {
		case a == b:
		case old[a] == new[a] && old[b] == new[b]:
			avoidable++
		default:
			needed++
		}
	}
	return needed, avoidable
}

// The table's slots are all the keys there are, so this is exact.
func TestMaglevMovesFewKeysBetweenEndpointsThatStay(t *testing.T) {
	for _, c := range []struct {
		n, size int
		bar     float64
	}{
		{10, DefaultMaglevSize, 0.004}, {100, DefaultMaglevSize, 0.006}, {400, DefaultMaglevSize, 0.0105}, {1000, DefaultMaglevSize, 0.008},
		{100, 655_373, 0.0016},
	} {
		if testcost.Race && c.size > DefaultMaglevSize {
			continue // ten seconds of the same code
		}
		list := fleet(c.n)
		full := slotOwners(newTestMaglev(t, list, MaglevConfig{Size: c.size}), list)
		mean := 0.0
		const removals = 10
		for k := range removals {
			gone := k * c.n / removals
			less := without(list, gone)
			now := slotOwners(newTestMaglev(t, less, MaglevConfig{Size: c.size}), less)
			excess := 0
			for s := range full {
				if full[s] != now[s] && full[s] != list[gone].ID {
					excess++
				}
			}
			mean += float64(excess) / float64(c.size) / removals
		}
		t.Logf("%d endpoints, %d slots: %.3f %% of keys move that need not", c.n, c.size, 100*mean)
		if mean > c.bar {
			t.Errorf("%d endpoints, %d slots: %.3f %% of keys move that need not, want at most %.2f %%", c.n, c.size, 100*mean, 100*c.bar)
		}
	}
}

func TestMaglevMovesFewKeysWhenOneWeightChanges(t *testing.T) {
	list := weighted(100, 100)
	full := newTestMaglev(t, list, MaglevConfig{})
	for _, c := range []struct{ weight, bar float64 }{{90, 0.006}, {200, 0.02}} {
		other := slices.Clone(list)
		other[50].Weight = c.weight
		moved := 0
		next := newTestMaglev(t, other, MaglevConfig{})
		for s := range full.slots8 {
			if full.slots8[s] != next.slots8[s] {
				moved++
			}
		}
		if share := float64(moved) / DefaultMaglevSize; share > c.bar {
			t.Errorf("weight 100 to %v of one of 100: %.2f %% of keys move, want at most %.1f %%", c.weight, 100*share, 100*c.bar)
		}
	}
}

func TestRingMovesNoKeyBetweenEndpointsThatStay(t *testing.T) {
	keys := someKeys(7, 20_000)
	for _, list := range [][]Endpoint{
		fleet(2), fleet(5), fleet(10), fleet(31), fleet(32), fleet(100), fleet(1000),
		weighted(10, 1, 2, 3), weighted(100, 0.01, 0.5, 1, 7), append(fleet(50), Endpoint{ID: "heavy", Weight: 1000}),
	} {
		ring := newTestRing(t, list, RingConfig{})
		for _, i := range []int{0, len(list) / 2, len(list) - 1} {
			less := without(list, i)
			smaller := newTestRing(t, less, RingConfig{})
			if _, extra := moves(keys, list, less, ring.Lookup, smaller.Lookup); extra != 0 {
				t.Errorf("%d endpoints, %s removed: %d of other's keys moved", len(list), list[i].ID, extra)
			}
			if _, extra := moves(keys, less, list, smaller.Lookup, ring.Lookup); extra != 0 {
				t.Errorf("%d endpoints, %s added: %d of other's keys moved", len(list), list[i].ID, extra)
			}
			other := slices.Clone(list)
			other[i].Weight *= 1.7
			heavier := newTestRing(t, other, RingConfig{})
			for _, key := range keys {
				if a, b := ring.Lookup(key), heavier.Lookup(key); a != b && b != i {
					t.Fatalf("%d endpoints, %s heavier: key %d went to %d", len(list), list[i].ID, key, b)
				}
			}
		}
	}
}

// The gap that this leaves behind is filled by whoever is next: the second candidate.
func TestRingSecondCandidateIsTheOwnerAfterARemoval(t *testing.T) {
	list := weighted(40, 1, 3)
	ring := newTestRing(t, list, RingConfig{})
	for i := range list {
		less := without(list, i)
		smaller := newTestRing(t, less, RingConfig{})
		for _, key := range someKeys(uint64(i), 500) {
			if c := ring.AppendN(nil, key, 2); c[0] == i && list[c[1]].ID != less[smaller.Lookup(key)].ID {
				t.Fatalf("key %d goes to %s without %s, want %s", key, less[smaller.Lookup(key)].ID, list[i].ID, list[c[1]].ID)
			}
		}
	}
}

// Reference values of the plain models.
type seedReference struct {
	Hash struct {
		Mod1011    struct{ Exact float64 } `json:"mod10_11"`
		Tolerances struct {
			Ring100Min       [2]int     `json:"ring100_min"`
			Ring100Max       [2]int     `json:"ring100_max"`
			Ring1000Min      [2]int     `json:"ring1000_min"`
			Ring1000Max      [2]int     `json:"ring1000_max"`
			MaglevSlotsMoved [2]float64 `json:"maglev_table_slots_moved"`
			MaglevKeysMoved  [2]float64 `json:"maglev_keys_moved"`
			ModuloMoved      [2]float64 `json:"modulo_moved"`
		}
	}
}

func TestModuloMovesTenOfElevenKeys(t *testing.T) {
	var ref seedReference
	readJSON(t, "seed-reference.json", &ref)
	moved := 0
	for h := range 110 {
		if h%10 != h%11 {
			moved++
		}
	}
	if got := float64(moved) / 110; math.Abs(got-ref.Hash.Mod1011.Exact) > 1e-12 || moved != 100 {
		t.Errorf("10 to 11 by modulo moves %v of keys, want %v", got, ref.Hash.Mod1011.Exact)
	}
	moved = 0
	keys := someKeys(8, 100_000)
	for _, key := range keys {
		if key%100 != key%99 {
			moved++
		}
	}
	if got, want := float64(moved)/float64(len(keys)), ref.Hash.Tolerances.ModuloMoved; got < want[0] || got > want[1] {
		t.Errorf("100 to 99 by modulo moves %v of keys, want %v to %v", got, want[0], want[1])
	}
	ten, eleven := newTestRing(t, fleet(10), RingConfig{}), newTestRing(t, fleet(11), RingConfig{})
	if _, extra := moves(keys, fleet(10), fleet(11), ten.Lookup, eleven.Lookup); extra != 0 {
		t.Errorf("10 to 11 by a ring moves %d keys that need not", extra)
	}
}

// A hundred backends, 100,000 keys: the figures that are published for a ring.
func TestRingOfAHundredBackendsIsAsPublished(t *testing.T) {
	var ref seedReference
	readJSON(t, "seed-reference.json", &ref)
	tol := ref.Hash.Tolerances
	keys := someKeys(9, 100_000)
	list := fleet(100)
	for _, c := range []struct {
		points      int
		least, most [2]int
	}{{100, tol.Ring100Min, tol.Ring100Max}, {1000, tol.Ring1000Min, tol.Ring1000Max}} {
		ring := newTestRing(t, list, RingConfig{Points: c.points})
		counts := make([]int, len(list))
		for _, key := range keys {
			counts[ring.Lookup(key)]++
		}
		least, most := slices.Min(counts), slices.Max(counts)
		if least < c.least[0] || least > c.least[1] || most < c.most[0] || most > c.most[1] {
			t.Errorf("%d points each: %d to %d keys, want %v to %v", c.points, least, most, c.least, c.most)
		}
		for _, i := range []int{0, 50, 99} { // exactly the share of who is removed moves
			less := without(list, i)
			smaller := newTestRing(t, less, RingConfig{Points: c.points})
			needed, extra := moves(keys, list, less, ring.Lookup, smaller.Lookup)
			if needed != counts[i] || extra != 0 {
				t.Errorf("%d points each: removing %s moved %d and %d keys, want its %d and 0", c.points, list[i].ID, needed, extra, counts[i])
			}
		}
	}
}

func TestMaglevOfAHundredBackendsMovesAsPublished(t *testing.T) {
	var ref seedReference
	readJSON(t, "seed-reference.json", &ref)
	tol := ref.Hash.Tolerances
	keys := someKeys(10, 100_000)
	list := fleet(100)
	m := newTestMaglev(t, list, MaglevConfig{})
	slotsMoved, keysMoved := 0.0, 0.0
	for i := 0; i < 100; i += 10 {
		less := without(list, i)
		smaller := newTestMaglev(t, less, MaglevConfig{})
		before, after := slotOwners(m, list), slotOwners(smaller, less)
		for s := range before {
			if before[s] != after[s] {
				slotsMoved += 1.0 / DefaultMaglevSize / 10
			}
		}
		needed, extra := moves(keys, list, less, m.Lookup, smaller.Lookup)
		keysMoved += float64(needed+extra) / float64(len(keys)) / 10
	}
	if slotsMoved < tol.MaglevSlotsMoved[0] || slotsMoved > tol.MaglevSlotsMoved[1] {
		t.Errorf("%.5f of the slots move, want %v", slotsMoved, tol.MaglevSlotsMoved)
	}
	if keysMoved < tol.MaglevKeysMoved[0] || keysMoved > tol.MaglevKeysMoved[1] {
		t.Errorf("%.5f of the keys move, want %v", keysMoved, tol.MaglevKeysMoved)
	}
}

// What happens when the number of points follows the number of endpoints, as in rings that are
// given a smallest size for all: with 1,024 points, ten endpoints have 103 each and nine 114.
func TestARingSizedByTheNumberOfEndpointsMovesEverybodysKeys(t *testing.T) {
	list, less := fleet(10), fleet(9)
	keys := someKeys(23, 5000)
	moved := 0
	const rings = 40
	for seed := range uint64(rings) {
		sized := func(list []Endpoint) *Ring {
			return newTestRing(t, list, RingConfig{Points: (1024 + len(list) - 1) / len(list), Seed: seed})
		}
		needed, extra := moves(keys, list, less, sized(list).Lookup, sized(less).Lookup)
		moved += needed + extra
	}
	// One ring moves 17 % with a standard deviation of 1.2 points, the mean of forty 0.2.
	if share := float64(moved) / float64(rings*len(keys)); share < 0.16 || share > 0.18 {
		t.Errorf("%.4f of the keys move: the package's documentation says 17 %%", share)
	}
}
