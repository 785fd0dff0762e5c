package health

import (
	"math"
	"math/rand/v2"
	"testing"
)

// naiveTimers is a list that is looked through.
type naiveTimers []struct {
	key int
	at  int64
}

func (n *naiveTimers) remove(key int) {
	for i, e := range *n {
		if e.key == key {
			*n = append((*n)[:i:i], (*n)[i+1:]...)
			return
		}
	}
}

// first returns the index of the earliest, of the first set among equals, -1 if there is none.
func (n naiveTimers) first() int {
	best := -1
	for i, e := range n {
		if best < 0 || e.at < n[best].at {
			best = i
		}
	}
	return best
}

func TestTimersAgainstAList(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		var timers Timers[int]
		var naive naiveTimers
		for op := range 3000 {
			key := r.IntN(40)
			switch r.IntN(4) {
			case 0, 1:
				at := r.Int64N(50) - 25
				if r.IntN(20) == 0 {
					at = []int64{math.MinInt64, math.MaxInt64}[r.IntN(2)]
				}
				timers.Set(key, at)
				naive.remove(key)
				naive = append(naive, struct {
					key int
					at  int64
				}{key, at})
			case 2:
				timers.Remove(key)
				naive.remove(key)
			case 3:
				now := r.Int64N(50) - 25
				got, ok := timers.PopDue(now)
				first := naive.first()
				if due := first >= 0 && naive[first].at <= now; ok != due || ok && got != naive[first].key {
					t.Fatalf("seed %d op %d: popped %d, %v", seed, op, got, ok)
				}
				if ok {
					naive.remove(got)
				}
			}
			want := int64(math.MaxInt64)
			if first := naive.first(); first >= 0 {
				want = naive[first].at
			}
			if timers.Next() != want || timers.Len() != len(naive) {
				t.Fatalf("seed %d op %d: next %d of %d, want %d of %d", seed, op, timers.Next(), timers.Len(), want, len(naive))
			}
			for _, e := range naive {
				if at, ok := timers.At(e.key); !ok || at != e.at {
					t.Fatalf("seed %d op %d: key %d at %d, %v; want %d", seed, op, e.key, at, ok, e.at)
				}
			}
		}
	}
}

// A pool of ten thousand sets one timer for each check that it makes.
func BenchmarkTimersSetAndPop(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(map[int]string{100: "n=100", 10_000: "n=10000"}[n], func(b *testing.B) {
			var t Timers[int]
			for i := range n {
				t.Set(i, int64(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				key, _ := t.PopDue(math.MaxInt64)
				t.Set(key, t.Next()+int64(n))
			}
		})
	}
}
