package hash

import (
	"math"
	"math/big"
	"slices"
	"testing"
)

// naiveQuotas is slotQuotas with fractions of any size.
func naiveQuotas(weights []uint64, size int64) []uint32 {
	quotas := make([]uint32, len(weights))
	slots, sum := big.NewInt(size), new(big.Int)
	for _, w := range weights {
		sum.Add(sum, new(big.Int).SetUint64(w))
	}
	shareOf := func(i int) *big.Rat {
		x := new(big.Int).Mul(new(big.Int).SetUint64(weights[i]), slots)
		return new(big.Rat).SetFrac(x, sum)
	}
	one := big.NewRat(1, 1)
	for again := true; again; { // whoever is below one slot gets one, the smallest first
		again = false
		least := -1
		for i := range weights {
			if quotas[i] == 0 && shareOf(i).Cmp(one) < 0 && (least < 0 || weights[i] < weights[least]) {
				least = i
			}
		}
		if least >= 0 {
			quotas[least] = 1
			slots.Sub(slots, big.NewInt(1))
			sum.Sub(sum, new(big.Int).SetUint64(weights[least]))
			again = true
		}
	}
	left := slots.Int64()
	rests := map[int]*big.Rat{}
	for i := range weights {
		if quotas[i] > 0 {
			continue
		}
		s := shareOf(i)
		whole := new(big.Int).Quo(s.Num(), s.Denom())
		quotas[i] = uint32(whole.Int64())
		left -= whole.Int64()
		rests[i] = new(big.Rat).Sub(s, new(big.Rat).SetInt(whole))
	}
	for ; left > 0; left-- {
		most := -1
		for i := range weights {
			if r := rests[i]; r != nil && (most < 0 || r.Cmp(rests[most]) > 0) {
				most = i
			}
		}
		quotas[most]++
		delete(rests, most)
	}
	return quotas
}

func TestQuotasAreThoseOfExactFractions(t *testing.T) {
	r := fixedRand(1)
	for round := range 300 {
		n := 1 + r.IntN(40)
		size := uint64(n + r.IntN(600))
		weights := make([]uint64, n)
		for i := range weights {
			weights[i] = 1 + r.Uint64()>>(4+r.IntN(60))
		}
		if round%3 == 0 { // several alike
			for i := range weights {
				weights[i] = weights[i%(1+n/3)]
			}
		}
		weights = boundedSum(weights)
		got, want := slotQuotas(weights, size), naiveQuotas(weights, int64(size))
		if !slices.Equal(got, want) {
			t.Fatalf("%d slots for %v: %v, want %v", size, weights, got, want)
		}
	}
}

func TestEveryShareIsExactToLessThanASlot(t *testing.T) {
	for _, c := range []struct {
		name string
		list []Endpoint
	}{
		{"equal", fleet(100)},
		{"1:10", weighted(100, 1, 10)},
		{"1..10", weighted(1000, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)},
		{"one heavy among 999 light", append(fleet(999), Endpoint{ID: "heavy", Weight: 1000})},
		{"fractions", weighted(97, 0.1, 0.25, 1.0/3)},
		{"655 a slot short of a hundred each", fleet(655)},
	} {
		m := newTestMaglev(t, c.list, MaglevConfig{})
		owned, sum := map[string]int{}, 0.0
		for _, id := range slotOwners(m, c.list) {
			owned[id]++
		}
		for _, e := range c.list {
			sum += e.Weight
		}
		for _, e := range c.list {
			ideal := e.Weight / sum * DefaultMaglevSize
			if off := math.Abs(float64(owned[e.ID]) - ideal); off >= 1 {
				t.Errorf("%s: %s has %d slots, want %.3f to less than a slot", c.name, e.ID, owned[e.ID], ideal)
			}
		}
	}
}

func TestALightEndpointHasASlotWhateverTheOthersWeigh(t *testing.T) {
	list := append(fleet(200), Endpoint{ID: "heavy", Weight: MaxWeight})
	for i := range 200 {
		list[i].Weight = MinWeight
	}
	m := newTestMaglev(t, list, MaglevConfig{Size: 251})
	owned := map[string]int{}
	for _, id := range slotOwners(m, list) {
		owned[id]++
	}
	for _, e := range list[:200] {
		if owned[e.ID] != 1 {
			t.Errorf("%s has %d slots, want 1", e.ID, owned[e.ID])
		}
	}
	if owned["heavy"] != 51 {
		t.Errorf("the heavy one has %d slots, want the 51 that are left", owned["heavy"])
	}
}

func TestAsManyEndpointsAsSlotsHaveOneEach(t *testing.T) {
	for _, list := range [][]Endpoint{fleet(251), weighted(251, 1, 1000, 7)} {
		m := newTestMaglev(t, list, MaglevConfig{Size: 251})
		for i, q := range m.quotas {
			if q != 1 {
				t.Fatalf("%s has %d slots, want 1", m.list.ids[i], q)
			}
		}
	}
}

func TestBoundedSumKeepsRatios(t *testing.T) {
	got := boundedSum([]uint64{30 << 30, 10 << 30, 20 << 30})
	if want := []uint64{3, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("boundedSum gives %v, want %v", got, want)
	}
	// As many of the largest weight as there may be do not overflow.
	most := make([]uint64, 1<<16)
	for i := range most {
		most[i] = MaxWeight*weightUnit - uint64(i%2)
	}
	sum := uint64(0)
	for _, w := range boundedSum(most) {
		if sum += w; sum >= 1<<62 {
			t.Fatalf("the sum reaches %d, want less than 2^62", sum)
		}
	}
}

// Beside thousands of the largest weight, the smallest is below the unit that sums are kept in.
func TestTheSmallestWeightBesideManyOfTheLargestHasASlot(t *testing.T) {
	list := append(weighted(1<<12, MaxWeight), Endpoint{ID: "light", Weight: MinWeight})
	m := newTestMaglev(t, list, MaglevConfig{})
	if q := m.quotas[len(m.quotas)-1]; q != 1 {
		t.Errorf("the light one has %d slots, want 1", q)
	}
	owned := 0
	for _, i := range m.slots16 {
		if int(i) == 1<<12 {
			owned++
		}
	}
	if owned != 1 {
		t.Errorf("the light one owns %d slots, want 1", owned)
	}
}
