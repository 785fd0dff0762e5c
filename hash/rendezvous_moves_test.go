package hash

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

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
