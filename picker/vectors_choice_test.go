package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

func testWeightedCompare(t *testing.T, v vector) {
	type node struct{ Inflight, Weight int }
	var in struct{ A, B node }
	var want struct{ Pick string }
	v.into(t, &in, &want)
	pickLeast(t, []int{in.A.Inflight, in.B.Inflight}, []int{in.A.Weight, in.B.Weight}, want.Pick)
}

func testNGINXLeastConn(t *testing.T, v vector) {
	type node struct{ Conns, Weight int }
	var in struct{ A, B node }
	var want struct{ Pick string }
	v.into(t, &in, &want)
	pickLeast(t, []int{in.A.Conns, in.B.Conns}, []int{in.A.Weight, in.B.Weight}, want.Pick)
}

func pickLeast(t *testing.T, inflight, weights []int, want string) {
	t.Helper()
	for _, policy := range []picker.Policy{picker.Least{}, picker.P2C{Signal: picker.InFlight, Choices: 10}} { // ten draws by weight find both
		_, s := build(t, policy, weighted(float64(weights[0]), float64(weights[1])), rand.New(rand.NewPCG(93, 94)).Uint64)
		for i, k := range inflight {
			for range k {
				hold(t, s, i)
			}
		}
		p, i, err := s.Pick(picker.Request{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Done(0, picker.Result{})
		if got := string(rune('a' + i)); got != want {
			t.Errorf("%#v: picked %s, want %s", policy, got, want)
		}
	}
}

func testP2CRank(t *testing.T, v vector) {
	var in struct{ N int }
	var want struct{ P []float64 }
	v.into(t, &in, &want)
	// Each ordered pair equally often: the source walks through a grid.
	const grid = 90
	counts := make([]float64, in.N)
	var word uint64
	_, s := build(t, picker.P2C{Signal: picker.InFlight}, endpoints(in.N), func() uint64 { return word })
	for i := range in.N {
		for range i {
			hold(t, s, i)
		}
	}
	for a := range grid {
		for b := range grid {
			word = (uint64(a)<<32/grid+1000)<<32 | (uint64(b)<<32/grid + 1000)
			p, i, err := s.Pick(picker.Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			p.Done(0, picker.Result{})
			counts[i] += 1.0 / (grid * grid)
		}
	}
	for i, p := range want.P {
		if math.Abs(counts[i]-p) > 1e-12 {
			t.Errorf("rank %d wins with probability %v, want %v", i, counts[i], p)
		}
	}
}

func testRRWrap(t *testing.T, v vector) {
	var in struct{ N int }
	var want any
	v.into(t, &in, &want)
	// A 32-bit counter shows where it wraps; ours passes there in step.
	for _, from := range []uint64{1<<32 - 4, 1<<61 - 4} {
		word := from << 1
		_, s := build(t, picker.RoundRobin{}, endpoints(in.N), func() uint64 { return word })
		last := -1
		for k := range 12 {
			_, i, err := s.Pick(picker.Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if k > 0 && i != (last+1)%in.N {
				t.Errorf("from %d: %d after %d", from, i, last)
			}
			last = i
		}
	}
}

func testTwoDistinct(t *testing.T, v vector) {
	var in struct {
		N     int
		Draws [][2]int
	}
	var want struct{ Pair [][2]int }
	v.into(t, &in, &want)
	var word uint64
	_, s := build(t, picker.P2C{Signal: picker.InFlight}, endpoints(in.N), func() uint64 { return word })
	for i, d := range in.Draws {
		// The first draw is in [0, n), the second in [0, n-1): take the middle of each.
		word = (uint64(d[0])<<32/uint64(in.N)+1<<20)<<32 | (uint64(d[1])<<32/uint64(in.N-1) + 1<<20)
		p, first, err := s.Pick(picker.Request{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Done(0, picker.Result{})
		busy := hold(t, s, first) // now the second wins
		p, second, err := s.Pick(picker.Request{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Done(0, picker.Result{})
		busy.Done(0, picker.Result{})
		if got := [2]int{first, second}; got != want.Pair[i] {
			t.Errorf("draws %v give %v, want %v", d, got, want.Pair[i])
		}
	}
}
