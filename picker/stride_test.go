package picker

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// overTable returns a snapshot of a rotation that begins with visit 0 of a table for
// these integers.
func overTable(t testing.TB, ints []uint64) (*Snapshot, *strideTable) {
	t.Helper()
	weights := make([]float64, len(ints))
	for i, w := range ints {
		weights[i] = float64(w)
	}
	m := membersOf(t, weights...)
	policy := WeightedRoundRobin{}
	p := policy.Build(m, nil).(*stride)
	table := newStrideTable(ints, seatsFor(len(ints), nil))
	p.table.Store(table)
	return NewSnapshot(m, nil, policy, p), table
}

func testStaticStrideVectors(t *testing.T) {
	for _, c := range vectorsOf(t, "static_stride", 2) {
		var in struct {
			Weights       []float64
			FirstSequence uint64 `json:"first_sequence"`
			Picks         int
		}
		var want struct {
			Scaled   []uint64
			Sequence string
			Consumed uint64 `json:"sequences_consumed"`
		}
		c.read(t, &in, &want)
		scaled := strideScale(in.Weights)
		if !reflect.DeepEqual(scaled, want.Scaled) {
			t.Errorf("%s: scaled to %v, want %v", c.ID, scaled, want.Scaled)
		}
		s, table := overTable(t, scaled)
		table.next.Store(in.FirstSequence)
		if got := letters(t, s, in.Picks, true); got != want.Sequence || table.next.Load() != want.Consumed {
			t.Errorf("%s: %s after %d visits, want %s after %d", c.ID, got, table.next.Load(), want.Sequence, want.Consumed)
		}
	}
}

// Weights that are used as they are give gRPC's order too where 16 bits hold their
// fractions exactly.
func TestExactWeightsGiveTheOrderOfScaledOnes(t *testing.T) {
	s, _ := overTable(t, []uint64{5, 1, 1})
	const want = "acaabaaacaabaaacaabaaaca"
	if got := letters(t, s, len(want), true); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The formula as gRPC's A58 has it.
func TestPlainTablesFollowTheFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	tried := 0
	for range 200 {
		weights := make([]float64, 2+r.IntN(20))
		for i := range weights {
			weights[i] = float64(r.IntN(40))
		}
		scaled := strideScale(weights)
		if float64(slices.Max(scaled))*float64(len(scaled)) > maxVisits*float64(sumOf(scaled)) {
			continue
		}
		tried++
		s, table := overTable(t, scaled)
		seq := uint64(r.IntN(1 << 30))
		table.next.Store(seq)
		for range 500 {
			// What many picks at a time do gives the same order.
			var got int
			if r.IntN(2) == 0 {
				got = s.picker.Pick(s, Request{}, 0)
			} else {
				got = table.oneByOne(s)
			}
			var want uint64
			for {
				index, generation := seq%uint64(len(scaled)), seq/uint64(len(scaled))
				w := scaled[index]
				seq++
				if (w*generation+index*32767)%65535 >= 65535-w {
					want = index
					break
				}
			}
			if uint64(got) != want || table.next.Load() != seq {
				t.Fatalf("%v: %d by visit %d, want %d by visit %d", scaled, got, table.next.Load(), want, seq)
			}
		}
	}
	if tried < 50 {
		t.Errorf("only %d lists had plain tables", tried)
	}
}

// From any point on, a whole rotation gives everybody exactly its weight, plain table or
// not; and the table keeps the bounds on slots and visits that it states.
func TestStrideRotationsAreExactAndBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 6))
	for round := range 60 {
		weights := make([]uint64, 1+r.IntN(60))
		most := math.Pow(10, 4*r.Float64())
		for i := range weights {
			weights[i] = 1 + uint64(most*math.Pow(r.Float64(), 8))
		}
		if round%3 == 0 {
			weights[0] = 10_000
		}
		n, sum := len(weights), sumOf(weights)
		s, table := overTable(t, weights)
		if len(table.slots) > 8*n+1 {
			t.Fatalf("%d slots for %d endpoints", len(table.slots), n)
		}
		letters(t, s, r.IntN(1000), true)
		before, counts := table.next.Load(), make([]uint64, n)
		for range sum {
			i := s.picker.Pick(s, Request{}, 0)
			counts[i]++
		}
		if !reflect.DeepEqual(counts, weights) {
			t.Fatalf("weights %v: counts %v", weights, counts)
		}
		bound := 1.25
		if len(table.slots) <= max(n, 2) {
			bound = maxVisits
		}
		if v := float64(table.next.Load()-before) / float64(sum); v > bound {
			t.Errorf("weights %v: %.2f visits to a pick, want at most %v", weights, v, bound)
		}
	}
}

func TestVectorOfCounterWrap(t *testing.T) {
	for _, c := range vectorsOf(t, "counter", 1) {
		var in struct {
			Bits uint `json:"counter_bits"`
			N    uint64
			From uint64
		}
		var want struct{ Indices []uint64 }
		c.read(t, &in, &want)
		_, table := overTable(t, slices.Repeat([]uint64{1}, int(in.N)))
		for k, narrow := range want.Indices {
			seq := in.From + uint64(k)
			if seq&(1<<in.Bits-1)%in.N != narrow {
				t.Errorf("a counter of %d bits gives %d", in.Bits, seq&(1<<in.Bits-1)%in.N)
			}
			if _, at := table.place(seq); at != seq%in.N {
				t.Errorf("visit %d is at %d, want %d", seq, at, seq%in.N)
			}
		}
	}
}

// Trap 29: the counter begins so far from its end that it does not get there, and a visit
// has a place in the table even there.
func TestTrap29StrideCounter(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 6))
	for _, n := range []int{1, 2, 3, 7, 100} {
		weights := make([]uint64, n)
		for i := range weights {
			weights[i] = 1 + uint64(r.IntN(5000))
		}
		s, table := overTable(t, weights)
		length := uint64(len(table.slots))
		for range 1000 {
			seq := r.Uint64()
			if round, at := table.place(seq); round != seq/length || at != seq%length {
				t.Fatalf("visit %d of %d: round %d, place %d", seq, length, round, at)
			}
		}
		table.startAnywhere(r.Uint64)
		if start := table.next.Load(); start > 1<<60 {
			t.Errorf("the counter starts at %d", start)
		}
		table.next.Store(math.MaxUint64 - 50)
		letters(t, s, 200, true)
	}
}

// A zone in which neighbours in the list are out together, and less than a quarter: the
// table stays, nobody inherits, and the shares of the rest are as the weights are.
func TestStrideKeepsItsTableWhileMostIsAvailable(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	g := NewRegistry(r.Uint64)
	const n, out = 400, 95
	list := make([]Endpoint, n)
	for i := range list {
		list[i] = Endpoint{ID: string(rune(0x4e00 + i)), Weight: WeightOf(float64(1 + i%2))}
	}
	m, err := g.Members(list, 0)
	if err != nil {
		t.Fatal(err)
	}
	policy := WeightedRoundRobin{}
	p := policy.Build(m, nil).(*stride)
	table := p.table.Load()
	var up []int32
	sum := 0.0
	for i := out; i < n; i++ {
		up = append(up, int32(i))
		sum += m.Weight(i)
	}
	s := NewSnapshot(m, up, policy, p)
	if p.table.Load() != table {
		t.Fatal("the table was made anew")
	}
	const picks = 200_000
	counts := make([]float64, n)
	for range picks {
		i := s.picker.Pick(s, Request{}, 0)
		if i < out {
			t.Fatalf("picked %d, which is not available", i)
		}
		counts[i]++
	}
	for i := out; i < n; i++ {
		// Some of the picks are random, where many slots in a row are passed over.
		want := picks * m.Weight(i) / sum
		if math.Abs(counts[i]-want) > 2+want*0.05 {
			t.Errorf("member %d got %v, want %.0f", i, counts[i], want)
		}
	}
}

// Past a quarter the table is made over those that are available, and over all again when
// they are back; a rotation over the rest is exact.
func TestStrideMakesItsTableAnewPastAQuarter(t *testing.T) {
	m := membersOf(t, 3, 1, 1, 2, 1)
	policy := WeightedRoundRobin{}
	p := policy.Build(m, nil).(*stride)
	full := len(p.table.Load().slots)
	rest := NewSnapshot(m, []int32{1, 2, 3}, policy, p)
	counts := make([]int, 5)
	for range 4 * 25 {
		counts[rest.picker.Pick(rest, Request{}, 0)]++
	}
	if want := []int{0, 25, 25, 50, 0}; !reflect.DeepEqual(counts, want) || len(p.table.Load().slots) != 3 {
		t.Errorf("counts %v over %d slots, want %v", counts, len(p.table.Load().slots), want)
	}
	all := NewSnapshot(m, nil, policy, p)
	if len(p.table.Load().slots) != full {
		t.Errorf("%d slots, want %d", len(p.table.Load().slots), full)
	}
	clear(counts)
	for range 8 * 25 {
		counts[all.picker.Pick(all, Request{}, 0)]++
	}
	if want := []int{75, 25, 25, 50, 25}; !reflect.DeepEqual(counts, want) {
		t.Errorf("counts %v, want %v", counts, want)
	}
}

// Bug 20, trap 21: whatever the weights and whoever is available, a pick ends after the
// visits that it is allowed.
func TestBug20VisitsOfAPickAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 6))
	for range 300 {
		weights := make([]float64, 1+r.IntN(40))
		for i := range weights {
			weights[i] = math.Exp2(r.Float64()*51 - 19)
		}
		m := membersOf(t, weights...)
		policy := WeightedRoundRobin{}
		p := policy.Build(m, nil).(*stride)
		table := p.table.Load()
		// Only the lightest is available, and the table does not hear of it.
		light := 0
		for i, w := range weights {
			if w < weights[light] {
				light = i
			}
		}
		s := NewSnapshot(m, []int32{int32(light)}, policy, p)
		p.table.Store(table)
		for range 100 {
			before := table.next.Load()
			if i := s.picker.Pick(s, Request{}, 0); i != light {
				t.Fatalf("picked %d, want %d", i, light)
			}
			if visits := table.next.Load() - before; visits > visitsInTurn {
				t.Fatalf("%d visits in one pick", visits)
			}
		}
	}
}
