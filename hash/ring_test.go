package hash

import (
	"math"
	"slices"
	"sort"
	"strings"
	"testing"
)

// naiveRing is a ring of structs found by a binary search.
type naiveRing []naivePoint

type naivePoint struct {
	place uint64 // 40 bits
	id    string
}

func newNaiveRing(list []Endpoint, perUnit int, seed uint64) naiveRing {
	var ring naiveRing
	for _, e := range list {
		if e.Weight == 0 {
			continue
		}
		point := xxh64(e.ID, mix64(seed)^idDomain)
		for k := range max(int(math.Floor(e.Weight*float64(perUnit)+0.5)), 1) {
			ring = append(ring, naivePoint{mix64(point+uint64(k+1)*golden) >> 24, e.ID})
		}
	}
	sort.Slice(ring, func(i, j int) bool {
		a, b := ring[i], ring[j]
		return a.place < b.place || a.place == b.place && a.id < b.id
	})
	return ring
}

// candidates returns the IDs clockwise from a key.
func (r naiveRing) candidates(key, seed uint64) []string {
	place := mix64(key^mix64(seed)) >> 24
	start := sort.Search(len(r), func(i int) bool { return r[i].place >= place })
	var ids []string
	for k := range r {
		if id := r[(start+k)%len(r)].id; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestRingIsThatOfASortedListOfPoints(t *testing.T) {
	r := fixedRand(5)
	for round := range 60 {
		list := fleet(1 + r.IntN(12))
		for i := range list {
			list[i].Weight = float64(r.IntN(8)) / 2
		}
		list[0].Weight = 1
		c := RingConfig{Points: 1 + r.IntN(40), Seed: uint64(round % 3)}
		ring, naive := newTestRing(t, list, c), newNaiveRing(list, c.Points, c.Seed)
		if int(ring.circle.count()) != len(naive) {
			t.Fatalf("%d points for %v, want %d", ring.circle.count(), list, len(naive))
		}
		for _, key := range append(someKeys(uint64(round), 200), 0, math.MaxUint64) {
			want := naive.candidates(key, c.Seed)
			got := ring.AppendN(nil, key, len(list))
			if len(got) != len(want) || ring.Lookup(key) != got[0] {
				t.Fatalf("key %d has candidates %v and owner %d, want %v", key, got, ring.Lookup(key), want)
			}
			for k := range min(len(want), walkFew) {
				if list[got[k]].ID != want[k] {
					t.Fatalf("candidate %d of key %d is %s, want %s", k, key, list[got[k]].ID, want[k])
				}
			}
		}
	}
}

// unmix64 is the inverse of mix64.
func unmix64(x uint64) uint64 {
	x = (x ^ x>>31 ^ x>>62) * inverse64(0x94d049bb133111eb)
	x = (x ^ x>>27 ^ x>>54) * inverse64(0xbf58476d1ce4e5b9)
	return x ^ x>>30 ^ x>>60
}

// inverse64 is the inverse of an odd number modulo 2^64, by Newton's iteration.
func inverse64(x uint64) uint64 {
	inverse := uint64(1)
	for range 6 {
		inverse *= 2 - x*inverse
	}
	return inverse
}

// A key exactly at a point belongs to it, one behind the last to the first.
func TestRingAtAndBetweenPoints(t *testing.T) {
	ring := newTestRing(t, fleet(5), RingConfig{Points: 3})
	n := int(ring.circle.count())
	for i, p := range ring.circle.points[:n] {
		place := p &^ ownerMask
		owner := func(place uint64) int { return ring.Lookup(unmix64(place)) }
		index := func(i int) int { return int(ring.list.index[ring.circle.points[i%n]&ownerMask]) }
		if got, want := owner(place), index(i); got != want {
			t.Errorf("at point %d the owner is %d, want %d", i, got, want)
		}
		if got, want := owner(place|ownerMask), index(i); got != want {
			t.Errorf("within point %d the owner is %d, want %d", i, got, want)
		}
		if got, want := owner(place+1<<ownerBits), index(i+1); got != want {
			t.Errorf("behind point %d the owner is %d, want %d", i, got, want)
		}
	}
}

func TestRingPointsFollowTheWeights(t *testing.T) {
	list := []Endpoint{{"a", 1}, {"b", 2}, {"c", 0.5}, {"d", 0}, {"e", MinWeight}, {"f", 0.003125}, {"g", 0.009375}}
	r := newTestRing(t, list, RingConfig{})
	// Halves are rounded up: 0.003125 · 160 is half a point, and one at least; 0.009375 one and a half.
	if want := []uint32{160, 320, 80, 1, 1, 2}; !slices.Equal(r.counts, want) {
		t.Errorf("points are %v, want %v", r.counts, want)
	}
}

func TestRingRefusesMorePointsThanItMayHave(t *testing.T) {
	for _, c := range []struct {
		list   []Endpoint
		config RingConfig
		want   string
	}{
		{[]Endpoint{{"a", 1_000_000}}, RingConfig{}, "would have 160000000 points, 160 for a weight of 1, want at most MaxPoints, 8388608"},
		{fleet(11), RingConfig{MaxPoints: 1759}, "would have 1760 points, 160 for a weight of 1, want at most MaxPoints, 1759"},
		{weighted(3, MaxWeight), RingConfig{Points: MaxRingPoints}, "would have 13510798882111488 points"},
		{weighted(1<<12, MaxWeight), RingConfig{Points: MaxRingPoints}, "would have 4611686018427387904 points"},
	} {
		_, err := NewRing(c.list, c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want it to say %q", err, c.want)
		}
	}
	newTestRing(t, fleet(11), RingConfig{MaxPoints: 1760})
}

func TestRingConfigBounds(t *testing.T) {
	for _, c := range []struct {
		config RingConfig
		want   string // "" is valid
	}{
		{RingConfig{}, ""},
		{RingConfig{Points: 1, MaxPoints: 1}, ""},
		{RingConfig{Points: MaxRingPoints, MaxPoints: MaxRingMaxPoints}, ""},
		{RingConfig{Points: -1}, "hash: RingConfig.Points is -1, want 1 to 1048576"},
		{RingConfig{Points: MaxRingPoints + 1}, "hash: RingConfig.Points is 1048577, want 1 to 1048576"},
		{RingConfig{MaxPoints: -1}, "hash: RingConfig.MaxPoints is -1, want 1 to 134217728"},
		{RingConfig{MaxPoints: MaxRingMaxPoints + 1}, "hash: RingConfig.MaxPoints is 134217729, want 1 to 134217728"},
		{RingConfig{Points: 6, Ketama: true}, "hash: RingConfig.Points is 6, want a multiple of 4 with Ketama"},
		{RingConfig{Seed: 1, Ketama: true}, "hash: RingConfig.Seed is 1, want 0 with Ketama"},
	} {
		got := ""
		if err := c.config.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.config, got, c.want)
		}
	}
}

// The law of rings: with p points each, shares differ by 1/√p, one standard deviation.
func TestRingSharesSpreadByTheRootOfThePoints(t *testing.T) {
	for _, points := range []int{100, 160, 1000} {
		r := newTestRing(t, fleet(100), RingConfig{Points: points})
		arcs := r.circle.arcs(100)
		sum, squares := 0.0, 0.0
		for _, a := range arcs {
			share := float64(a) / (1 << 40) * 100
			sum += share
			squares += (share - 1) * (share - 1)
		}
		sd, want := math.Sqrt(squares/100), 1/math.Sqrt(float64(points))
		if math.Abs(sum-100) > 1e-6 {
			t.Errorf("%d points: the shares add up to %v, want 100", points, sum)
		}
		if sd < want/1.3 || sd > want*1.3 { // the estimate of 100 shares is good to 7 %, one σ
			t.Errorf("%d points: the shares spread by %.4f, want about %.4f", points, sd, want)
		}
	}
}

// What the package's documentation warns of.
func TestElevenPointsEachMakeTheBusiestTwiceAsBusy(t *testing.T) {
	mean := 0.0
	const rings = 100
	for seed := range uint64(rings) {
		mean += newTestRing(t, fleet(100), RingConfig{Points: 11, Seed: seed}).Stats().MaxShare / rings
	}
	if mean < 1.8 || mean > 2.1 {
		t.Errorf("the busiest of a hundred has %.2f times its share, want about twice", mean)
	}
}

func TestRingBytes(t *testing.T) {
	for _, n := range []int{63, 64, 100, 409, 410, 625, 820, 6250} {
		r := newTestRing(t, fleet(n), RingConfig{})
		s := r.Stats()
		if got := float64(s.Bytes) / float64(s.Slots); got > 16 {
			t.Errorf("%d endpoints: %.2f bytes a point, want at most 16", n, got)
		}
		if cap(r.circle.points) != len(r.circle.points) || cap(r.circle.starts) != len(r.circle.starts) {
			t.Errorf("%d endpoints: the ring holds more than it uses", n)
		}
	}
}
