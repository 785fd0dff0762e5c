package picker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// The heavy one is down, which had nearly all of the weight: the others share by theirs, however seldom
// a table that still has the heavy one would draw them.
func TestOthersShareByWeightWhileTheHeavyOneIsDown(t *testing.T) {
	for name, policy := range map[string]picker.Policy{
		"p2c in flight": picker.P2C{Signal: picker.InFlight},
		"p2c latency":   picker.P2C{},
		"p3c latency":   picker.P2C{Choices: 3},
		"p2c log mean":  picker.P2C{Signal: picker.LogMean},
		"random":        picker.WeightedRandom{},
		"adaptive":      picker.Adaptive{},
	} {
		for _, weights := range [][]float64{
			{1, 9, 9, 9, 9, 10_000},
			{1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 10_000}, // more than Adaptive compares
			{1, 1, 2, 10_000, 5_000},
		} {
			t.Run(fmt.Sprintf("%s/n=%d", name, len(weights)), func(t *testing.T) {
				testHeavyDown(t, policy, weights)
			})
		}
	}
}

func testHeavyDown(t *testing.T, policy picker.Policy, weights []float64) {
	g, s := build(t, policy, weighted(weights...), rand.New(rand.NewPCG(87, 88)).Uint64)
	m, built := s.Members(), policy.Build(s.Members(), nil)
	share := func(s *picker.Snapshot) {
		t.Helper()
		const total = 10_000
		counts, sum := make([]float64, len(weights)), 0.0
		for k := range s.Len() {
			sum += weights[s.At(k)]
		}
		now := int64(0)
		for range total {
			now += ms
			p, i, err := s.Pick(picker.Request{}, now)
			if err != nil {
				t.Fatal(err)
			}
			counts[i]++
			p.Done(now+ms/10, picker.Result{Outcome: picker.Success})
		}
		g.Sweep(now)
		s.Sweep(now)
		for i, w := range weights {
			q := w / sum
			if !s.Available(i) {
				q = 0
			}
			if d := math.Abs(counts[i] - q*total); d > 5*math.Sqrt(q*(1-q)*total)+1 {
				t.Errorf("%d available: endpoint %d of weight %v got %v of %d, want %.0f", s.Len(), i, w, counts[i], total, q*total)
			}
		}
	}
	light := make([]int32, 0, len(weights))
	for i, w := range weights {
		if w < 1000 {
			light = append(light, int32(i))
		}
	}
	share(picker.NewSnapshot(m, nil, policy, built))
	share(picker.NewSnapshot(m, light, policy, built))
	share(picker.NewSnapshot(m, nil, policy, built)) // it is back
	lightest := slices.DeleteFunc(slices.Clone(light), func(i int32) bool { return weights[i] > 1 })
	share(picker.NewSnapshot(m, lightest, policy, built))
}
