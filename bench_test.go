package evenkeel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// BenchmarkPool measures pick and done through a Pool, with the instant supplied and
// with the pool's own clock. The floor is in package picker's BenchmarkPick.
func BenchmarkPool(b *testing.B) {
	for _, policy := range policies {
		for _, n := range []int{10, 1000} {
			name := fmt.Sprintf("policy=%T/n=%d", policy, n)
			b.Run("clock=supplied/"+name, func(b *testing.B) {
				p := newPool(b, evenkeel.Config{Policy: policy}, n)
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
			b.Run("clock=own/"+name, func(b *testing.B) {
				p := newPool(b, evenkeel.Config{Policy: policy}, n)
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
	for _, policy := range policies {
		b.Run(fmt.Sprintf("policy=%T", policy), func(b *testing.B) {
			p, err := evenkeel.NewPool[int](evenkeel.Config{Policy: policy}, evenkeel.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if err := p.Update(members(1000)); err != nil {
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
