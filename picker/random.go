package picker

// Random picks each available endpoint with equal probability. It ignores weights
// (except 0) and everything about the endpoints' state. Source: Envoy random.
type Random struct{}

// Validate returns nil: there is nothing to set.
func (Random) Validate() error { return nil }

// Needs returns 0.
func (Random) Needs() Need { return 0 }

// Build returns the Picker, which has no state.
func (Random) Build(*Members, Picker) Picker { return random{} }

type random struct{}

func (random) Pick(s *Snapshot, _ Request, _ int64) int {
	return s.At(uniform(uint32(s.Uint64()>>32), s.n))
}
