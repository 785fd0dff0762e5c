package picker

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// chances returns the probability of each index, added up from the columns of t.
func (t *aliasTable) chances() []float64 {
	out := make([]float64, len(t.columns))
	for i, c := range t.columns {
		out[i] += float64(c.threshold) / (1 << 32)
		out[c.alias] += 1 - float64(c.threshold)/(1<<32)
	}
	for i := range out {
		out[i] /= float64(len(out))
	}
	return out
}

func TestAliasTableHasTheWeightsShares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for _, n := range []int{1, 2, 3, 10, 100, 1000, 10_000} {
		for range 20 {
			weights := make([]uint64, n)
			spread := r.Float64() * 32
			for i := range weights {
				if r.IntN(10) > 0 {
					weights[i] = uint64(math.Exp2(r.Float64() * spread))
				}
			}
			sum := float64(sumOf(weights))
			if sum == 0 {
				continue
			}
			for i, got := range newAliasTable(weights).chances() {
				want := float64(weights[i]) / sum
				if math.Abs(got-want) > 1.0/(1<<32) || got == 0 != (want == 0) {
					t.Fatalf("n = %d: %v for weight %d of %v, want %v", n, got, weights[i], sum, want)
				}
			}
		}
	}
}

// A draw is what the columns say, to the last random number before each of their edges.
func TestDrawFollowsTheColumns(t *testing.T) {
	table := newAliasTable([]uint64{5, 0, 1, 10_000, 7})
	n := float64(len(table.columns))
	for i, c := range table.columns {
		left := math.Ceil(float64(i) / n * (1 << 63) * 2)
		first := uint64(left) + 1<<20 // away from the rounding of left
		if got := table.draw(first); c.threshold > 0 && got != int32(i) || c.threshold == 0 && got != c.alias {
			t.Errorf("the beginning of column %d draws %d", i, got)
		}
		edge := uint64(left + float64(c.threshold)/(1<<32)/n*(1<<63)*2)
		if c.threshold > 0 && (table.draw(edge-1<<20) != int32(i) || table.draw(edge+1<<20) != c.alias) {
			t.Errorf("around the edge of column %d: %d and %d", i, table.draw(edge-1<<20), table.draw(edge+1<<20))
		}
	}
	if table.draw(0) < 0 || table.draw(math.MaxUint64) < 0 {
		t.Error("the ends are outside")
	}
}

// Trap 21: weights of 0 have no chance, positive ones always do, and nothing breaks it.
func TestTrap21AliasTableStandsAnyWeights(t *testing.T) {
	for _, tc := range []struct{ in, want []float64 }{
		{[]float64{0, 0}, []float64{0.5, 0.5}},
		{[]float64{math.NaN(), -1, 0}, []float64{1. / 3, 1. / 3, 1. / 3}},
		{[]float64{math.Inf(1), MaxWeight, 0}, []float64{0.5, 0.5, 0}},
		{[]float64{1, math.NaN()}, []float64{1, 0}},
	} {
		got := newAliasTable(integerWeights(tc.in)).chances()
		for i := range got {
			if math.Abs(got[i]-tc.want[i]) > 1e-9 {
				t.Errorf("%v: chances %v, want %v", tc.in, got, tc.want)
				break
			}
		}
	}
	for _, p := range newAliasTable([]uint64{1, 1 << 50, 1}).chances() {
		if p == 0 {
			t.Error("a positive weight has no chance")
		}
	}
}

// After each of many random flips the table has everybody who is available, and at least
// three quarters of its weight is available; it is left alone while that is so.
func TestCoverageUnderRandomFlips(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 8))
	for range 50 {
		weights := make([]float64, 1+r.IntN(30))
		for i := range weights {
			weights[i] = float64(1 + r.IntN(50))
		}
		m := membersOf(t, weights...)
		policy := WeightedRandom{}
		p := policy.Build(m, nil).(*weightedRandom)
		up := make([]bool, len(weights))
		for i := range up {
			up[i] = true
		}
		full := p.table.Load()
		for range 200 {
			i := r.IntN(len(up))
			up[i] = !up[i]
			var available []int32
			sum, total := 0.0, 0.0
			for i, ok := range up {
				total += weights[i]
				if ok {
					available = append(available, int32(i))
					sum += weights[i]
				}
			}
			if len(available) == 0 {
				continue
			}
			s := NewSnapshot(m, available, policy, p)
			if (p.table.Load() == full) != (total-sum <= math.Floor(total/4)) {
				t.Fatalf("%v of %v is available, the table is over all: %v", sum, total, p.table.Load() == full)
			}
			reached := 0.0
			for i, c := range p.table.Load().chances() {
				if up[i] {
					reached += c
				}
				if up[i] && c == 0 {
					t.Fatalf("%d is available and not in the table", i)
				}
			}
			if reached < 0.75-1e-6 {
				t.Fatalf("only %v of the draws find somebody", reached)
			}
			for range 20 {
				if i := s.picker.Pick(s, Request{}, 0); !up[i] {
					t.Fatalf("picked %d, which is not available", i)
				}
			}
		}
	}
}

// Over a snapshot that shares nobody with the table a pick still ends, and is one of its
// own.
func TestBug20DrawsOfAPickAreBounded(t *testing.T) {
	draws := 0
	r := rand.New(rand.NewPCG(3, 8))
	g := NewRegistry(func() uint64 { draws++; return r.Uint64() })
	m, err := g.Members(listOf(1, 1, 1, 10_000), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []Policy{WeightedRandom{}, WeightedRoundRobin{}} {
		p := policy.Build(m, nil)
		older := NewSnapshot(m, []int32{0, 1}, policy, p)
		NewSnapshot(m, []int32{3}, policy, p)
		counts := make([]int, 4)
		for range 2000 {
			draws = 0
			counts[older.picker.Pick(older, Request{}, 0)]++
			if draws > visitsAnywhere+1 {
				t.Fatalf("%T: %d draws in one pick", policy, draws)
			}
		}
		if slices.Min(counts[:2]) < 850 || counts[2]+counts[3] > 0 {
			t.Errorf("%T: counts %v", policy, counts)
		}
	}
}
