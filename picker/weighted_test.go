package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// weightedPolicies are the rules that go by weights alone, or did if nothing were in
// flight. Those that are not random have exact shares over whole rotations.
var weightedPolicies = []struct {
	name   string
	policy picker.Policy
	random bool // each pick is drawn
	begins bool // at a random point of the rotation
}{
	{"smooth", picker.SmoothWeightedRoundRobin{}, false, false},
	{"edf", picker.EDF{}, false, true},
	{"least_request", picker.WeightedLeastRequest{}, false, true},
	{"stride", picker.WeightedRoundRobin{}, false, true},
	{"alias", picker.WeightedRandom{}, true, true},
}

// weightShapes are lists of n weights from 1:1 to 10,000:1.
func weightShapes(n int) map[string][]float64 {
	shapes := map[string][]float64{"equal": {}, "heavy": {}, "light": {}, "spread": {}}
	most := 10_000.0
	if n > 10 {
		most = 1000 // one rotation of 10,000 would take too long
	}
	for i := range n {
		part := float64(i+1) / float64(n)
		shapes["equal"] = append(shapes["equal"], 1)
		shapes["heavy"] = append(shapes["heavy"], 1)
		shapes["light"] = append(shapes["light"], 100)
		shapes["spread"] = append(shapes["spread"], math.Ceil(math.Pow(most, part)))
	}
	shapes["heavy"][n/2] = 10_000
	shapes["light"][n/2] = 1
	return shapes
}

// rotate picks as often as the weights of the available endpoints sum to, and compares the
// counts with the weights: within slack for rotations, within five sigma for draws.
func rotate(t *testing.T, s *picker.Snapshot, random bool, slack float64) {
	t.Helper()
	m := s.Members()
	counts, want := make([]float64, m.Len()), make([]float64, m.Len())
	sum := 0.0
	for k := range s.Len() {
		want[s.At(k)] = m.Weight(s.At(k))
		sum += m.Weight(s.At(k))
	}
	rounds := math.Ceil(2000 / sum)
	for range int(rounds * sum) {
		p, i, err := s.Pick(picker.Request{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		counts[i]++
		p.Done(0, picker.Result{Outcome: picker.Success})
	}
	for i := range counts {
		bound := slack
		if q := want[i] / sum; random {
			bound = 5 * math.Sqrt(rounds*sum*q*(1-q))
		}
		if math.Abs(counts[i]-rounds*want[i]) > bound {
			t.Errorf("member %d of weight %v got %v of %v, want %v ± %.0f",
				i, m.Weight(i), counts[i], rounds*sum, rounds*want[i], bound)
		}
	}
}

// With fractions shares are as close as in any other way of counting.
func TestFractionalWeightsHaveTheirShares(t *testing.T) {
	for _, p := range weightedPolicies {
		weights := []float64{0.1, 0.25, 1e-3, 3.3, 0.1}
		r := rand.New(rand.NewPCG(2, 9))
		_, s := build(t, p.policy, weighted(weights...), r.Uint64)
		const picks = 100_000
		counts := make([]float64, len(weights))
		for range picks {
			pick, i, _ := s.Pick(picker.Request{}, 0)
			counts[i]++
			pick.Done(0, picker.Result{})
		}
		sum := 0.0
		for _, w := range weights {
			sum += w
		}
		for i, w := range weights {
			bound := 3.0
			if p.random {
				bound = 5 * math.Sqrt(picks*w/sum)
			}
			if want := picks * w / sum; math.Abs(counts[i]-want) > bound {
				t.Errorf("%s: weight %v got %v, want %.1f ± %.0f", p.name, w, counts[i], want, bound)
			}
		}
	}
}

// Rotations are off their shares by no more than their documentation says, at any moment.
func TestRotationsStayCloseToTheirShares(t *testing.T) {
	for _, p := range weightedPolicies {
		if p.random {
			continue
		}
		for _, n := range []int{2, 3, 10, 100, 500} {
			for shape, weights := range weightShapes(n) {
				r := rand.New(rand.NewPCG(3, uint64(n)))
				_, s := build(t, p.policy, weighted(weights...), r.Uint64)
				sum := 0.0
				for _, w := range weights {
					sum += w
				}
				counts := make([]float64, n)
				for k := range 3 * n {
					pick, i, _ := s.Pick(picker.Request{}, 0)
					pick.Done(0, picker.Result{})
					counts[i]++
					for i, w := range weights {
						q := w / sum
						bound := 1.01
						switch p.name {
						case "stride":
							bound = 2 + 6*q
						case "edf", "least_request":
							bound = 2 + 2*q*math.Sqrt(float64(n))
						}
						if off := math.Abs(counts[i] - float64(k+1)*q); off > bound {
							t.Fatalf("%s, n = %d, %s: weight %v is off by %.2f turns after %d picks, want at most %.2f",
								p.name, n, shape, w, off, k+1, bound)
						}
					}
				}
			}
		}
	}
}

// Trap 22: a rotation that always begins with the heavy ones starves the light ones of
// clients that each send little. Not only the first pick is distributed by weight.
func TestTrap22FirstPicksOfManyPoolsFollowTheWeights(t *testing.T) {
	const pools = 6000
	for _, p := range weightedPolicies {
		if !p.begins {
			continue
		}
		for _, weights := range [][]float64{{5, 1, 1}, {1, 1, 1, 1}, {1, 50, 1, 1}, {3, 2}} {
			r := rand.New(rand.NewPCG(4, 9))
			sum := 0.0
			for _, w := range weights {
				sum += w
			}
			var counts [4][4]float64
			for range pools {
				_, s := build(t, p.policy, weighted(weights...), r.Uint64)
				for k := range counts {
					pick, i, _ := s.Pick(picker.Request{}, 0)
					pick.Done(0, picker.Result{})
					counts[k][i]++
				}
			}
			for k := range counts {
				for i, w := range weights {
					q := w / sum
					if d := math.Abs(counts[k][i] - pools*q); d > 5*math.Sqrt(pools*q*(1-q)) {
						t.Errorf("%s, %v: pick %d was member %d in %v of %d pools, want %.0f",
							p.name, weights, k, i, counts[k][i], pools, pools*q)
					}
				}
			}
		}
	}
}

func TestBug18WeightedRulesTakeAllZeroForEqual(t *testing.T) {
	for _, p := range weightedPolicies {
		_, s := build(t, p.policy, weighted(0, 0), rand.New(rand.NewPCG(6, 9)).Uint64)
		if !s.Members().AllDrained() || s.Len() != 2 {
			t.Fatalf("%s: AllDrained %v, %d available", p.name, s.Members().AllDrained(), s.Len())
		}
		rotate(t, s, p.random, 0)
	}
}

func TestBug19WeightedRulesDrainZeroAndTakeAbsentForOne(t *testing.T) {
	for _, p := range weightedPolicies {
		list := weighted(1, 0, 1)
		list[2].Weight = picker.Weight{}
		_, s := build(t, p.policy, list, rand.New(rand.NewPCG(7, 9)).Uint64)
		rotate(t, s, p.random, 0)
	}
}

// Bug 20: a negative weight is refused, a pick goes on over the list before, and the list
// after it is taken.
func TestBug20NegativeWeightIsRefusedAndLeavesNoTrace(t *testing.T) {
	for _, p := range weightedPolicies {
		g, s := build(t, p.policy, weighted(1, 2), rand.New(rand.NewPCG(8, 9)).Uint64)
		for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
			if _, err := g.Members(weighted(1, bad), 0); err == nil {
				t.Errorf("%s: weight %v was accepted", p.name, bad)
			}
		}
		rotate(t, s, p.random, 0)
		m, err := g.Members(weighted(3, 1), 0)
		if err != nil {
			t.Fatal(err)
		}
		rotate(t, picker.NewSnapshot(m, nil, p.policy, p.policy.Build(m, nil)), p.random, 0)
	}
}

// Bug 24: a name's weight, split over its addresses, is what they get together: 10 over 11
// addresses, and 90 over 5.
func TestBug24WeightSplitOverAddressesKeepsItsShare(t *testing.T) {
	for _, p := range weightedPolicies {
		var weights []float64
		for range 11 {
			weights = append(weights, 10.0/11)
		}
		for range 5 {
			weights = append(weights, 90.0/5)
		}
		_, s := build(t, p.policy, weighted(weights...), rand.New(rand.NewPCG(9, 9)).Uint64)
		first := 0.0
		for range 10_000 {
			pick, i, _ := s.Pick(picker.Request{}, 0)
			pick.Done(0, picker.Result{})
			if i < 11 {
				first++
			}
		}
		bound := 11.0
		if p.random {
			bound = 5 * math.Sqrt(10_000*0.1*0.9)
		}
		if math.Abs(first-1000) > bound {
			t.Errorf("%s: the name with 10 of 100 got %v of 10,000", p.name, first)
		}
	}
}

func TestWeightedPoliciesKeepOffWhatRequestsAvoid(t *testing.T) {
	for _, p := range weightedPolicies {
		for _, weights := range [][]float64{{1, 10_000}, {10_000, 1, 1}} {
			_, s := build(t, p.policy, weighted(weights...), nil)
			for heavy := range weights {
				avoid := []*picker.Record{s.Record(heavy)}
				for range 200 {
					pick, i, err := s.Pick(picker.Request{Avoid: avoid}, 0)
					if err != nil || i == heavy {
						t.Fatalf("%s: picked %d, %v", p.name, i, err)
					}
					pick.Done(0, picker.Result{})
				}
			}
		}
	}
}

func TestWeightedPoliciesHaveTypedErrors(t *testing.T) {
	for _, p := range weightedPolicies {
		if err := p.policy.Validate(); err != nil || p.policy.Needs() != 0 {
			t.Errorf("%s: %v, needs %d", p.name, err, p.policy.Needs())
		}
		g, s := build(t, p.policy, nil, nil)
		if _, _, err := s.Pick(picker.Request{}, 0); err != picker.ErrEmpty {
			t.Errorf("%s: no members: %v", p.name, err)
		}
		built := p.policy.Build(s.Members(), nil)
		m, err := g.Members(weighted(1, 2), 0) // and then there are some
		if err != nil {
			t.Fatal(err)
		}
		built = p.policy.Build(m, built)
		s = picker.NewSnapshot(m, []int32{}, p.policy, built)
		if _, _, err := s.Pick(picker.Request{}, 0); err != picker.ErrNoneReady {
			t.Errorf("%s: nobody ready: %v", p.name, err)
		}
		rotate(t, picker.NewSnapshot(m, nil, p.policy, built), p.random, 0)
	}
}

// A pick that allocates costs the garbage collector more than the choice itself.
func TestWeightedPicksDoNotAllocate(t *testing.T) {
	for _, p := range weightedPolicies {
		m, err := picker.NewRegistry(nil).Members(weighted(5, 1, 10_000, 2.5), 0)
		if err != nil {
			t.Fatal(err)
		}
		built := p.policy.Build(m, nil)
		views := []*picker.Snapshot{
			picker.NewSnapshot(m, nil, p.policy, built),
			picker.NewSnapshot(m, []int32{0, 1}, p.policy, built),
		}
		if n := testing.AllocsPerRun(1000, func() {
			for _, view := range views { // an older one costs more, but not this
				pick, _, _ := view.Pick(picker.Request{}, 0)
				pick.Done(1, picker.Result{Outcome: picker.Success})
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a pick", p.name, n)
		}
	}
}
