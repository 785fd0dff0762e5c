package ewma

import (
	"math"
	"math/bits"
)

// One is 1.0 in the fixed point of this package: a logarithm of One means a
// factor of two.
const One = 1 << 16

// log2Table holds log2(1 + i/256) in Q16 for i = 0..256. It is computed with
// integers only, so that every platform gets the same table.
var log2Table = makeLog2Table()

func makeLog2Table() (t [257]int64) {
	for i := range 256 {
		t[i] = log2Mantissa(uint64(256+i) << 23)
	}
	t[256] = One
	return t
}

// log2Mantissa returns log2(m / 2^31) in Q16, rounded, for 2^31 <= m < 2^32. Each
// squaring of the mantissa yields one more binary digit of the logarithm.
func log2Mantissa(m uint64) int64 {
	var r int64
	for range 17 { // one digit more than needed, for rounding
		m = (m * m) >> 31
		r <<= 1
		if m >= 1<<32 {
			m >>= 1
			r |= 1
		}
	}
	return (r + 1) >> 1
}

// Log2 returns log2(x) in Q16; 0 and 1 both give 0. The error is below 2^-15.
func Log2(x uint64) int64 {
	if x <= 1 {
		return 0
	}
	n := bits.Len64(x) - 1
	f := x << (63 - n) // leading one at bit 63
	i := f >> 55 & 0xff
	rem := int64(f >> 39 & 0xffff)
	lo := log2Table[i]
	return int64(n)<<16 + lo + (log2Table[i+1]-lo)*rem>>16
}

// LatencyLog2 returns Log2 of a latency in nanoseconds; zero and negative
// latencies count as one nanosecond.
func LatencyLog2(ns int64) int64 {
	if ns <= 1 {
		return 0
	}
	return Log2(uint64(ns))
}

// Exp2 returns 2^(q/65536), the inverse of [Log2]. It is meant for statistics and
// for work done now and then, not for the request path.
func Exp2(q int64) float64 { return math.Exp2(float64(q) / One) }

// exp2Table holds 2^(-i/256) in Q32 for i = 0..256, from repeated square roots
// with integers only.
var exp2Table = makeExp2Table()

func makeExp2Table() (t [257]uint64) {
	// step[k] is 2^(-1/2^(k+1)) in Q62.
	var step [8]uint64
	x := uint64(1) << 61
	for k := range step {
		x = sqrtQ62(x)
		step[k] = x
	}
	for i := range 257 {
		v := uint64(1) << 62
		if i == 256 {
			v >>= 1
		}
		for k := range step {
			if i>>(7-k)&1 == 1 && i < 256 {
				hi, lo := bits.Mul64(v, step[k])
				v = hi<<2 | lo>>62
			}
		}
		t[i] = (v + 1<<29) >> 30
	}
	return t
}

// sqrtQ62 returns the square root of x, both in Q62, for x <= 1.
func sqrtQ62(x uint64) uint64 {
	var r uint64
	for b := uint64(1) << 62; b != 0; b >>= 1 {
		c := r | b
		hi, lo := bits.Mul64(c, c)
		if sq := hi<<2 | lo>>62; hi>>62 == 0 && sq <= x {
			r = c
		}
	}
	return r
}

// exp2Neg returns 2^(-q/65536) in Q32 for q >= 0, with a relative error below 2^-20
// while the result is above 2^-10.
func exp2Neg(q int64) uint64 {
	n := q >> 16
	if n >= 32 {
		return 0
	}
	i := q >> 8 & 0xff
	rem := uint64(q & 0xff)
	hi, lo := exp2Table[i], exp2Table[i+1]
	return (hi - (hi-lo)*rem>>8) >> n
}
