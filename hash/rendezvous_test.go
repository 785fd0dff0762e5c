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

// Removing an endpoint moves its keys, each to its next candidate, and no others.
func TestRendezvousMovesExactlyTheRemovedEndpointsKeys(t *testing.T) {
	const keys = 4000
	for _, w := range rvWeights {
		list := rvList(100, w.weight)
		table := mustRendezvous(t, list, RendezvousConfig{})
		for _, gone := range []int{0, 50, 99} {
			rest := slices.Delete(slices.Clone(list), gone, gone+1)
			after, err := table.Update(rest)
			if err != nil {
				t.Fatal(err)
			}
			back, err := after.Update(list)
			if err != nil {
				t.Fatal(err)
			}
			var two [2]int
			for k := range uint64(keys) {
				key := Sum(fmt.Sprint(k))
				was := table.AppendN(two[:0], key, 2)
				want := was[0]
				if want == gone {
					want = was[1]
				}
				if got := rest[after.Lookup(key)].ID; got != list[want].ID {
					t.Fatalf("%s: without %d key %d moved from %s to %s, want %s", w.name, gone, k, list[was[0]].ID, got, list[want].ID)
				}
				if got := back.Lookup(key); got != was[0] {
					t.Fatalf("%s: key %d did not come back to %d but to %d", w.name, k, was[0], got)
				}
			}
		}
	}
}

// A heavier endpoint gains keys and loses none; nobody else's keys move among themselves.
func TestRendezvousWeightChangeMovesKeysOneWay(t *testing.T) {
	list := rvList(50, rvWeights[2].weight)
	table := mustRendezvous(t, list, RendezvousConfig{})
	heavier := slices.Clone(list)
	heavier[20].Weight *= 1.5
	after := mustRendezvous(t, heavier, RendezvousConfig{})
	gained := 0
	for k := range uint64(50_000) {
		was, is := table.Lookup(Sum(fmt.Sprint(k))), after.Lookup(Sum(fmt.Sprint(k)))
		if was != is {
			gained++
			if is != 20 {
				t.Fatalf("key %d moved from %d to %d", k, was, is)
			}
		}
	}
	if gained == 0 {
		t.Error("no key moved to the endpoint that became heavier")
	}
}

func TestRendezvousOnlyRatiosOfWeightsCount(t *testing.T) {
	list := rvList(60, rvWeights[2].weight)
	scaled := slices.Clone(list)
	for i := range scaled {
		scaled[i].Weight *= 1000
	}
	a, b := mustRendezvous(t, list, RendezvousConfig{}), mustRendezvous(t, scaled, RendezvousConfig{})
	for k := range uint64(20_000) {
		if a.Lookup(k) != b.Lookup(k) {
			t.Fatalf("key %d belongs to %d, and to %d at a thousand times the weights", k, a.Lookup(k), b.Lookup(k))
		}
	}
}

func TestBug16RendezvousDoesNotDependOnTheOrderOfTheList(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, w := range rvWeights {
		list := rvList(90, w.weight)
		table := mustRendezvous(t, list, RendezvousConfig{})
		for range 20 {
			other := slices.Clone(list)
			r.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
			shuffled := mustRendezvous(t, other, RendezvousConfig{})
			if shuffled.Fingerprint() != table.Fingerprint() {
				t.Fatalf("%s: the fingerprint depends on the order", w.name)
			}
			for range 30 {
				key := r.Uint64()
				a, b := table.AppendN(nil, key, 80), shuffled.AppendN(nil, key, 80)
				for k := range a {
					if list[a[k]].ID != other[b[k]].ID {
						t.Fatalf("%s: candidate %d of %#x depends on the order", w.name, k, key)
					}
				}
			}
		}
	}
}

func TestRendezvousUpdateKeepsAnEqualList(t *testing.T) {
	list := rvList(30, rvWeights[1].weight)
	table := mustRendezvous(t, list, RendezvousConfig{Seed: 3})
	same, err := table.Update(slices.Clone(list))
	if err != nil || same != table {
		t.Errorf("an equal list gave another table, or %v", err)
	}
	swapped := slices.Clone(list)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	other, err := table.Update(swapped)
	if err != nil || other == table || other.Fingerprint() != table.Fingerprint() {
		t.Errorf("a list in another order kept its indices, or changed the fingerprint, or %v", err)
	}
	if kept, err := table.Update(nil); !errors.Is(err, ErrEmpty) || kept != table {
		t.Errorf("an empty list: %v and another table, want ErrEmpty and the old one", err)
	}
	if _, err := table.Update([]Endpoint{{ID: "a", Weight: 1}, {ID: "a", Weight: 1}, {Weight: math.NaN()}}); err == nil {
		t.Error("a list with duplicates and an empty ID was accepted")
	}
	merged := mustRendezvous(t, []Endpoint{{"a", 1}, {"b", 1}, {"a", 1}}, RendezvousConfig{MergeDuplicates: true})
	if s := merged.Stats(); s.Endpoints != 2 || s.MinShare != 1 || s.MaxShare != 1 || s.Bytes <= 0 {
		t.Errorf("merged duplicates give %+v", s)
	}
	if a, b := mustRendezvous(t, list, RendezvousConfig{Seed: 4}), table; a.Fingerprint() == b.Fingerprint() {
		t.Error("the seed is not part of the fingerprint")
	}
}

// Weight 0 gets nothing, and the next update is applied.
func TestBug17RendezvousTakesWeightZeroAndTheNextUpdate(t *testing.T) {
	table := mustRendezvous(t, []Endpoint{{"A", 1}, {"B", 0}}, RendezvousConfig{})
	for key := range uint64(1000) {
		if got := table.AppendN(nil, key, 2); !slices.Equal(got, []int{0}) {
			t.Fatalf("candidates of %d are %v, want A alone", key, got)
		}
	}
	table, err := table.Update([]Endpoint{{"A", 1}, {"C", 1}})
	if err != nil {
		t.Fatal(err)
	}
	counts := [2]int{}
	for key := range uint64(1000) {
		counts[table.Lookup(key)]++
	}
	if counts[1] < 400 || counts[1] > 600 {
		t.Errorf("C has %d of 1000 keys, want about half", counts[1])
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
