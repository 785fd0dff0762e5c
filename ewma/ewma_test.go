package ewma

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestLog2IsAccurateForEveryMagnitude(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x := r.Uint64() >> r.UintN(64)
		if x < 2 {
			continue
		}
		if got, want := float64(Log2(x))/One, math.Log2(float64(x)); math.Abs(got-want) > 1.0/(1<<15) {
			t.Fatalf("Log2(%d) = %v, want %v", x, got, want)
		}
	}
	for _, x := range []uint64{0, 1} {
		if Log2(x) != 0 {
			t.Errorf("Log2(%d) = %d, want 0", x, Log2(x))
		}
	}
	for _, ns := range []int64{math.MinInt64, -1, 0, 1} {
		if LatencyLog2(ns) != 0 {
			t.Errorf("LatencyLog2(%d) = %d, want 0", ns, LatencyLog2(ns))
		}
	}
}

func TestLog2IsMonotonic(t *testing.T) {
	last := int64(-1)
	for x := uint64(1); x < 1<<20; x++ {
		v := Log2(x)
		if v < last {
			t.Fatalf("Log2(%d) = %d after %d", x, v, last)
		}
		last = v
	}
}

// The tables are part of what makes results equal on every platform.
func TestTablesAreGolden(t *testing.T) {
	if log2Table[128] != 38336 || log2Table[1] != 369 || log2Table[255] != 65351 || log2Table[256] != 65536 {
		t.Errorf("log2Table: %d %d %d %d", log2Table[128], log2Table[1], log2Table[255], log2Table[256])
	}
	if exp2Table[0] != 1<<32 || exp2Table[128] != 3037000500 || exp2Table[256] != 1<<31 {
		t.Errorf("exp2Table: %d %d %d", exp2Table[0], exp2Table[128], exp2Table[256])
	}
}

// The error is below 2^-20 while the result is above 2^-10, as its comment says: every argument
// there is. Linear interpolation over 1/256 of a doubling is off by up to (ln 2)²/8·2^-16, 0.97 of
// that; below, the shift drops bits of what is left.
func TestExp2NegIsAccurate(t *testing.T) {
	last := uint64(math.MaxUint64)
	for q := int64(0); q <= 10<<16; q++ {
		v := exp2Neg(q)
		got, want := float64(v)/(1<<32), math.Exp2(-float64(q)/One)
		if math.Abs(got/want-1) > 1.0/(1<<20) {
			t.Fatalf("exp2Neg(%d) = %v, want %v", q, got, want)
		}
		if v > last {
			t.Fatalf("exp2Neg(%d) = %d after %d", q, v, last)
		}
		last = v
	}
	for q := int64(10 << 16); q < 40<<16; q += 7 {
		if got, want := float64(exp2Neg(q)), math.Exp2(32-float64(q)/One); math.Abs(got-want) > 1.01+want/(1<<20) {
			t.Fatalf("exp2Neg(%d) = %v·2^-32, want %v within one unit", q, got, want)
		}
	}
	if exp2Neg(40<<16) != 0 {
		t.Error("exp2Neg(40 bits) is not 0")
	}
}

func TestDecayLosesOneEFoldPerTau(t *testing.T) {
	for _, tau := range []time.Duration{MinTau, time.Millisecond, time.Second, 10 * time.Second, 10 * time.Minute, time.Hour} {
		got := float64(NewDecay(tau).Loss(int64(tau))) / One
		if math.Abs(got-math.Log2E) > 0.02 {
			t.Errorf("tau %v loses %v bits in one tau, want %v", tau, got, math.Log2E)
		}
	}
	d := NewDecay(10 * time.Second)
	if d.Loss(-5) != 0 || d.Loss(math.MinInt64) != 0 {
		t.Error("a negative gap loses something")
	}
	if d.Loss(math.MaxInt64) != d.Loss(int64(MaxGap)) {
		t.Error("a huge gap is not MaxGap")
	}
	if NewDecay(0).Loss(int64(time.Hour)) != 0 || NewDecay(-1).Loss(int64(time.Hour)) != 0 {
		t.Error("no time constant should mean no decay")
	}
	long := NewDecay(10 * time.Hour)
	if got := float64(long.Loss(int64(100*time.Hour))) / One; math.Abs(got-10*math.Log2E) > 0.1 {
		t.Errorf("a long time constant stops: %v bits after ten of them", got)
	}
	if NewDecay(1) != NewDecay(MinTau) {
		t.Error("a tiny time constant is not MinTau")
	}
}
