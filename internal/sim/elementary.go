package sim

import "math"

// The standard library's logarithm and exponential are assembly on some machines, and
// elsewhere the compiler may fuse a multiplication and an addition into one rounding.
// The ones below give the same bits everywhere: a conversion to float64 forbids fusing.

const (
	ln2Hi = 0x1.62e42fee00000p-1 // the leading bits of ln 2: its small multiples are exact
	ln2Lo = 0x1.a39ef35793c76p-33
)

// odds are 1/23, 1/21 … 1/3.
var odds = [...]float64{
	1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3,
}

// ln returns the natural logarithm of x > 0, to about one unit in the last place.
func ln(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	// ln m = 2·artanh(s) = 2(s + s³/3 + s⁵/5 …), with |s| < 0.172.
	s := (m - 1) / (m + 1)
	z := s * s
	p := 0.0
	for _, c := range odds {
		p = float64(z*p) + c
	}
	tail := float64(2 * float64(s*float64(z*p)))
	k := float64(e)
	return float64(k*ln2Hi) + (2*s + (tail + float64(k*ln2Lo)))
}

// exp returns e^x for |x| < 700, to about one unit in the last place.
func exp(x float64) float64 {
	k := math.Floor(x/math.Ln2 + 0.5)
	r := (x - float64(k*ln2Hi)) - float64(k*ln2Lo)
	p := 1.0
	for n := 14; n >= 1; n-- {
		p = 1 + float64(r*p)/float64(n)
	}
	return math.Ldexp(p, int(k))
}

// pow returns x^y for x > 0 and moderate results.
func pow(x, y float64) float64 { return exp(float64(y * ln(x))) }
