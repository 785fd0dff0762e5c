package hash

import "math/bits"

const (
	// logBits is the fixed point of negLog.
	logBits = 58
	// logSlack is how much too high a value of the table may be.
	logSlack = 3
	// ln2 is ln 2 in the fixed point, high enough to be above all of the table.
	ln2 = 199786072581291495 + logSlack
)

// segment is a part (end - 1/512, end] of (1/2, 1].
type segment struct {
	log     uint64 // -ln(end) in the fixed point, rounded up, by no less than below is down
	inverse uint64 // 1/(2·end) in units of 2^-64, rounded down
}

// logSegments go from 1 downwards. They are made with integers, alike on every machine.
var logSegments = makeLogSegments()

func makeLogSegments() (t [256]segment) {
	for i := range t {
		t[i].inverse, _ = bits.Div64(256, 0, uint64(512-i))
		if i == 0 {
			continue
		}
		// -ln((512-i)/512) = 2·artanh(z), where z = i/(1024-i) is at most 1/3.
		z, _ := bits.Div64(uint64(i), 0, uint64(1024-i))
		square, _ := bits.Mul64(z, z)
		sum, power := uint64(0), z
		for odd := uint64(1); power > 0; odd += 2 {
			sum += power / odd
			power, _ = bits.Mul64(power, square)
		}
		// What is lost by rounding down comes to less than the slack.
		t[i].log = sum>>(63-logBits) + logSlack
	}
	return t
}

// below returns -ln(1 - d/end) in the fixed point, rounded down, for d in units of 2^-64. It
// does not fall as d grows: all terms of the series t + t²/2 + t³/3 … are positive, and so
// is each rounding down of more.
func (s *segment) below(d uint64) uint64 {
	t, _ := bits.Mul64(d, s.inverse)
	t <<= 1 // below 2^-8
	a, _ := bits.Mul64(1<<64/6, t)
	a, _ = bits.Mul64(a+(1<<64)/5, t)
	a, _ = bits.Mul64(a+(1<<64)/4, t)
	a, _ = bits.Mul64(a+(1<<64)/3, t)
	a, _ = bits.Mul64(a+(1<<64)/2, t)
	a, _ = bits.Mul64(a, t)
	return (t + a) >> (64 - logBits)
}

// negLog returns -ln(1 - y/2^64) in units of 2^-58. It is within 2^-49 of it, does not fall
// as y grows, and is at least y/2^64 rounded down, which a caller can skip by. It takes
// integers only, so that an order by it is the same on every machine.
func negLog(y uint64) uint64 {
	// 1 - y/2^64 is m·2^-e, with m in units of 2^-64: 1/2 < m <= 1, where 0 stands for 1.
	m, e := -y, 0
	if y != 0 {
		e = bits.LeadingZeros64(m)
		m <<= e
		if m == 1<<63 {
			m, e = 0, e+1
		}
	}
	d := -m // 1 - m; its upper 9 bits say which segment
	s := &logSegments[d>>55]
	return uint64(e)*ln2 + s.log + s.below(d&(1<<55-1))
}
