package hash

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// trickyScores are where a logarithm by segments may go wrong: around powers of two and the
// ends of segments.
func trickyScores() []uint64 {
	list := []uint64{0, 1, 2, 63, 64, 65, math.MaxUint64, math.MaxUint64 - 1}
	for shift := range 64 {
		for i := range uint64(256) {
			x := -(i << 55) // (512-i)/512, with 0 for 1
			for near := -1; near <= 1; near++ {
				list = append(list, -(x>>shift + uint64(near)))
			}
		}
	}
	return list
}

func TestNegLogIsTheLogarithm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(y uint64) {
		t.Helper()
		want := -math.Log1p(-float64(y) / (1 << 64))
		if y > 1<<63 {
			want = -math.Log(float64(-y) / (1 << 64))
		}
		got := float64(negLog(y)) / (1 << logBits)
		if diff := math.Abs(got - want); diff > math.Ldexp(1, -49)+want*math.Ldexp(1, -50) {
			t.Fatalf("negLog(%#x) is %v, want %v, off by %g", y, got, want, diff)
		}
	}
	for _, y := range trickyScores() {
		check(y)
	}
	for range 50_000 {
		check(r.Uint64() >> r.UintN(60))
	}
	if got := negLog(0); got != 0 {
		t.Errorf("negLog(0) is %d, want 0", got)
	}
}

// Lookups skip by the bound and compare within a group by score instead of logarithm: both
// are exact only if these hold to the last bit.
func TestNegLogNeverFallsAndKeepsItsBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	check := func(y uint64) {
		t.Helper()
		here := negLog(y)
		if here < y>>(64-logBits) {
			t.Fatalf("negLog(%#x) is %d, below its bound %d", y, here, y>>(64-logBits))
		}
		for _, step := range []uint64{1, 2, 64, 1 << 20, 1 << 50} {
			next, carry := bits.Add64(y, step, 0)
			if carry == 0 && negLog(next) < here {
				t.Fatalf("negLog(%#x) is %d, and negLog(%#x) is %d", y, here, next, negLog(next))
			}
		}
	}
	for _, y := range trickyScores() {
		check(y)
	}
	for range 50_000 {
		check(r.Uint64() >> r.UintN(60))
	}
}
