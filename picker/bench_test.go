package picker_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/picker"
)

// endpoints returns n endpoints named e0, e1 …
func endpoints(n int) []picker.Endpoint {
	list := make([]picker.Endpoint, n)
	for i := range list {
		list[i].ID = fmt.Sprintf("e%d", i)
	}
	return list
}

// build returns a snapshot of list with everybody available. randomness may be nil.
func build(tb testing.TB, policy picker.Policy, list []picker.Endpoint, randomness func() uint64) (*picker.Registry, *picker.Snapshot) {
	tb.Helper()
	g := picker.NewRegistry(randomness)
	g.Learn(policy.Needs())
	m, err := g.Members(list, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return g, picker.NewSnapshot(m, nil, policy, policy.Build(m, nil))
}

var benchPolicies = []struct {
	name   string
	policy picker.Policy
}{
	{"round_robin", picker.RoundRobin{}},
	{"random", picker.Random{}},
	{"p2c_in_flight", picker.P2C{Signal: picker.InFlight}},
	{"p2c_latency", picker.P2C{Signal: picker.Latency}},
	{"adaptive", picker.Adaptive{}},
}

var benchSizes = []int{10, 100, 1000, 10_000}

// floorEndpoint is as large as a Record, so that the floor meets the same caches.
type floorEndpoint struct {
	n atomic.Int64
	_ [unsafe.Sizeof(picker.Record{}) - 8]byte
}

// reportCPU adds the processor time per operation, which a busy machine disturbs less
// than the time that passes, where it is to be had. Call the result when the loop is over.
func reportCPU(b *testing.B) (stop func()) {
	before, ok := testcost.CPUTime()
	return func() {
		if after, _ := testcost.CPUTime(); ok {
			b.ReportMetric(float64(after-before)/float64(b.N), "cpu-ns/op")
		}
	}
}

// benchFloor measures the least that a pick and its end can cost, whatever they choose by: one
// random number, two dependent loads, one atomic increment and one decrement.
func benchFloor(b *testing.B, n int) {
	list := make([]*floorEndpoint, n)
	index := make([]int32, n)
	for i := range list {
		list[i], index[i] = &floorEndpoint{}, int32(i)
	}
	b.ReportAllocs()
	stop := reportCPU(b)
	for b.Loop() {
		e := list[index[uint64(uint32(rand.Uint64()))*uint64(n)>>32]]
		e.n.Add(1)
		e.n.Add(-1)
	}
	stop()
}

// BenchmarkPick measures pick and done with the instant supplied, beside the floor.
func BenchmarkPick(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("policy=floor/n=%d", n), func(b *testing.B) { benchFloor(b, n) })
		for _, p := range benchPolicies {
			b.Run(fmt.Sprintf("policy=%s/n=%d", p.name, n), func(b *testing.B) {
				g, s := build(b, p.policy, endpoints(n), nil)
				now := int64(0)
				warm(b, g, s, &now)
				b.ReportAllocs()
				stop := reportCPU(b)
				for b.Loop() {
					now += 1000
					pick, _, err := s.Pick(picker.Request{}, now)
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

// warm gives every endpoint a history.
func warm(tb testing.TB, g *picker.Registry, s *picker.Snapshot, now *int64) {
	tb.Helper()
	for range 20 * s.Len() {
		*now += 100_000
		pick, _, err := s.Pick(picker.Request{}, *now)
		if err != nil {
			tb.Fatal(err)
		}
		pick.Done(*now+1_000_000, picker.Result{Outcome: picker.Success})
	}
	g.Sweep(*now)
	s.Sweep(*now)
}

// BenchmarkReports measures pick and done where every answer carries a report, beside none.
func BenchmarkReports(b *testing.B) {
	for _, n := range []int{10, 1000} {
		for _, reports := range []bool{false, true} {
			for _, p := range benchPolicies[1:] {
				b.Run(fmt.Sprintf("reports=%v/policy=%s/n=%d", reports, p.name, n), func(b *testing.B) {
					g, s := build(b, p.policy, endpoints(n), nil)
					now := int64(0)
					warm(b, g, s, &now)
					teachReports(b, g, s, &now)
					b.ReportAllocs()
					stop := reportCPU(b)
					for b.Loop() {
						now += 1000
						pick, _, err := s.Pick(picker.Request{}, now)
						if err != nil {
							b.Fatal(err)
						}
						result := picker.Result{Outcome: picker.Success}
						if reports {
							result.Load = picker.Load{}.WithInFlight(float64(now >> 10 & 15)).WithLatency(time.Millisecond).WithErrorRate(0.01)
						}
						pick.Done(now+500, result)
					}
					stop()
				})
			}
		}
	}
}

// teachReports shows the pool that reports mean something.
func teachReports(tb testing.TB, g *picker.Registry, s *picker.Snapshot, now *int64) {
	tb.Helper()
	for k := range int64(20 * s.Len()) {
		*now += 100_000
		pick, _, err := s.Pick(picker.Request{}, *now)
		if err != nil {
			tb.Fatal(err)
		}
		pick.Done(*now+500_000+k%2*1_000_000, picker.Result{Outcome: picker.Success, Load: picker.Load{}.WithInFlight(float64(k % 2 * 9))})
	}
	g.Sweep(*now)
	s.Sweep(*now)
}
