package picker

import (
	"math"
	"sync"
)

// SmoothWeightedRoundRobin takes the available endpoints in turn by weight, spread as
// evenly as whole turns allow: weights 5, 1, 1 give a a b a c a a, not five in a row.
// In as many picks as the weights sum to (divided by their greatest common divisor)
// each endpoint has exactly its share, and in between it is off by no more than
// about a turn. Source: NGINX's smooth weighted round robin, without its lowering of
// weights on failure. Ties go to the first listed.
//
// When to use it: one client, or a few, with a few endpoints, and the most even order
// that there is. A pick takes a lock and looks at every available endpoint, which
// makes 64 endpoints a sensible limit. [WeightedRoundRobin] has neither, for a
// little less evenness.
//
// Like all rotations it is blind to what the endpoints are doing, and a slow one gets
// its full share. Every rotation begins with the heaviest endpoint (the first listed if
// all are equal): many clients that start together meet there, and those that each send
// only a few requests never reach the light ones. [EDF] begins at random.
//
// An update restarts nothing: endpoints that stay keep what they are owed, also when
// weights change, and a newcomer is owed nothing. Endpoints that are not available
// stand still.
type SmoothWeightedRoundRobin struct{}

// Validate returns nil: there is nothing to set.
func (SmoothWeightedRoundRobin) Validate() error { return nil }

// Needs returns 0.
func (SmoothWeightedRoundRobin) Needs() Need { return 0 }

// Build returns a Picker that goes on where prev is, if that is one of its kind.
func (SmoothWeightedRoundRobin) Build(m *Members, prev Picker) Picker {
	p := newSmooth(integerWeights(m.weights), m.records)
	if old, ok := prev.(*smooth); ok {
		p.takeOver(old)
	}
	return p
}

// smooth is the Picker.
type smooth struct {
	weights []uint64  // in fine units; set at construction
	records []*Record // set at construction

	mu sync.Mutex
	// current is what each member is owed, in units of weight: it grows by the weight
	// with each pick, and falls by the sum of the weights when picked. Guarded by mu.
	current []int64
}

// smoothUnit is what whole weights are multiplied by, so that updates can divide what is
// owed without rounding it to whole picks. The order is the same with any unit.
const smoothUnit = 1 << 16

func newSmooth(weights []uint64, records []*Record) *smooth {
	unit, sum := uint64(smoothUnit), sumOf(weights)
	for sum > maxOwed/unit {
		unit /= 2
	}
	fine := make([]uint64, len(weights))
	for i, w := range weights {
		fine[i] = w * unit
	}
	return &smooth{weights: fine, records: records, current: make([]int64, len(weights))}
}

// Pick implements Picker. It takes a lock and is O(n).
func (p *smooth) Pick(s *Snapshot, _ Request, _ int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	best, total := -1, int64(0)
	for k := range s.n {
		i := s.At(k)
		w := int64(p.weights[i])
		p.current[i] += w
		total += w
		if best < 0 || p.current[i] > p.current[best] {
			best = i
		}
	}
	p.current[best] -= total
	return best
}

// Watch bounds what available endpoints are owed, or owe, by one turn of the rotation
// over them. Otherwise, when one of a great weight goes away, a light one that was
// just picked would wait for as long as if it were still there.
func (p *smooth) Watch(s *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	total := int64(0)
	for k := range s.n {
		total += int64(p.weights[s.At(k)])
	}
	for k := range s.n {
		i := s.At(k)
		p.current[i] = min(max(p.current[i], -total), total)
	}
}

// takeOver continues the rotation of old for the members that both have.
func (p *smooth) takeOver(old *smooth) {
	places := placesOf(old.records)
	old.mu.Lock()
	defer old.mu.Unlock()
	var stayed []int
	var before, after uint64 // weight of those that stay
	for i, r := range p.records {
		if k, ok := places[r]; ok {
			p.current[i] = old.current[k]
			before += old.weights[k]
			after += p.weights[i]
			stayed = append(stayed, i)
		}
	}
	if before != after && before > 0 {
		// What they are owed stays the same number of picks.
		ratio := float64(after) / float64(before)
		for _, i := range stayed {
			c := math.Round(float64(p.current[i]) * ratio)
			p.current[i] = int64(min(max(c, -maxOwed), maxOwed))
		}
	}
	if len(stayed) > 0 && len(stayed) < len(p.records) {
		p.centre(stayed)
	}
}

// maxOwed bounds the sum of weights, and what anybody is owed when an update begins. Both
// together stay far from the end of 64 bits.
const maxOwed = 1 << 60

// centre makes what those that stay are owed sum to 0, which is what newcomers are owed.
// Leavers take theirs with them; without this a list that changes often could put its
// newcomers further and further behind. The difference is everybody's by weight.
func (p *smooth) centre(stayed []int) {
	sum, weight := 0.0, 0.0
	for _, i := range stayed {
		sum += float64(p.current[i])
		weight += float64(p.weights[i])
	}
	if weight == 0 {
		return
	}
	for _, i := range stayed {
		p.current[i] -= int64(math.Round(sum * float64(p.weights[i]) / weight))
	}
}
