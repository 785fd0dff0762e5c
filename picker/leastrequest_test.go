package picker

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func testWeightedLeastRequestVectors(t *testing.T) {
	for _, c := range vectorsOf(t, "edf_least_request", 2) {
		var in struct {
			Weights []float64
			Bias    float64
			Picks   int
		}
		var want struct {
			Sequence string
			Active   []int64 `json:"active_after"`
		}
		c.read(t, &in, &want)
		s, _ := fromTheStart(t, WeightedLeastRequest{ActiveRequestBias: &in.Bias}, in.Bias, in.Weights...)
		if got := letters(t, s, in.Picks, false); got != want.Sequence {
			t.Errorf("%s: %s, want %s", c.ID, got, want.Sequence)
		}
		for i, n := range want.Active {
			if got := s.Record(i).InFlight(); got != n {
				t.Errorf("%s: %d in flight on %d, want %d", c.ID, got, i, n)
			}
		}
	}
}

func testLeastRequestWeightVectors(t *testing.T) {
	for _, c := range vectorsOf(t, "lr_weight", 1) {
		var in struct {
			// The numbers of requests go beyond what float64 holds.
			Values [][3]json.Number
		}
		var want struct{ Weight []float64 }
		c.read(t, &in, &want)
		if len(in.Values) != len(want.Weight) || len(in.Values) == 0 {
			t.Fatalf("%d cases, %d results", len(in.Values), len(want.Weight))
		}
		for i, v := range in.Values {
			var active uint64
			if err := json.Unmarshal([]byte(v[1]), &active); err != nil {
				t.Fatal(err)
			}
			w, _ := v[0].Float64()
			bias, _ := v[2].Float64()
			if got := leastRequestWeight(w, active, bias); math.Abs(got/want.Weight[i]-1) > 1e-9 {
				t.Errorf("%s: %v is %v, want %v", c.ID, v, got, want.Weight[i])
			}
		}
	}
}

// Requests end at random; the oracle adds up exact fractions.
func TestWeightedLeastRequestFollowsExactFractions(t *testing.T) {
	for _, bias := range []float64{0, 1, 2} {
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 5))
			weights := make([]float64, 1+r.IntN(8))
			for i := range weights {
				weights[i] = float64(1 + r.IntN(20))
			}
			s, _ := fromTheStart(t, WeightedLeastRequest{ActiveRequestBias: &bias}, bias, weights...)
			oracle := newRational(weights)
			if len(weights) == 1 {
				continue // no schedule is needed
			}
			active := make([]int64, len(weights))
			var open []Pick
			var where []int
			for k := range 2000 {
				p, got, err := s.Pick(Request{}, 0)
				if err != nil {
					t.Fatal(err)
				}
				want := oracle.pick(func(i int) *big.Rat {
					f := int64(1)
					for range int(bias) {
						f *= active[i] + 1
					}
					return big.NewRat(f, int64(weights[i]))
				})
				if got != want {
					t.Fatalf("bias %v, %v: pick %d is %d, want %d", bias, weights, k, got, want)
				}
				active[got]++
				open, where = append(open, p), append(where, got)
				for len(open) > 0 && r.IntN(20) < len(open) {
					last := len(open) - 1
					i := r.IntN(len(open))
					open[i].Done(0, Result{})
					active[where[i]]--
					open[i], where[i] = open[last], where[last]
					open, where = open[:last], where[:last]
				}
			}
		}
	}
}

func TestWeightedLeastRequestValidates(t *testing.T) {
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		err := WeightedLeastRequest{ActiveRequestBias: &bad}.Validate()
		if err == nil || !strings.Contains(err.Error(), "picker: WeightedLeastRequest.ActiveRequestBias is ") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	for _, good := range []*float64{nil, new(0.0), new(1e300)} {
		if err := (WeightedLeastRequest{ActiveRequestBias: good}).Validate(); err != nil {
			t.Error(err)
		}
	}
}

// Absent is 1, which looks at requests in flight, and 0 is plain weighted round robin.
func TestAbsentBiasIsOneAndZeroIsNone(t *testing.T) {
	for _, tc := range []struct {
		bias *float64
		busy bool
	}{{nil, true}, {new(1.0), true}, {new(0.0), false}} {
		m := membersOf(t, 1, 1)
		policy := WeightedLeastRequest{ActiveRequestBias: tc.bias}
		s := NewSnapshot(m, nil, policy, policy.Build(m, nil))
		for range 9 { // nine that do not end
			m.records[0].picks.Add(1)
		}
		got := strings.Count(letters(t, s, 1100, true), "a")
		if want := 550; tc.busy {
			want = 100
			if got < want-1 || got > want+1 {
				t.Errorf("%d of 1,100 for the one with 9 in flight, want %d", got, want)
			}
		} else if got != want {
			t.Errorf("%d of 1,100 for one of two, want %d", got, want)
		}
	}
}

// However great the bias and the load, an endpoint's turn comes, and nothing overflows.
func TestWeightedLeastRequestStandsAnyBias(t *testing.T) {
	for _, bias := range []float64{0.5, 3, 1000, math.MaxFloat64} {
		m := membersOf(t, MinWeight, 1, MaxWeight, 3)
		policy := WeightedLeastRequest{ActiveRequestBias: &bias}
		p := policy.Build(m, nil).(*turns)
		s := NewSnapshot(m, nil, policy, p)
		letters(t, s, 10_000, false)
		for i := range m.records {
			if wait := p.schedule.wait(i); wait.whole > 1<<60 {
				t.Errorf("bias %v: %d waits for %v", bias, i, wait)
			}
		}
		for _, active := range []int64{math.MinInt64, 0, 1, 1000, math.MaxInt64} {
			if steps := loadSteps(active, bias); steps < turnUnit || steps > turnUnit<<24 {
				t.Errorf("bias %v, %d in flight: %d steps", bias, active, steps)
			}
		}
	}
}

// A change between the policies that keep schedules goes on where the other was.
func TestSchedulesAreTakenOverByEitherPolicy(t *testing.T) {
	m := membersOf(t, 3, 1)
	first := EDF{}
	p := first.Build(m, nil)
	got := letters(t, NewSnapshot(m, nil, first, p), 3, true)
	second := WeightedLeastRequest{}
	p = second.Build(m, p)
	got += letters(t, NewSnapshot(m, nil, second, p), 3, true)
	p = first.Build(m, p)
	got += letters(t, NewSnapshot(m, nil, first, p), 2, true)
	if strings.Count(got, "b") != 2 {
		t.Errorf("%s: want each turn of four to have one b", got)
	}
}
