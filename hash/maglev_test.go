package hash

import (
	"errors"
	"math/big"
	"slices"
	"sort"
	"strings"
	"testing"
)

// naiveTable fills a table from whole orders of preference, with the turns sorted by exact
// fractions.
func naiveTable(claims []claim, weights []uint64, quotas []uint32, size uint32) []int {
	prefs := make([][]uint32, len(claims))
	for i, c := range claims {
		slot := uint64(c.next)
		for range size {
			prefs[i] = append(prefs[i], uint32(slot))
			slot = (slot + uint64(c.skip)) % uint64(size)
		}
	}
	heaviest := slices.Max(weights)
	type turn struct {
		round *big.Int
		who   int
	}
	var order []turn
	for i, w := range weights {
		for k := range quotas[i] {
			at := new(big.Int).Mul(big.NewInt(int64(k)), new(big.Int).SetUint64(heaviest))
			order = append(order, turn{at.Quo(at, new(big.Int).SetUint64(w)), i})
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return order[a].round.Cmp(order[b].round) < 0 })
	table := make([]int, size)
	for i := range table {
		table[i] = -1
	}
	for _, o := range order {
		for _, slot := range prefs[o.who] {
			if table[slot] < 0 {
				table[slot] = o.who
				break
			}
		}
	}
	return table
}

func TestMaglevFillsItsTableAsWholeOrdersOfPreferenceWould(t *testing.T) {
	r := fixedRand(2)
	for _, size := range []int{251, 257, 1009} {
		for range 20 {
			list := fleet(2 + r.IntN(60))
			for i := range list {
				list[i].Weight = float64(1 + r.IntN(1+r.IntN(30)))
			}
			m := newTestMaglev(t, list, MaglevConfig{Size: size})
			b := newMaglevBuild(m.list.points, uint32(size))
			want := naiveTable(b.claims, boundedSum(m.list.weights), m.quotas, uint32(size))
			for s, id := range slotOwners(m, list) {
				if id != m.list.ids[want[s]] {
					t.Fatalf("size %d, %d endpoints: slot %d has %s, want %s", size, len(list), s, id, m.list.ids[want[s]])
				}
			}
		}
	}
}

// The example of three backends and seven slots that goes with the paper's description.
func TestMaglevOfSevenSlots(t *testing.T) {
	for _, c := range []struct {
		name   string
		claims []claim
		quotas []uint32
		index  []int32
		want   []uint8
	}{
		{"three", []claim{{2, 3}, {5, 1}, {2, 5}}, []uint32{3, 2, 2}, []int32{0, 1, 2}, []uint8{2, 0, 0, 2, 0, 1, 1}},
		{"without B1", []claim{{2, 3}, {2, 5}}, []uint32{4, 3}, []int32{0, 2}, []uint8{2, 0, 0, 2, 0, 0, 2}},
	} {
		weights := slices.Repeat([]uint64{1}, len(c.claims))
		if got := slotQuotas(weights, 7); !slices.Equal(got, c.quotas) {
			t.Errorf("%s: quotas are %v, want %v", c.name, got, c.quotas)
		}
		for few := range uint32(8) { // from how many free slots on they are computed
			b := &maglevBuild{size: 7, left: 7, few: few, claims: slices.Clone(c.claims), taken: make([]uint64, 1)}
			if got := fillSlots[uint8](b, c.index, weights, c.quotas); !slices.Equal(got, c.want) {
				t.Errorf("%s: the table is %v, want %v", c.name, got, c.want)
			}
		}
	}
	prefs := [][]uint32{{2, 5, 1, 4, 0, 3, 6}, {5, 6, 0, 1, 2, 3, 4}, {2, 0, 5, 3, 1, 6, 4}}
	for i, first := range []claim{{2, 3}, {5, 1}, {2, 5}} {
		b := &maglevBuild{size: 7, left: 7, claims: []claim{first}, taken: make([]uint64, 1)}
		var got []uint32
		for range 7 { // alone, an endpoint gets all slots in its order
			got = append(got, b.take(0))
		}
		if !slices.Equal(got, prefs[i]) {
			t.Errorf("B%d prefers %v, want %v", i, got, prefs[i])
		}
	}
}

func TestInverseModulo(t *testing.T) {
	for _, prime := range []uint32{2, 3, 7, 251, 65_537, MaxMaglevSize} {
		for _, a := range []uint32{1, 2, 3, 5, 128, prime / 2, prime - 2, prime - 1} {
			if a == 0 || a >= prime {
				continue
			}
			if x := inverseModulo(a, prime); x >= prime || uint64(a)*uint64(x)%uint64(prime) != 1 {
				t.Errorf("the inverse of %d modulo %d is %d", a, prime, x)
			}
		}
	}
}

func TestAHundredBackendsHave655Or656Slots(t *testing.T) {
	list := fleet(100)
	owned := map[string]int{}
	for _, id := range slotOwners(newTestMaglev(t, list, MaglevConfig{}), list) {
		owned[id]++
	}
	more := 0
	for id, n := range owned {
		if n == 656 {
			more++
		} else if n != 655 {
			t.Errorf("%s has %d slots, want 655 or 656", id, n)
		}
	}
	if len(owned) != 100 || more != 37 {
		t.Errorf("%d backends, %d of them with 656 slots, want 100 and 37", len(owned), more)
	}
}

func TestWeightsOneToTwoAre21846And43691Slots(t *testing.T) {
	for _, scale := range []float64{1, 10, 0.5, 1.0 / (1 << 19), 1 << 31} {
		m := newTestMaglev(t, weighted(2, scale, 2*scale), MaglevConfig{})
		if want := []uint32{21_846, 43_691}; !slices.Equal(m.quotas, want) {
			t.Errorf("weights 1:2 times %v have %v slots, want %v", scale, m.quotas, want)
		}
	}
}

func TestMaglevDependsOnRatiosOfWeightsAlone(t *testing.T) {
	list := weighted(50, 1, 2, 3)
	m := newTestMaglev(t, list, MaglevConfig{})
	for _, scale := range []float64{3, 0.25, 1 << 20} {
		other := slices.Clone(list)
		for i := range other {
			other[i].Weight *= scale
		}
		if !slices.Equal(newTestMaglev(t, other, MaglevConfig{}).slots8, m.slots8) {
			t.Errorf("weights times %v give another table", scale)
		}
	}
}

func TestMaglevEntriesAreAsNarrowAsFits(t *testing.T) {
	for _, c := range []struct{ n, width int }{
		{1, 0}, {2, 1}, {255, 1}, {256, 1}, {257, 2}, {1000, 2}, {65_537, 4},
	} {
		m := newTestMaglev(t, fleet(c.n), MaglevConfig{})
		if got := len(m.slots8) + 2*len(m.slots16) + 4*len(m.slots32); got != c.width*DefaultMaglevSize {
			t.Errorf("%d endpoints: the table has %d bytes, want %d a slot", c.n, got, c.width)
		}
	}
}

// What counts is the index in the caller's slice, drained endpoints included.
func TestMaglevEntriesHoldIndicesBehindManyDrainedEndpoints(t *testing.T) {
	list := append(weighted(300, 0), Endpoint{ID: "x", Weight: 1}, Endpoint{ID: "y", Weight: 1})
	m := newTestMaglev(t, list, MaglevConfig{})
	for _, key := range someKeys(3, 100) {
		if i := m.Lookup(key); i != 300 && i != 301 {
			t.Fatalf("key %d goes to %d, want 300 or 301", key, i)
		}
	}
}

func TestMaglevRefusesSizesThatAreNoPrimes(t *testing.T) {
	for _, c := range []struct {
		size int
		want string
	}{
		{65_536, "hash: MaglevConfig.Size is 65536, want a prime such as 65521 or 65537"},
		{252, "hash: MaglevConfig.Size is 252, want a prime such as 251 or 257"},
		{5_000_010, "hash: MaglevConfig.Size is 5000010, want a prime such as 4999999 or 5000011"},
		{250, "hash: MaglevConfig.Size is 250, want a prime of 251 to 5000011"},
		{-1, "hash: MaglevConfig.Size is -1, want a prime of 251 to 5000011"},
		{5_000_012, "hash: MaglevConfig.Size is 5000012, want a prime of 251 to 5000011"},
	} {
		_, err := NewMaglev(fleet(3), MaglevConfig{Size: c.size})
		if err == nil || err.Error() != c.want {
			t.Errorf("size %d: %v, want %q", c.size, err, c.want)
		}
	}
	for _, size := range []int{251, 65_537, 655_373} {
		if _, err := NewMaglev(fleet(3), MaglevConfig{Size: size}); err != nil {
			t.Errorf("size %d: %v", size, err)
		}
	}
}

func TestMaglevRefusesMoreEndpointsThanSlots(t *testing.T) {
	_, err := NewMaglev(fleet(252), MaglevConfig{Size: 251})
	const want = "hash: 252 endpoints have a weight above 0, want at most MaglevConfig.Size, 251"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	list := append(fleet(251), Endpoint{ID: "drained"})
	if _, err := NewMaglev(list, MaglevConfig{Size: 251}); err != nil {
		t.Errorf("251 endpoints and a drained one: %v", err)
	}
}

func TestProblemsOfConfigAndListAreReportedTogether(t *testing.T) {
	list := []Endpoint{{ID: "a", Weight: -1}, {ID: "a", Weight: 1}}
	_, maglevErr := NewMaglev(list, MaglevConfig{Size: 4})
	_, ringErr := NewRing(list, RingConfig{Points: -1, MaxPoints: -1})
	for _, c := range []struct {
		err  error
		want []string
	}{
		{maglevErr, []string{"Size is 4", "Weight is -1", `ID "a" is that of endpoint 0`}},
		{ringErr, []string{"Points is -1", "MaxPoints is -1", "Weight is -1", `ID "a" is that of endpoint 0`}},
	} {
		for _, want := range c.want {
			if c.err == nil || !strings.Contains(c.err.Error(), want) {
				t.Errorf("the error is %v, want it to say %q too", c.err, want)
			}
		}
	}
}

func TestNobodyIsAnErrorOfBuildingAndNeverOfALookup(t *testing.T) {
	for name, list := range map[string][]Endpoint{"no list": nil, "all drained": weighted(3, 0)} {
		if m, err := NewMaglev(list, MaglevConfig{}); m != nil || !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: NewMaglev gives %v, %v, want ErrEmpty", name, m, err)
		}
		if r, err := NewRing(list, RingConfig{}); r != nil || !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: NewRing gives %v, %v, want ErrEmpty", name, r, err)
		}
	}
}

func TestZeroTablesAreEmpty(t *testing.T) {
	var m Maglev
	var r Ring
	for _, got := range []int{m.Lookup(1), r.Lookup(1), len(m.AppendN(nil, 1, 3)), len(r.AppendN(nil, 1, 3))} {
		if got != -1 && got != 0 {
			t.Errorf("an empty table gives %d", got)
		}
	}
	for i := range m.Candidates(1) {
		t.Errorf("an empty table has candidate %d", i)
	}
	for i := range r.Candidates(1) {
		t.Errorf("an empty ring has candidate %d", i)
	}
	if m.Stats() != (Stats{}) || r.Stats() != (Stats{}) || m.Fingerprint() != 0 || r.Fingerprint() != 0 {
		t.Error("an empty table has stats or a fingerprint")
	}
	m2, err := m.Update(fleet(2))
	if err != nil || m2.Lookup(1) < 0 {
		t.Errorf("an empty table cannot be updated: %v", err)
	}
	r2, err := r.Update(fleet(2))
	if err != nil || r2.Lookup(1) < 0 {
		t.Errorf("an empty ring cannot be updated: %v", err)
	}
}

func TestMaglevUpdate(t *testing.T) {
	list := fleet(10)
	m := newTestMaglev(t, list, MaglevConfig{Seed: 7})
	if same, err := m.Update(append(slices.Clone(list), Endpoint{ID: "drained"})); err != nil || same != m {
		t.Errorf("a drained endpoint more gives %p, %v, want the receiver %p", same, err, m)
	}
	reversed := slices.Clone(list)
	slices.Reverse(reversed)
	other, err := m.Update(reversed)
	if err != nil || other == m {
		t.Fatalf("another order gives %p, %v, want another table than %p", other, err, m)
	}
	if other.Fingerprint() != m.Fingerprint() {
		t.Error("another order gives another fingerprint")
	}
	for _, key := range someKeys(4, 1000) {
		if a, b := m.Lookup(key), other.Lookup(key); list[a].ID != reversed[b].ID {
			t.Fatalf("key %d went from %s to %s", key, list[a].ID, reversed[b].ID)
		}
	}
	if kept, err := m.Update(nil); kept != m || !errors.Is(err, ErrEmpty) {
		t.Errorf("an empty list gives %p, %v, want the receiver and ErrEmpty", kept, err)
	}
	less, err := m.Update(list[:9])
	if err != nil {
		t.Fatal(err)
	}
	if want := newTestMaglev(t, list[:9], MaglevConfig{Seed: 7}); !slices.Equal(less.slots8, want.slots8) {
		t.Error("an update gives another table than a build")
	}
}
