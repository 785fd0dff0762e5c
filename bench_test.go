package evenkeel_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/subset"
)

// benchSizes are the lengths of the measured lists.
var benchSizes = []int{10, 100, 1000}

// floorEndpoint is as large as a Record, so that the floor meets the same caches.
type floorEndpoint struct {
	n atomic.Int64
	_ [unsafe.Sizeof(evenkeel.Record{}) - 8]byte
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
	for b.Loop() {
		e := list[index[uint64(uint32(rand.Uint64()))*uint64(n)>>32]]
		e.n.Add(1)
		e.n.Add(-1)
	}
}

// BenchmarkPool measures pick and done through a Pool, with the instant supplied and with the
// pool's own clock, beside the floor. Reading the clock twice is part of the second.
func BenchmarkPool(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("policy=floor/n=%d", n), func(b *testing.B) { benchFloor(b, n) })
		for _, tc := range policies {
			b.Run(fmt.Sprintf("policy=%s/n=%d/clock=supplied", tc.name, n), func(b *testing.B) {
				p := newPool(b, evenkeel.Config{Policy: tc.policy}, n)
				now := origin
				b.ReportAllocs()
				for b.Loop() {
					now = now.Add(time.Microsecond)
					k, err := p.PickAt(now, evenkeel.Request{})
					if err != nil {
						b.Fatal(err)
					}
					k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
				}
			})
			b.Run(fmt.Sprintf("policy=%s/n=%d/clock=own", tc.name, n), func(b *testing.B) {
				p := newPool(b, evenkeel.Config{Policy: tc.policy}, n)
				b.ReportAllocs()
				for b.Loop() {
					k, err := p.Pick(evenkeel.Request{})
					if err != nil {
						b.Fatal(err)
					}
					k.Done(evenkeel.Result{Outcome: evenkeel.Success})
				}
			})
		}
	}
}

// BenchmarkPoolParallel shows that picks of many goroutines do not serialise.
func BenchmarkPoolParallel(b *testing.B) {
	for _, n := range []int{100, 1000} {
		for _, tc := range policies {
			b.Run(fmt.Sprintf("policy=%s/n=%d", tc.name, n), func(b *testing.B) {
				p, err := evenkeel.NewPool[int](evenkeel.Config{Policy: tc.policy}, evenkeel.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Update(members(n)); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						k, err := p.Pick(evenkeel.Request{})
						if err != nil {
							b.Error(err)
							return
						}
						k.Done(evenkeel.Result{Outcome: evenkeel.Success})
					}
				})
			})
		}
	}
}

// BenchmarkUpdate measures a list with one endpoint more or less.
func BenchmarkUpdate(b *testing.B) {
	for _, tc := range []struct {
		name   string
		subset *subset.Config
	}{
		{"none", nil},
		{"rendezvous", &subset.Config{}},
		{"deal", &subset.Config{ClientIndex: subset.IndexOf(3)}},
	} {
		for _, n := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("subset=%s/n=%d", tc.name, n), func(b *testing.B) {
				p := newPool(b, evenkeel.Config{Subset: tc.subset}, n)
				lists := [2][]evenkeel.Member[int]{members(n - 1), members(n)}
				now := origin
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					now = now.Add(time.Second)
					if err := p.UpdateAt(now, lists[i%2]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkBranch is a pick of a pool, and of one of two branches of a pool with the same endpoints.
func BenchmarkBranch(b *testing.B) {
	for _, count := range []int{0, 2} {
		b.Run(fmt.Sprintf("branches=%d", count), func(b *testing.B) {
			p := newPool(b, evenkeel.Config{}, 100)
			if count > 0 {
				_, list := branches(b, evenkeel.Config{}, count, 100)
				p = list[0]
			}
			b.ReportAllocs()
			for b.Loop() {
				k, err := p.Pick(evenkeel.Request{})
				if err != nil {
					b.Fatal(err)
				}
				k.Done(evenkeel.Result{Outcome: evenkeel.Success})
			}
		})
	}
}
