package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// No weight that was refused, and none at the bounds, makes a rule loop, starve or divide by
// zero.
func TestT21OddWeightsAreRefusedOrHarmless(t *testing.T) {
	for _, w := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1), 1e-300, 1e300, picker.MaxWeight * 2, picker.MinWeight / 2} {
		if err := picker.Validate(weighted(1, w)); err == nil {
			t.Errorf("weight %v was accepted", w)
		}
	}
	odd := [][]float64{{picker.MinWeight, picker.MaxWeight}, {0, 1}, {0, 0}, {picker.MinWeight, picker.MinWeight}, {1, 1e-6, 1e6}}
	var policies []picker.Policy
	for _, p := range comparing {
		policies = append(policies, p.policy)
	}
	for _, p := range weightedPolicies {
		policies = append(policies, p.policy)
	}
	for _, policy := range policies {
		for _, weights := range odd {
			_, s := build(t, policy, weighted(weights...), nil)
			for range 500 {
				pick, _, err := s.Pick(picker.Request{}, 0)
				if err != nil {
					t.Fatalf("%#v, weights %v: %v", policy, weights, err)
				}
				pick.Done(0, picker.Result{Outcome: picker.Success})
			}
		}
	}
}

// A rotation that is built anew after every second pick still reaches the light ones.
func TestT22RebuildsDoNotFavourTheFirst(t *testing.T) {
	for _, policy := range []picker.Policy{picker.SmoothWeightedRoundRobin{}, picker.EDF{}, picker.WeightedRoundRobin{}} {
		g := picker.NewRegistry(rand.New(rand.NewPCG(22, 23)).Uint64)
		counts := make([]int, 3)
		var prev picker.Picker
		for range 700 {
			m, err := g.Members(weighted(5, 1, 1), 0)
			if err != nil {
				t.Fatal(err)
			}
			prev = policy.Build(m, prev)
			s := picker.NewSnapshot(m, nil, policy, prev)
			for range 2 {
				p, i, err := s.Pick(picker.Request{}, 0)
				if err != nil {
					t.Fatal(err)
				}
				counts[i]++
				p.Done(0, picker.Result{})
			}
		}
		for i, want := range []int{1000, 200, 200} {
			if d := counts[i] - want; d < -5 || d > 5 {
				t.Errorf("%T: %v of 1,400, want 1000, 200 and 200", policy, counts)
				break
			}
		}
	}
}

// A 32-bit counter that wraps shifts a rotation whose length is no power of two.
func TestT29CountersDoNotWrapInSight(t *testing.T) {
	for _, from := range []uint64{1<<32 - 6, 1<<61 - 6} {
		_, s := build(t, picker.RoundRobin{}, endpoints(3), func() uint64 { return from << 1 })
		counts := make([]int, 3)
		for range 12 {
			_, i, err := s.Pick(picker.Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			counts[i]++
		}
		if counts[0] != 4 || counts[1] != 4 || counts[2] != 4 {
			t.Errorf("from %d: %v of 12", from, counts)
		}
	}
}
