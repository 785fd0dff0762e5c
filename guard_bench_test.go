package evenkeel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

// bare is a configuration without ejection and limit.
func bare(p evenkeel.Policy) evenkeel.Config {
	return evenkeel.Config{Policy: p, Outlier: &outlier.Config{Mode: outlier.NoEjection}, Limit: evenkeel.LimitConfig{Disabled: true}}
}

// BenchmarkGuards measures pick and done with and without ejection and limit.
func BenchmarkGuards(b *testing.B) {
	for _, tc := range policies {
		for _, clock := range []string{"supplied", "own"} {
			for _, guarded := range []bool{false, true} {
				b.Run(fmt.Sprintf("policy=%s/clock=%s/guarded=%v", tc.name, clock, guarded), func(b *testing.B) {
					config := bare(tc.policy)
					if guarded {
						config = evenkeel.Config{Policy: tc.policy, Outlier: &outlier.Config{}}
					}
					p := newPool(b, config, 100)
					b.ReportAllocs()
					if clock == "own" {
						for b.Loop() {
							pickAndDone(b, p)
						}
						return
					}
					now := origin
					for b.Loop() {
						now = now.Add(time.Microsecond)
						k, err := p.PickAt(now, evenkeel.Request{})
						if err != nil {
							b.Fatal(err)
						}
						k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
					}
				})
			}
		}
	}
}

func pickAndDone(tb testing.TB, p *evenkeel.Pool[int]) {
	k, err := p.Pick(evenkeel.Request{})
	if err != nil {
		tb.Fatal(err)
	}
	k.Done(evenkeel.Result{Outcome: evenkeel.Success})
}
