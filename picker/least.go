package picker

// Least looks at all available endpoints and takes the one with the least cost, ties
// at random: least connections, least request with full scan (Envoy
// LEAST_REQUEST FULL_SCAN). It is exact for one client that sees all requests, costs O(n)
// per pick, and herds when its signal is old or when many clients go by the same one.
type Least struct {
	// Signal is what is compared; nil means InFlight.
	Signal Signal
}

func (p Least) signal() Signal {
	if p.Signal == nil {
		return InFlight
	}
	return p.Signal
}

// Validate reports every setting out of range, joined.
func (p Least) Validate() error { return validateSignal("Least", p.signal()) }

// Needs returns what the signal needs.
func (p Least) Needs() Need { return p.signal().Needs() }

// Build returns the Picker.
func (p Least) Build(m *Members, _ Picker) Picker {
	m.UseSignal(p.signal())
	return &least{newCosts(m, p.signal())}
}

type least struct{ costs }

func (l *least) Pick(s *Snapshot, _ Request, now int64) int { return l.leastOf(s, now) }
