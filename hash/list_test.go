package hash

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestListProblemsAreNamedAllAtOnce(t *testing.T) {
	list := []Endpoint{
		{"a", 1}, {"", 1}, {"b", -1}, {"a", 2}, {"c", math.NaN()}, {"d", math.Inf(1)}, {"e", MinWeight / 2},
		{"f", MaxWeight * 1.5}, {"a", 0}, {strings.Repeat("x", 200), -2}, {"", 1},
	}
	_, err := newList(list, 0, false)
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		"hash: endpoint 1: ID is empty, want a name",
		`hash: endpoint 2 ("b"): Weight is -1, want 0 or 1e-06 to 4.294967296e+09`,
		`hash: endpoint 4 ("c"): Weight is NaN, want 0 or 1e-06 to 4.294967296e+09`,
		`hash: endpoint 5 ("d"): Weight is +Inf, want 0 or 1e-06 to 4.294967296e+09`,
		`hash: endpoint 6 ("e"): Weight is 5e-07, want 0 or 1e-06 to 4.294967296e+09`,
		`hash: endpoint 7 ("f"): Weight is 6.442450944e+09, want 0 or 1e-06 to 4.294967296e+09`,
		`hash: endpoint 9 ("` + strings.Repeat("x", 100) + `…"): Weight is -2, want 0 or 1e-06 to 4.294967296e+09`,
		"hash: endpoint 10: ID is empty, want a name",
		`hash: endpoint 3: ID "a" is that of endpoint 0, want a unique one or MergeDuplicates`,
		`hash: endpoint 8: ID "a" is that of endpoint 0, want a unique one or MergeDuplicates`,
	}
	if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, want) {
		t.Errorf("the error is\n%s\nwant\n%s", err, strings.Join(want, "\n"))
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	list := make([]Endpoint, 100)
	_, err := newList(list, 0, false)
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 17 || lines[16] != "hash: and 84 more problems in the list" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	_, err = newList(make([]Endpoint, MaxEndpoints+1), 0, false)
	if err == nil || err.Error() != "hash: the list has 16777217 endpoints, want at most 16777216" {
		t.Errorf("a list that is too long: %v", err)
	}
}

func TestMergedDuplicatesAddTheirWeights(t *testing.T) {
	list := []Endpoint{{"b", 1}, {"a", 1}, {"b", 2}, {"c", 0}, {"c", 0}, {"b", 0}}
	l, err := newList(list, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(l.ids, []string{"a", "b"}) || !slices.Equal(l.index, []int32{1, 0}) ||
		!slices.Equal(l.weights, []uint64{weightUnit, 3 * weightUnit}) {
		t.Errorf("merged: %v, %v, %v", l.ids, l.index, l.weights)
	}
	const want = `hash: endpoint 0 ("big"): the merged Weight is above 4.294967296e+09`
	for n := 2; n < 10; n++ { // four of them are 2^64
		if _, err := newList(slices.Repeat([]Endpoint{{"big", MaxWeight}}, n), 0, true); err == nil || err.Error() != want {
			t.Errorf("%d times the largest weight: %v, want %q", n, err, want)
		}
	}
	if l, err := newList(slices.Repeat([]Endpoint{{"big", MaxWeight / 8}}, 8), 0, true); err != nil || l.weights[0] != MaxWeight*weightUnit {
		t.Errorf("eight eighths of the largest weight: %v", err)
	}
}

func TestWeightsAreFixedPoint(t *testing.T) {
	for _, c := range []struct {
		weight float64
		want   uint64
	}{
		{0, 0}, {1, 1 << 30}, {0.5, 1 << 29}, {MaxWeight, 1 << 62}, {MinWeight, 1074},
		{1.0 / 3, 357_913_941}, {math.NaN(), 0}, {-1, 0}, {math.Inf(1), 0},
		{float64(3)/(1<<31) + 1, 1<<30 + 2}, {float64(1)/(1<<31) + 1, 1 << 30}, // halves to even
	} {
		if got := fixedWeight(c.weight); got != c.want {
			t.Errorf("weight %v is %d, want %d", c.weight, got, c.want)
		}
	}
}

func TestAListIsNeitherChangedNorKept(t *testing.T) {
	list := []Endpoint{{"c", 1}, {"a", 2}, {"b", 3}}
	before := slices.Clone(list)
	m, r := newTestMaglev(t, list, MaglevConfig{}), newTestRing(t, list, RingConfig{})
	if !slices.Equal(list, before) {
		t.Errorf("the list is %v after a build, was %v", list, before)
	}
	owners := [2]int{m.Lookup(1), r.Lookup(1)}
	clear(list)
	if got := [2]int{m.Lookup(1), r.Lookup(1)}; got != owners {
		t.Errorf("after the list was overwritten the owners are %v, were %v", got, owners)
	}
}

func TestFingerprintsAreOfWhatKeysMapTo(t *testing.T) {
	list := weighted(20, 1, 2)
	seen := map[uint64]string{}
	for name, f := range map[string]uint64{
		"maglev":            newTestMaglev(t, list, MaglevConfig{}).Fingerprint(),
		"maglev, size":      newTestMaglev(t, list, MaglevConfig{Size: 251}).Fingerprint(),
		"maglev, seed":      newTestMaglev(t, list, MaglevConfig{Seed: 1}).Fingerprint(),
		"maglev, one less":  newTestMaglev(t, list[1:], MaglevConfig{}).Fingerprint(),
		"maglev, weights":   newTestMaglev(t, weighted(20, 1, 3), MaglevConfig{}).Fingerprint(),
		"ring":              newTestRing(t, list, RingConfig{}).Fingerprint(),
		"ring, points":      newTestRing(t, list, RingConfig{Points: 8}).Fingerprint(),
		"ring, seed":        newTestRing(t, list, RingConfig{Seed: 1}).Fingerprint(),
		"ketama":            newTestRing(t, list, RingConfig{Ketama: true}).Fingerprint(),
		"IDs cut elsewhere": newTestRing(t, []Endpoint{{"ab", 1}, {"c", 1}}, RingConfig{}).Fingerprint(),
		"IDs cut here":      newTestRing(t, []Endpoint{{"a", 1}, {"bc", 1}}, RingConfig{}).Fingerprint(),
		"two IDs":           newTestRing(t, []Endpoint{{"a", 1}, {"b", 1}}, RingConfig{}).Fingerprint(),
		"a weight in an ID": newTestRing(t, []Endpoint{{"a\x00\x00\x00\x40\x00\x00\x00\x00b", 1}}, RingConfig{}).Fingerprint(),
	} {
		if other, taken := seen[f]; taken {
			t.Errorf("%s and %s have the same fingerprint", name, other)
		}
		seen[f] = name
	}
	r := fixedRand(14)
	for range 20 {
		other := append(shuffled(r, list), Endpoint{ID: "drained"})
		if newTestMaglev(t, other, MaglevConfig{}).Fingerprint() != newTestMaglev(t, list, MaglevConfig{}).Fingerprint() ||
			newTestRing(t, other, RingConfig{MaxPoints: 10_000}).Fingerprint() != newTestRing(t, list, RingConfig{}).Fingerprint() {
			t.Fatal("another order, a drained endpoint or another bound gives another fingerprint")
		}
	}
}

// Two IDs of one hash are ordered by their bytes and both stay.
func TestEndpointsOfOneHashBothStay(t *testing.T) {
	l, err := newList(fleet(3), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	l.points[1] = l.points[0]
	weights := boundedSum(l.weights)
	quotas := slotQuotas(weights, 251)
	counts := [3]int{}
	for _, i := range fillSlots[uint8](newMaglevBuild(l.points, 251), l.index, weights, quotas) {
		counts[i]++
	}
	if counts != [3]int{84, 84, 83} {
		t.Errorf("slots are %v, want a third each", counts)
	}
	same := &Ring{list: l, counts: []uint32{5, 5, 5}, config: RingConfig{Points: 5}}
	same.build()
	for _, key := range someKeys(15, 100) {
		c := same.AppendN(nil, key, 3)
		if len(c) != 3 || same.Lookup(key) == 1 {
			t.Fatalf("key %d has candidates %v, want all three and never the second of equals first", key, c)
		}
	}
	l.points[2] = l.points[0]
	one := &Ring{list: l, counts: []uint32{1, 1, 1}, config: RingConfig{Points: 1}}
	one.build()
	if s := one.Stats(); s.MinShare != 0 || s.MaxShare != 3 {
		t.Errorf("all points at one place: stats are %+v, want everything with the first", s)
	}
}
