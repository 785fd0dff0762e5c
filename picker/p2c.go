package picker

// P2C compares two different available endpoints, drawn at random, and takes the one
// with the lower cost: the first drawn on a tie. It needs no knowledge of the whole
// list, costs the same for any number of endpoints, and does not herd as
// picking the minimum of stale data does. Source: Mitzenmacher, "The Power of Two
// Choices in Randomized Load Balancing" (2001).
//
// With the signal InFlight it is least request (gRPC A48, Envoy LEAST_REQUEST, here
// with distinct draws). With Latency it also sees slow and failing endpoints, and
// many clients that each send little do not blind it.
type P2C struct {
	// Signal is what is compared; nil means Latency.
	Signal Signal
}

func (p P2C) signal() Signal {
	if p.Signal == nil {
		return Latency
	}
	return p.Signal
}

// Validate returns an error if Signal is not a signal.
func (p P2C) Validate() error { return validateSignal("P2C", p.signal()) }

// Needs returns what the signal needs.
func (p P2C) Needs() Need { return p.signal().Needs() }

// Build returns the Picker.
func (p P2C) Build(m *Members, _ Picker) Picker {
	s := p.signal()
	m.UseSignal(s)
	switch {
	case s == Latency:
		return &p2cLatency{shared: m.shared, lgWeights: m.lgWeights}
	case s == InFlight && !m.WeightsDiffer():
		return p2cInFlight{}
	default:
		return &p2cSignal{signal: s, lgWeights: m.lgWeights}
	}
}

// p2cInFlight is the common case: equal weights, plain counts.
type p2cInFlight struct{}

func (p2cInFlight) Pick(s *Snapshot, _ Request, _ int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	k, l := twoDistinct(s.Uint64(), s.n)
	i, j := s.At(k), s.At(l)
	if s.records[j].InFlight() < s.records[i].InFlight() {
		return j
	}
	return i
}

// p2cLatency calls the signal directly and looks up its constants once.
type p2cLatency struct {
	shared    *shared
	lgWeights []int64
}

func (p *p2cLatency) Pick(s *Snapshot, _ Request, now int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	k, l := twoDistinct(s.Uint64(), s.n)
	i, j := s.At(k), s.At(l)
	learned := p.shared.learning.Load()
	ci, cj := s.records[i].wait(now, learned), s.records[j].wait(now, learned)
	if p.lgWeights != nil {
		ci, cj = ci-p.lgWeights[i], cj-p.lgWeights[j]
	}
	if cj < ci-tieBand {
		return j
	}
	return i
}

// p2cSignal serves any signal.
type p2cSignal struct {
	signal    Signal
	lgWeights []int64
}

func (p *p2cSignal) Pick(s *Snapshot, _ Request, now int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	k, l := twoDistinct(s.Uint64(), s.n)
	i, j := s.At(k), s.At(l)
	ci, cj := p.signal.Cost(s.records[i], now), p.signal.Cost(s.records[j], now)
	if p.lgWeights != nil {
		ci, cj = ci-p.lgWeights[i], cj-p.lgWeights[j]
	}
	if cj < ci {
		return j
	}
	return i
}
