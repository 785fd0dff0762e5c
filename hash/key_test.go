package hash

import (
	"math"
	"testing"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

// XXH64 as Envoy, gRPC and every other XXH64 has it: values of the reference implementation.
func TestSumIsXXH64(t *testing.T) {
	for _, c := range []struct {
		key  string
		want uint64
	}{
		{"", 0xef46db3751d8e999},
		{"a", 0xd24ec4f1a98c6e5b},
		{"abc", 0x44bc2cf5ad770999},
		{"Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1},
	} {
		if got := Sum(c.key); got != c.want {
			t.Errorf("Sum(%q) is %#x, want %#x", c.key, got, c.want)
		}
		if got := SumBytes([]byte(c.key)); got != c.want {
			t.Errorf("SumBytes(%q) is %#x, want %#x", c.key, got, c.want)
		}
		if got := SumSeed(c.key, 0); got != c.want {
			t.Errorf("SumSeed(%q, 0) is %#x, want %#x", c.key, got, c.want)
		}
	}
	if got := SumSeed("", 2_654_435_761); got != 0xac75fda2929b17ef {
		t.Errorf(`SumSeed("", 2654435761) is %#x, want 0xac75fda2929b17ef`, got)
	}
}

// fairness returns the least and greatest number of keys of an endpoint over the mean.
func fairness(n int, keys []uint64, lookup func(uint64) int) (least, most float64) {
	counts := make([]int, n)
	for _, key := range keys {
		counts[lookup(key)]++
	}
	least = math.Inf(1)
	for _, c := range counts {
		share := float64(c) / float64(len(keys)) * float64(n)
		least, most = min(least, share), max(most, share)
	}
	return least, most
}

// Numbers that are no hashes must be spread as hashes are.
func TestKeysThatAreNoHashesAreSpread(t *testing.T) {
	const keys = 100_000
	kinds := map[string]func(i uint64) uint64{
		"consecutive":            func(i uint64) uint64 { return i },
		"even":                   func(i uint64) uint64 { return 2 * i },
		"multiples of 1000":      func(i uint64) uint64 { return 1000 * i },
		"multiples of 4096":      func(i uint64) uint64 { return i << 12 },
		"multiples of 2^32":      func(i uint64) uint64 { return i << 32 },
		"multiples of 2^47":      func(i uint64) uint64 { return i << 47 },
		"from the top down":      func(i uint64) uint64 { return math.MaxUint64 - i },
		"floats":                 func(i uint64) uint64 { return math.Float64bits(float64(i)) },
		"seconds in nanoseconds": func(i uint64) uint64 { return 1_700_000_000_000_000_000 + i*1_000_000_000 },
		"two counters":           func(i uint64) uint64 { return i%317<<32 | i/317 },
		"multiples of the prime": func(i uint64) uint64 { return i * DefaultMaglevSize },
	}
	m := newTestMaglev(t, fleet(100), MaglevConfig{})
	seeded := newTestMaglev(t, fleet(100), MaglevConfig{Seed: 5})
	r := newTestRing(t, fleet(100), RingConfig{Points: 4000}) // shares within 6 % of each other
	for name, kind := range kinds {
		some := make([]uint64, keys)
		for i := range some {
			some[i] = kind(uint64(i))
		}
		for table, lookup := range map[string]func(uint64) int{"maglev": m.Lookup, "maglev with a seed": seeded.Lookup, "ring": r.Lookup} {
			if least, most := fairness(100, some, lookup); least < 0.8 || most > 1.2 {
				t.Errorf("%s, %s: shares from %.3f to %.3f, want 0.8 to 1.2", table, name, least, most)
			}
		}
	}
}

// Keys at equal distances, such as every sixteenth number, must not fall in with the steps
// that the slots of an endpoint are apart, nor stay within an arc.
func TestKeysAtEqualDistancesAreSpread(t *testing.T) {
	const n, count = 100, 20_000
	tables := uint64(12)
	if testcost.Race {
		tables = 2 // ten seconds of the same code
	}
	distances := []uint64{1, 2, 8, 10, 16, 24, 44, 64, 92, 100, 1000, 3600, 1 << 12, 10_000_000, 1 << 32, 1<<33 - 1, 1 << 45}
	for _, d := range someKeys(17, 30) {
		distances = append(distances, d>>30)
	}
	for seed := range tables {
		m := newTestMaglev(t, fleet(n), MaglevConfig{Seed: seed})
		r := newTestRing(t, fleet(n), RingConfig{Seed: seed, Points: 4000})
		for _, d := range distances {
			keys := make([]uint64, count)
			for i := range keys {
				keys[i] = (1_000_000 + uint64(i)) * d
			}
			// 200 keys each: 5.5 standard deviations are 39 %, and a ring's shares differ by 5 %.
			for table, lookup := range map[string]func(uint64) int{"maglev": m.Lookup, "ring": r.Lookup} {
				if least, most := fairness(n, keys, lookup); least < 0.56 || most > 1.44 {
					t.Errorf("%s with seed %d, multiples of %d: shares from %.3f to %.3f, want 0.56 to 1.44", table, seed, d, least, most)
				}
			}
		}
	}
}

// Two tiers of tables: what the first sends to one endpoint is spread by a second with
// another seed, and would all be sent to one by a second with the same.
func TestTiersWithDifferentSeedsAreIndependent(t *testing.T) {
	list := fleet(10)
	type tier func(uint64) int
	build := map[string]func(seed uint64) tier{
		"maglev": func(seed uint64) tier { return newTestMaglev(t, list, MaglevConfig{Seed: seed}).Lookup },
		"ring":   func(seed uint64) tier { return newTestRing(t, list, RingConfig{Seed: seed, Points: 4000}).Lookup },
	}
	inputs := map[string][]uint64{"hashes": someKeys(16, 200_000), "consecutive": make([]uint64, 200_000)}
	for i := range inputs["consecutive"] {
		inputs["consecutive"][i] = uint64(i)
	}
	for name, b := range build {
		for kind, keys := range inputs {
			for _, seed := range []uint64{1, 2, 3, 1 << 40, math.MaxUint64} {
				first, second := b(0), b(seed)
				var reached []uint64
				for _, key := range keys {
					if first(key) == 3 {
						reached = append(reached, key)
					}
				}
				// 2,000 keys each, five standard deviations are 11 %.
				if least, most := fairness(10, reached, second); least < 0.85 || most > 1.15 {
					t.Errorf("%s, %s, seed %d: shares from %.3f to %.3f of what one of the first tier gets", name, kind, seed, least, most)
				}
			}
		}
	}
}

// A key spelt like an ID has nothing to do with that ID's place.
func TestKeysLikeIDsAreNotDrawnToThem(t *testing.T) {
	list := fleet(1000)
	m, r := newTestMaglev(t, list, MaglevConfig{}), newTestRing(t, list, RingConfig{})
	hits := [2]int{}
	for i, e := range list {
		if m.Lookup(Sum(e.ID)) == i {
			hits[0]++
		}
		if r.Lookup(Sum(e.ID)) == i {
			hits[1]++
		}
	}
	if hits[0] > 8 || hits[1] > 8 { // one is expected of each
		t.Errorf("%v of 1000 keys spelt like an ID are its own, want about one", hits)
	}
}
