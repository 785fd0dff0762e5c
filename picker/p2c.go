package picker

import (
	"errors"
	"fmt"
)

// Bounds of P2C.Choices (Envoy's and gRPC's choice_count has the same ones).
const (
	minChoices = 2
	maxChoices = 10
)

// P2C compares a few different available endpoints, drawn at random, and takes the one
// with the lowest cost, the first drawn on a tie. It needs no knowledge of the
// whole list, costs the same for any number of endpoints, and does not herd as picking
// the minimum of stale data does. Where weights differ, endpoints are drawn in
// proportion to them and compared by cost per weight: with uniform draws of two, nobody
// could get more than 2/n of the requests. Source: Mitzenmacher, "The Power of Two
// Choices in Randomized Load Balancing" (2001).
//
// With the signal InFlight it is least request (gRPC A48, Envoy LEAST_REQUEST, here
// with distinct draws, and never an endpoint that asks to be left alone while another is at hand). With Latency it also sees slow and failing endpoints, and
// many clients that each send little do not blind it.
type P2C struct {
	// Signal is what is compared; nil means Latency.
	Signal Signal
	// Choices is how many endpoints are compared, 2 to 10; 0 means 2. Each costs a look at
	// an endpoint. More of them find the best more often, and let it have more of the
	// requests when it is only thought to be the best.
	Choices int
}

func (p P2C) signal() Signal {
	if p.Signal == nil {
		return Latency
	}
	return p.Signal
}

func (p P2C) choices() int {
	if p.Choices == 0 {
		return minChoices
	}
	return p.Choices
}

// Validate reports every setting out of range, joined.
func (p P2C) Validate() error {
	err := validateSignal("P2C", p.signal())
	if c := p.choices(); c < minChoices || c > maxChoices {
		err = errors.Join(err, fmt.Errorf("picker: P2C.Choices is %d, want %d to %d, or 0 for %d", c, minChoices, maxChoices, minChoices))
	}
	return err
}

// Needs returns what the signal needs.
func (p P2C) Needs() Need { return p.signal().Needs() }

// Build returns the Picker.
func (p P2C) Build(m *Members, _ Picker) Picker {
	s := p.signal()
	m.UseSignal(s)
	if p.choices() > 2 || m.WeightsDiffer() {
		return newChoices(m, s, p.choices())
	}
	switch s {
	case InFlight:
		return p2cInFlight{}
	case Latency:
		return &p2cLatency{costs: newCosts(m, Latency), shared: m.shared}
	default:
		return newChoices(m, s, p.choices())
	}
}

// p2cInFlight is a common case: two choices, equal weights, plain counts.
type p2cInFlight struct{}

func (p2cInFlight) Pick(s *Snapshot, _ Request, now int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	k, l := twoDistinct(s.Uint64(), s.n)
	i, j := s.At(k), s.At(l)
	a, b := s.records[i], s.records[j]
	if (a.marks.Load()|b.marks.Load())&(markShare|markAvoided) != 0 {
		if b.countInPart(now) < a.countInPart(now) {
			return j
		}
		return i
	}
	if b.InFlight() < a.InFlight() {
		return j
	}
	return i
}

// countInPart is the cost by requests in flight, in a comparison of two.
func (r *Record) countInPart(now int64) int64 {
	k, marks := r.InFlight(), r.marks.Load()
	switch {
	case marks&markAvoided != 0 && r.leftAlone(now):
		return countLog2(k) + leftAloneCost
	case marks&markShare != 0:
		return r.inPart(countLog2(k), k, 2, 1)
	}
	return countLog2(k)
}

// p2cLatency is another: it looks the signal's constants up once.
type p2cLatency struct {
	costs
	shared *shared
}

func (p *p2cLatency) Pick(s *Snapshot, _ Request, now int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	k, l := twoDistinct(s.Uint64(), s.n)
	i, j := s.At(k), s.At(l)
	learned := p.shared.learning.Load()
	ci, cj := s.records[i].wait(now, learned, 2), s.records[j].wait(now, learned, 2)
	if cj < ci-tieBand {
		i, ci = j, cj
	}
	return p.better(s, i, ci, now)
}
