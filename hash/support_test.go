package hash

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// fleet returns n endpoints of weight 1 with IDs in the order of their numbers.
func fleet(n int) []Endpoint {
	list := make([]Endpoint, n)
	for i := range list {
		list[i] = Endpoint{ID: fmt.Sprintf("backend-%05d", i), Weight: 1}
	}
	return list
}

// weighted returns a fleet with the weights of a repeated pattern.
func weighted(n int, pattern ...float64) []Endpoint {
	list := fleet(n)
	for i := range list {
		list[i].Weight = pattern[i%len(pattern)]
	}
	return list
}

// without returns the list without its element i.
func without(list []Endpoint, i int) []Endpoint {
	return slices.Delete(slices.Clone(list), i, i+1)
}

// shuffled returns the list in another order.
func shuffled(r *rand.Rand, list []Endpoint) []Endpoint {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// fixedRand returns a source that gives the same numbers in every run.
func fixedRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x68617368)) }

// someKeys returns n keys that are as good as hashes.
func someKeys(seed uint64, n int) []uint64 {
	r := fixedRand(seed)
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = r.Uint64()
	}
	return keys
}

func newTestMaglev(t testing.TB, list []Endpoint, c MaglevConfig) *Maglev {
	t.Helper()
	m, err := NewMaglev(list, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newTestRing(t testing.TB, list []Endpoint, c RingConfig) *Ring {
	t.Helper()
	r, err := NewRing(list, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// slotOwners returns the owner of every slot of a table as an ID.
func slotOwners(m *Maglev, list []Endpoint) []string {
	owners := make([]string, m.size)
	for s := range owners {
		switch {
		case m.slots8 != nil:
			owners[s] = list[m.slots8[s]].ID
		case m.slots16 != nil:
			owners[s] = list[m.slots16[s]].ID
		case m.slots32 != nil:
			owners[s] = list[m.slots32[s]].ID
		default:
			owners[s] = list[m.single-1].ID
		}
	}
	return owners
}
