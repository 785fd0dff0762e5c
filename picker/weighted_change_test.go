package picker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// What is owed when the list changes is paid in the first rotation after it. Schedules and
// tables owe parts of turns, smooth rotations up to two.
func slackOf(policy picker.Policy) float64 {
	if policy == (picker.SmoothWeightedRoundRobin{}) {
		return 2
	}
	return 0
}

func TestWeightedSharesBeforeAndAfterChanges(t *testing.T) {
	for _, p := range weightedPolicies {
		for _, n := range []int{1, 2, 3, 10, 100} {
			for shape, weights := range weightShapes(n) {
				t.Run(fmt.Sprintf("%s/n=%d/%s", p.name, n, shape), func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(n), 9))
					g := picker.NewRegistry(r.Uint64)
					var built picker.Picker
					snapshot := func(list []picker.Endpoint, available []int32) *picker.Snapshot {
						m, err := g.Members(list, 0)
						if err != nil {
							t.Fatal(err)
						}
						built = p.policy.Build(m, built)
						return picker.NewSnapshot(m, available, p.policy, built)
					}
					list := weighted(weights...)
					s := snapshot(list, nil)
					rotate(t, s, p.random, 0)
					someTime := func() {
						for range r.IntN(3 * n) {
							pick, _, _ := s.Pick(picker.Request{}, 0)
							pick.Done(0, picker.Result{})
						}
					}
					someTime() // and then one joins in the middle of a rotation
					list = append(list, picker.Endpoint{ID: "new", Weight: picker.WeightOf(7)})
					s = snapshot(list, nil)
					rotate(t, s, p.random, slackOf(p.policy))
					someTime() // one changes its weight
					list[0].Weight = picker.WeightOf(3)
					s = snapshot(list, nil)
					rotate(t, s, p.random, slackOf(p.policy))
					someTime() // one leaves
					list = append(list[:n/2:n/2], list[n/2+1:]...)
					s = snapshot(list, nil)
					rotate(t, s, p.random, slackOf(p.policy))
					someTime() // one is not available, and its neighbour inherits nothing
					up := make([]int32, 0, n)
					for i := range int32(n) {
						if int(i) != n/3 || n == 1 {
							up = append(up, i)
						}
					}
					s = snapshot(list, up)
					rotate(t, s, p.random, slackOf(p.policy))
					someTime() // it is back
					s = snapshot(list, nil)
					rotate(t, s, p.random, slackOf(p.policy))
				})
			}
		}
	}
}

func TestBug3RotationGoesOnOverUpdates(t *testing.T) {
	for _, p := range weightedPolicies {
		if p.random {
			continue // it has no position
		}
		g := picker.NewRegistry(nil)
		var built picker.Picker
		var counts [3]int
		for range 350 {
			m, err := g.Members(weighted(5, 1, 1), 0)
			if err != nil {
				t.Fatal(err)
			}
			built = p.policy.Build(m, built)
			s := picker.NewSnapshot(m, nil, p.policy, built)
			for range 2 {
				pick, i, _ := s.Pick(picker.Request{}, 0)
				pick.Done(0, picker.Result{})
				counts[i]++
			}
		}
		if counts != [3]int{500, 100, 100} {
			t.Errorf("%s: %v of 700, want 500, 100, 100", p.name, counts)
		}
	}
}

// Trap 22: nor do updates that change something each time, after every second pick, put
// anybody off.
func TestTrap22SharesHoldWhileTheListChanges(t *testing.T) {
	for _, p := range weightedPolicies {
		r := rand.New(rand.NewPCG(5, 9))
		g := picker.NewRegistry(r.Uint64)
		var built picker.Picker
		counts := map[string]float64{}
		const updates = 2000
		for k := range updates {
			list := weighted(5, 1, 1)
			if k%2 == 0 { // one more, of always another name
				list = append(list, picker.Endpoint{ID: fmt.Sprint("x", k)})
			}
			if k%3 == 0 {
				list[2], list[0] = list[0], list[2]
			}
			m, err := g.Members(list, 0)
			if err != nil {
				t.Fatal(err)
			}
			built = p.policy.Build(m, built)
			s := picker.NewSnapshot(m, nil, p.policy, built)
			for range 2 {
				pick, _, _ := s.Pick(picker.Request{}, 0)
				counts[pick.Record().ID()]++
				pick.Done(0, picker.Result{})
			}
		}
		for id, w := range map[string]float64{"e0": 5, "e1": 1, "e2": 1} {
			want := updates * (w/7 + w/8) // a mean of lists with and without the fourth
			if d := math.Abs(counts[id]/want - 1); d > 0.08 {
				t.Errorf("%s: %s got %v, want %.0f ± 8 %%", p.name, id, counts[id], want)
			}
		}
	}
}

// Among many goroutines too each turn is one pick's: counts over whole rotations are exact.
func TestConcurrentPicksShareOneRotation(t *testing.T) {
	const goroutines, each = 8, 7 * 250
	for _, p := range weightedPolicies {
		if p.random || p.name == "least_request" { // what is in flight differs
			continue
		}
		_, s := build(t, p.policy, weighted(5, 1, 1), nil)
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range each {
					pick, _, _ := s.Pick(picker.Request{}, 0)
					pick.Done(0, picker.Result{})
				}
			})
		}
		wg.Wait()
		for i, w := range []uint64{5, 1, 1} {
			if got := s.Record(i).Picks(); got != w*goroutines*each/7 {
				t.Errorf("%s: member %d got %d, want %d", p.name, i, got, w*goroutines*each/7)
			}
		}
	}
}

// Picks over old and new snapshots go on while lists, weights and availability change, and
// only ever get what their snapshot has.
func TestPicksGoOnWhileEverythingChanges(t *testing.T) {
	for _, p := range weightedPolicies {
		g := picker.NewRegistry(nil)
		m, err := g.Members(endpoints(20), 0)
		if err != nil {
			t.Fatal(err)
		}
		built := p.policy.Build(m, nil)
		views := make(chan *picker.Snapshot, 64)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for s := range views {
					for range 50 {
						pick, i, err := s.Pick(picker.Request{}, 0)
						if err != nil || !s.Available(i) {
							t.Errorf("%s: picked %d, %v", p.name, i, err)
							return
						}
						pick.Done(0, picker.Result{})
					}
				}
			})
		}
		r := rand.New(rand.NewPCG(10, 9))
		for k := range 400 {
			if k%4 == 0 {
				list := endpoints(10 + r.IntN(20))
				for i := range list {
					list[i].Weight = picker.WeightOf(math.Ceil(math.Pow(10_000, r.Float64())))
				}
				if m, err = g.Members(list, 0); err != nil {
					t.Fatal(err)
				}
				built = p.policy.Build(m, built)
			}
			var up []int32
			for i := range m.Len() {
				if r.IntN(1+k%4) == 0 {
					up = append(up, int32(i))
				}
			}
			if len(up) > 0 {
				views <- picker.NewSnapshot(m, up, p.policy, built)
			}
		}
		close(views)
		wg.Wait()
	}
}
