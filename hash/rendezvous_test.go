package hash

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// rvList returns n endpoints with the weights that weight gives; nil means 1.
func rvList(n int, weight func(i int) float64) []Endpoint {
	list := make([]Endpoint, n)
	for i := range list {
		list[i] = Endpoint{ID: fmt.Sprintf("10.0.%d.%d:8080", i/256, i%256), Weight: 1}
		if weight != nil {
			list[i].Weight = weight(i)
		}
	}
	return list
}

func mustRendezvous(t testing.TB, list []Endpoint, c RendezvousConfig) *Rendezvous {
	t.Helper()
	table, err := NewRendezvous(list, c)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// rvWeights are kinds of weights: one group, exact groups, mixed groups.
var rvWeights = []struct {
	name   string
	weight func(i int) float64
}{
	{"equal", nil},
	{"three", func(i int) float64 { return float64(i%3 + 1) }},
	{"many", func(i int) float64 { return float64(i%50 + 1) }},
	{"skewed", func(i int) float64 { return [...]float64{1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1e3, 1e4}[i%9] }},
	{"drained", func(i int) float64 { return float64(i % 4) }},
	{"fractions", func(i int) float64 { return 0.37 + float64(i)/7 }},
}

// rvOrder is the order of all candidates by definition: everybody's rank, sorted.
func rvOrder(t *Rendezvous, key uint64) []int {
	h := t.mixKey(key)
	ranks := make([]rank, len(t.list.ids))
	for p := range ranks {
		ranks[p] = t.rankAt(h, int32(p))
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	order := make([]int, len(ranks))
	for k, r := range ranks {
		order[k] = int(t.list.index[r.place])
	}
	return order
}

func TestRendezvousAgreesWithSortingEverybody(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, w := range rvWeights {
		for _, n := range []int{2, 3, 8, 9, 10, 65, 66, 100, 300} {
			table := mustRendezvous(t, rvList(n, w.weight), RendezvousConfig{Seed: uint64(n)})
			for range 80 {
				key := r.Uint64()
				want := rvOrder(table, key)
				if got := table.Lookup(key); got != want[0] {
					t.Fatalf("%s, n=%d: Lookup(%#x) is %d, want %d", w.name, n, key, got, want[0])
				}
				got := table.AppendN(nil, key, n+5)
				if exact := min(len(want), exactSteps+1); !slices.Equal(got[:exact], want[:exact]) {
					t.Fatalf("%s, n=%d: candidates of %#x are %v, want %v", w.name, n, key, got, want)
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, n=%d: candidates of %#x are not everybody once", w.name, n, key)
				}
			}
		}
	}
}

// In words of mathematics, with floating point: the owner minimises -ln(u)/w.
func TestRendezvousOwnerMinimisesTheTextbookCost(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, w := range rvWeights {
		list := rvList(120, w.weight)
		table := mustRendezvous(t, list, RendezvousConfig{})
		for range 1000 {
			key := r.Uint64()
			h := table.mixKey(key)
			cost := func(p int) float64 {
				u := 1 - float64(score(h, table.list.points[p]))/(1<<64)
				return -math.Log(u) / float64(table.list.weights[p])
			}
			owner := int(table.owner(h))
			for p := range table.list.ids {
				if cost(p) < cost(owner)*(1-1e-9) {
					t.Fatalf("%s: key %#x belongs to %d with cost %g, and %d costs %g", w.name, key, owner, cost(owner), p, cost(p))
				}
			}
		}
	}
}

// Whatever the ranks, exactly one of two comes first, and nobody who may come first is skipped by
// the limit of scores.
func TestRanksAreAStrictOrderWithinTheirLimits(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	some := func() rank {
		score := r.Uint64() >> r.UintN(62)
		return rank{score: score, log: negLog(score), weight: 1 + r.Uint64N(1<<r.UintN(62)), place: r.Int32N(1000)}
	}
	for range 20_000 {
		a, b := some(), some()
		switch r.IntN(3) {
		case 0:
			b.score, b.log, b.weight = a.score, a.log, a.weight
		case 1:
			b.weight = a.weight
		}
		if a.before(&b) == b.before(&a) && a != b {
			t.Fatalf("%+v and %+v come before each other: %v", a, b, a.before(&b))
		}
		if a.before(&b) && a.score > b.limit(a.weight) {
			t.Fatalf("%+v comes before %+v, and is above its limit %d", a, b, b.limit(a.weight))
		}
		if b.limit(b.weight) < b.score {
			t.Fatalf("%+v is above its own limit %d", b, b.limit(b.weight))
		}
	}
	a, b := rank{score: 1, weight: 1, place: 3}, rank{score: 1, weight: 1, place: 4}
	if !a.before(&b) || b.before(&a) {
		t.Error("a tie does not go to the first in the list")
	}
}

func TestRendezvousSharesFollowWeights(t *testing.T) {
	const keys = 50_000
	for _, w := range rvWeights {
		for _, n := range []int{2, 3, 10, 100} {
			list := rvList(n, w.weight)
			table := mustRendezvous(t, list, RendezvousConfig{})
			counts := make([]int, n)
			for k := range keys {
				counts[table.Lookup(Sum(fmt.Sprintf("flow-%d", k)))]++
			}
			sum := 0.0
			for _, e := range list {
				sum += e.Weight
			}
			for i, got := range counts {
				p := list[i].Weight / sum
				if sd := math.Sqrt(keys * p * (1 - p)); math.Abs(float64(got)-keys*p) > 5*sd+1 {
					t.Errorf("%s, n=%d: endpoint %d has %d keys, want %.0f", w.name, n, i, got, keys*p)
				}
			}
		}
	}
}

// Keys that are no hashes: their spacing must not show in the scores.
func TestRendezvousSharesConsecutiveNumbersEvenly(t *testing.T) {
	const keys, n = 50_000, 100
	table := mustRendezvous(t, rvList(n, nil), RendezvousConfig{})
	for _, stride := range []uint64{1, 2, 1 << 12, 1 << 32, 1 << 48} {
		counts := make([]int, n)
		for k := range uint64(keys) {
			counts[table.Lookup(k*stride)]++
		}
		// Keys that wrap come again, and with them their owners.
		distinct := float64(keys)
		if wrap := math.Pow(2, 64) / float64(stride); wrap < keys {
			distinct = wrap
		}
		sd := keys / n / math.Sqrt(distinct/n)
		for i, got := range counts {
			if math.Abs(float64(got)-keys/n) > 5*sd {
				t.Errorf("stride %d: endpoint %d has %d keys, want %d", stride, i, got, keys/n)
			}
		}
	}
}

// The second candidates of one endpoint's keys are everybody else in proportion to weight:
// ejecting it burdens nobody in particular.
func TestRendezvousSpreadsTheKeysOfOneEndpointOverAllOthers(t *testing.T) {
	const keys = 100_000
	for _, w := range rvWeights[:3] {
		list := rvList(20, w.weight)
		table := mustRendezvous(t, list, RendezvousConfig{})
		counts := make([]int, len(list))
		total, sum := 0, -list[7].Weight
		for _, e := range list {
			sum += e.Weight
		}
		var two [2]int
		for k := range uint64(keys) {
			if got := table.AppendN(two[:0], Sum(fmt.Sprint(k)), 2); got[0] == 7 {
				counts[got[1]]++
				total++
			}
		}
		for i, got := range counts {
			if i == 7 {
				continue
			}
			p := list[i].Weight / sum
			if want := float64(total) * p; math.Abs(float64(got)-want) > 5*math.Sqrt(want*(1-p)) {
				t.Errorf("%s: endpoint %d would get %d of %d keys, want %.0f", w.name, i, got, total, want)
			}
		}
	}
}

func TestZeroRendezvousIsEmpty(t *testing.T) {
	var table Rendezvous
	if got := table.Lookup(7); got != -1 {
		t.Errorf("Lookup is %d, want -1", got)
	}
	if got := table.AppendN(nil, 7, 3); got != nil {
		t.Errorf("candidates are %v, want none", got)
	}
	if table.Stats() != (Stats{}) || table.Fingerprint() != 0 {
		t.Errorf("it has %+v and the fingerprint %#x, want nothing", table.Stats(), table.Fingerprint())
	}
	if built, err := table.Update(rvList(3, nil)); err != nil || built.Lookup(7) < 0 {
		t.Errorf("it cannot be updated: %v", err)
	}
}

func TestRendezvousOfOne(t *testing.T) {
	table := mustRendezvous(t, []Endpoint{{"gone", 0}, {"only", 3}}, RendezvousConfig{})
	for key := range uint64(100) {
		if got := table.AppendN(nil, key, 5); !slices.Equal(got, []int{1}) {
			t.Fatalf("candidates of %d are %v, want 1 alone", key, got)
		}
	}
}

// A lookup or a walk that allocates would do so once per request.
func TestRendezvousDoesNotAllocate(t *testing.T) {
	for _, w := range rvWeights {
		table := mustRendezvous(t, rvList(100, w.weight), RendezvousConfig{})
		key := uint64(0)
		var dst [20]int
		if n := testing.AllocsPerRun(100, func() {
			key++
			table.Lookup(key)
			table.AppendN(dst[:0], key, 20)
			for i := range table.Candidates(key) {
				dst[i%20]++
			}
			walk := table.Walk(key)
			for _, ok := walk.Next(); ok; _, ok = walk.Next() {
				dst[0]++
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", w.name, n)
		}
	}
}

// FuzzRendezvous compares lookups and candidates with sorting everybody.
func FuzzRendezvous(f *testing.F) {
	f.Add(uint64(0), uint64(0), []byte{1})
	f.Add(uint64(1), uint64(2), []byte{1, 1, 1, 1})
	f.Add(uint64(7), uint64(1<<63), []byte{0, 200, 1, 3, 255, 17, 80, 80, 9})
	f.Add(uint64(9), uint64(math.MaxUint64), slices.Repeat([]byte{5, 77, 133}, 30))
	f.Fuzz(func(t *testing.T, seed, key uint64, weights []byte) {
		list := make([]Endpoint, min(len(weights), 200))
		for i := range list {
			// From 0 over small whole numbers to the bounds.
			w := float64(weights[i])
			if w > 100 {
				w = math.Ldexp(MinWeight, int(w-100)/3)
			}
			list[i] = Endpoint{ID: fmt.Sprint("e", i), Weight: w}
		}
		table, err := NewRendezvous(list, RendezvousConfig{Seed: seed})
		if err != nil {
			if !errors.Is(err, ErrEmpty) {
				t.Fatal(err)
			}
			return
		}
		want, got := rvOrder(table, key), table.AppendN(nil, key, len(list))
		if table.Lookup(key) != want[0] {
			t.Fatalf("Lookup is %d, want %d", table.Lookup(key), want[0])
		}
		if exact := min(len(want), exactSteps+1); !slices.Equal(got[:exact], want[:exact]) {
			t.Fatalf("candidates are %v, want %v", got, want)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatal("the candidates are not everybody once")
		}
	})
}
