package picker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// serve sends n requests of equal, constant latency through s, ten at a time, and
// returns how many each member got.
func serve(tb testing.TB, s *picker.Snapshot, n int, now *int64) []int {
	tb.Helper()
	const open, latency = 10, 1_000_000
	counts := make([]int, s.Members().Len())
	var ring [open]picker.Pick
	for k := range n {
		*now += latency / open
		ring[k%open].Done(*now, picker.Result{Outcome: picker.Success})
		pick, i, err := s.Pick(picker.Request{}, *now)
		if err != nil {
			tb.Fatal(err)
		}
		counts[i]++
		ring[k%open] = pick
	}
	for k := n; k < n+open; k++ { // the same latency for the last ones
		*now += latency / open
		ring[k%open].Done(*now, picker.Result{Outcome: picker.Success})
	}
	return counts
}

// With one of n down, the rest share equally: the neighbour of the dead one gets no
// more than the others.
func TestSurvivorsShareEqually(t *testing.T) {
	for _, p := range benchPolicies {
		for _, n := range []int{2, 3, 10, 100} {
			for _, down := range []int{0, n / 2, n - 1} {
				t.Run(fmt.Sprintf("%s/n=%d/down=%d", p.name, n, down), func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(n), uint64(down)))
					g := picker.NewRegistry(r.Uint64)
					g.Learn(p.policy.Needs())
					m, err := g.Members(endpoints(n), 0)
					if err != nil {
						t.Fatal(err)
					}
					built := p.policy.Build(m, nil)
					now := int64(0)
					serve(t, picker.NewSnapshot(m, nil, p.policy, built), 100*n, &now)
					var up []int32
					for i := range n {
						if i != down {
							up = append(up, int32(i))
						}
					}
					per := 2000
					counts := serve(t, picker.NewSnapshot(m, up, p.policy, built), per*(n-1), &now)
					if counts[down] != 0 {
						t.Fatalf("the one that is down got %d", counts[down])
					}
					q := 1 / float64(n-1)
					bound := 5 * math.Sqrt(float64(per*(n-1))*q*(1-q)) // 5 sigma; 0 when one is left
					if p.name == "round_robin" {
						bound = 1
					}
					for _, i := range up {
						if d := math.Abs(float64(counts[i] - per)); d > bound {
							t.Errorf("member %d got %d, want %d ± %.0f", i, counts[i], per, bound)
						}
					}
				})
			}
		}
	}
}

func TestRoundRobinTakesEveryoneOncePerTurn(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 10, 100, 1000} {
		_, s := build(t, picker.RoundRobin{}, endpoints(n), nil)
		last := -1
		for k := range 5 * n {
			pick, i, err := s.Pick(picker.Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			pick.Done(0, picker.Result{})
			if k > 0 && i != (last+1)%n {
				t.Fatalf("n = %d: %d after %d", n, i, last)
			}
			last = i
		}
	}
}

func TestRoundRobinStartsAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var first [10]int
	for range 2000 {
		_, s := build(t, picker.RoundRobin{}, endpoints(10), r.Uint64)
		_, i, _ := s.Pick(picker.Request{}, 0)
		first[i]++
	}
	for i, n := range first {
		if math.Abs(float64(n-200)) > 5*math.Sqrt(2000*0.1*0.9) {
			t.Errorf("first pick %d in %d of 2,000 pools, want 200", i, n)
		}
	}
}

func TestRoundRobinGoesOnOverAnUpdate(t *testing.T) {
	g := picker.NewRegistry(nil)
	policy := picker.RoundRobin{}
	var prev picker.Picker
	counts := map[string]int{}
	for k := range 700 {
		if k%2 == 0 { // a new list after every second pick
			m, err := g.Members(endpoints(7), 0)
			if err != nil {
				t.Fatal(err)
			}
			prev = policy.Build(m, prev)
			s := picker.NewSnapshot(m, nil, policy, prev)
			for range 2 {
				pick, _, err := s.Pick(picker.Request{}, 0)
				if err != nil {
					t.Fatal(err)
				}
				counts[pick.Record().ID()]++
				pick.Done(0, picker.Result{})
			}
		}
	}
	for id, n := range counts {
		if n != 100 {
			t.Errorf("%s got %d of 700, want 100", id, n)
		}
	}
}

// With distinct draws the share of the endpoint of rank i of n is 2(n-i)/(n(n-1)):
// nobody gets more than 2/n, and the worst gets nothing.
func TestP2CSharesFollowRank(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		r := rand.New(rand.NewPCG(9, uint64(n)))
		_, s := build(t, picker.P2C{Signal: picker.InFlight}, endpoints(n), r.Uint64)
		for i := range n {
			for range i { // rank i has i requests in flight
				hold(t, s, i)
			}
		}
		const total = 100_000
		counts := make([]int, n)
		for range total {
			pick, i, err := s.Pick(picker.Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			counts[i]++
			pick.Done(0, picker.Result{})
		}
		for i, got := range counts {
			want := 2 * float64(n-1-i) / float64(n*(n-1))
			if d := math.Abs(float64(got)/total - want); d > 5*math.Sqrt(want*(1-want)/total) {
				t.Errorf("n = %d, rank %d: share %.4f, want %.4f", n, i, float64(got)/total, want)
			}
		}
	}
}

// hold opens a request on member i at instant 0, whatever the policy says.
func hold(tb testing.TB, s *picker.Snapshot, i int) picker.Pick {
	tb.Helper()
	return holdAt(tb, s, i, 0)
}

// holdAt is hold at instant now.
func holdAt(tb testing.TB, s *picker.Snapshot, i int, now int64) picker.Pick {
	tb.Helper()
	one := picker.NewSnapshot(s.Members(), []int32{int32(i)}, fixed{s.Needs()}, fixed{})
	p, _, err := one.Pick(picker.Request{}, now)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// fixed is a policy of a test's own: always the first available endpoint.
type fixed struct{ needs picker.Need }

func (fixed) Validate() error                                        { return nil }
func (f fixed) Needs() picker.Need                                   { return f.needs }
func (f fixed) Build(*picker.Members, picker.Picker) picker.Picker   { return f }
func (fixed) Pick(s *picker.Snapshot, _ picker.Request, _ int64) int { return s.At(0) }
