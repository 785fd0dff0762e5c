package picker_test

import (
	"fmt"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// BenchmarkHash measures pick and done, for 8,192 keys, beside the floor.
func BenchmarkHash(b *testing.B) {
	policies := []struct {
		name   string
		policy picker.Policy
	}{
		{"random", picker.Random{}},
		{"adaptive", picker.Adaptive{}},
		{"maglev_alone", picker.Hash{Unbounded: true, Fallback: picker.Random{}}},
		{"maglev_bounded", picker.Hash{Fallback: picker.Random{}}},
		{"maglev", picker.Hash{}},
		{"maglev_sticky", picker.Hash{StickyKeys: 10_000}},
		{"ring", picker.Hash{Table: picker.Ring}},
		{"rendezvous", picker.Hash{Table: picker.Rendezvous}},
	}
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("policy=floor/n=%d", n), func(b *testing.B) { benchFloor(b, n) })
		for _, p := range policies {
			b.Run(fmt.Sprintf("policy=%s/n=%d", p.name, n), func(b *testing.B) {
				g, s := build(b, p.policy, endpoints(n), nil)
				now := int64(0)
				warm(b, g, s, &now)
				key := uint64(0)
				b.ReportAllocs()
				stop := reportCPU(b)
				for b.Loop() {
					now += 1000
					key++
					r := picker.Request{Key: (key % 8192) * 0x9e3779b97f4a7c15, HasKey: true}
					pick, _, err := s.Pick(r, now)
					if err != nil {
						b.Fatal(err)
					}
					pick.Done(now+500, picker.Result{Outcome: picker.Success})
				}
				stop()
			})
		}
	}
}

// BenchmarkHashLoaded measures picks with ten requests in flight on each endpoint, of which
// about one in seven finds its owner full.
func BenchmarkHashLoaded(b *testing.B) {
	for _, n := range benchSizes[:3] {
		for _, table := range []picker.HashTable{picker.Maglev, picker.Ring, picker.Rendezvous} {
			b.Run(fmt.Sprintf("table=%v/n=%d", table, n), func(b *testing.B) {
				_, s := build(b, picker.Hash{Table: table, Fallback: picker.Random{}}, endpoints(n), nil)
				open := make([]picker.Pick, 10*n)
				key, at := uint64(0), 0
				next := func() {
					key++
					pick, _, err := s.Pick(picker.Request{Key: key * 0x9e3779b97f4a7c15, HasKey: true}, 1)
					if err != nil {
						b.Fatal(err)
					}
					open[at].Done(1, picker.Result{Outcome: picker.Success})
					open[at] = pick
					if at++; at == len(open) {
						at = 0
					}
				}
				for range open {
					next()
				}
				b.ReportAllocs()
				stop := reportCPU(b)
				for b.Loop() {
					next()
				}
				stop()
			})
		}
	}
}

// BenchmarkHashBuild measures what a new list costs.
func BenchmarkHashBuild(b *testing.B) {
	for _, table := range []picker.HashTable{picker.Maglev, picker.Ring, picker.Rendezvous} {
		for _, n := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("table=%v/n=%d", table, n), func(b *testing.B) {
				policy := picker.Hash{Table: table}
				g := picker.NewRegistry(nil)
				list := endpoints(n + 1)
				var members [2]*picker.Members
				for k := range members {
					m, err := g.Members(list[:n+k], 0)
					if err != nil {
						b.Fatal(err)
					}
					members[k] = m
				}
				p := policy.Build(members[0], nil)
				b.ReportAllocs()
				for k := 1; b.Loop(); k++ {
					p = policy.Build(members[k%2], p)
				}
			})
		}
	}
}
