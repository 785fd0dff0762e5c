package picker

import (
	"fmt"
	"math"
)

// WeightedLeastRequest is [EDF] in which requests in flight count against an endpoint:
// when one of weight w is picked with k in flight, its next turn comes as late as
// if its weight were w/(k+1)^bias. Source: Envoy's LEAST_REQUEST, in the form that it
// takes when weights differ; P2C with the signal InFlight is the other one.
//
// When to use it: to have what Envoy does. What an endpoint has in flight is looked at only
// when it is picked. One that was busy then waits for its turn even if it has been idle
// since, and one that has hung in the meantime still gets the turn it has; unlike
// a comparing policy, this one never leaves an endpoint out. It is blind to endpoints
// that fail fast, which it prefers, since they have nothing in flight. Requests of other
// clients do not count, so that many clients that each send little see nothing, and
// what is left is EDF. [P2C] with weights sees more, at less cost.
//
// A pick takes a lock and is O(log n). Updates and availability are as with EDF.
type WeightedLeastRequest struct {
	// ActiveRequestBias is the exponent of requests in flight, 0 or more: the greater it
	// is, the fewer requests go to a busy endpoint. nil means 1; 0 means that they
	// do not count, as in EDF.
	ActiveRequestBias *float64
}

func (p WeightedLeastRequest) bias() float64 {
	if p.ActiveRequestBias == nil {
		return 1
	}
	return *p.ActiveRequestBias
}

// Validate returns an error if ActiveRequestBias is negative or not a finite number.
func (p WeightedLeastRequest) Validate() error {
	if b := p.bias(); !(b >= 0 && b <= math.MaxFloat64) {
		return fmt.Errorf("picker: WeightedLeastRequest.ActiveRequestBias is %v, want a finite number from 0", b)
	}
	return nil
}

// Needs returns 0: requests in flight are always counted.
func (WeightedLeastRequest) Needs() Need { return 0 }

// Build returns a Picker that goes on where prev is, if that was built by
// WeightedLeastRequest, of any bias, or by [EDF].
func (p WeightedLeastRequest) Build(m *Members, prev Picker) Picker {
	return buildTurns(m, prev, p.bias())
}

// leastRequestWeight returns what weight w counts as with that many requests in flight.
func leastRequestWeight(w float64, active uint64, bias float64) float64 {
	return w / math.Pow(float64(active)+1, bias)
}

// leastLoadedWeight keeps the turn of a busy endpoint within reach, whatever the bias. At
// the default one it is a load that nobody carries.
const leastLoadedWeight = 1.0 / (1 << 24)

// loadSteps returns how many steps of a schedule make one turn with that many
// requests in flight.
func loadSteps(active int64, bias float64) uint64 {
	w := leastRequestWeight(1, uint64(max(active, 0)), bias)
	return uint64(math.Round(turnUnit / max(w, leastLoadedWeight)))
}
