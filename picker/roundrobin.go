package picker

import (
	"math/bits"
	"sync/atomic"
)

// RoundRobin takes the available endpoints in turn, from a random position. It
// ignores weights (except 0) and everything about the endpoints' state. Source: gRPC
// and Envoy round_robin; like theirs it sends a slow endpoint its full share.
type RoundRobin struct{}

// Validate returns nil: there is nothing to set.
func (RoundRobin) Validate() error { return nil }

// Needs returns 0.
func (RoundRobin) Needs() Need { return 0 }

// Build returns prev if it is a round robin, so that the rotation goes on.
func (RoundRobin) Build(m *Members, prev Picker) Picker {
	if p, ok := prev.(*roundRobin); ok {
		return p
	}
	p := &roundRobin{}
	p.next.Store(m.Uint64() >> 1) // far from overflow
	return p
}

// roundRobin's counter is written by every pick; the padding keeps it off the lines
// that picks only read.
type roundRobin struct {
	_    [64]byte
	next atomic.Uint64
	_    [56]byte
}

// Pick rotates over the available endpoints only: over all members, the one after a
// dead endpoint would inherit its share.
func (p *roundRobin) Pick(s *Snapshot, _ Request, _ int64) int {
	return s.At(rotate(p.next.Add(1), s))
}

// rotate returns count modulo the number of available endpoints, but for a constant
// offset, without a division: count·2^64/n wraps around once in n counts, and
// its position between 0 and 2^64 is the index. Rounding skips one index in
// 2^64/n counts.
func rotate(count uint64, s *Snapshot) int {
	hi, _ := bits.Mul64(count*s.step, uint64(s.n))
	return int(hi)
}
