package subset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Selector chooses a client's subset again and again, as the list, the load and the states of
// endpoints change. It holds what must not follow each change at once: the size of the lot,
// a size that follows the load, and the endpoints that were added while too few were available.
// All else is a function of the configuration and the list. Weights move connections with
// Aperture alone: elsewhere they count when an endpoint is picked.
//
// It is not safe for concurrent use, and starts nothing. Slices that it returns are the
// caller's. For zones, have one Selector for each zone's endpoints.
type Selector struct {
	// Set at construction.
	config    Config
	algorithm Algorithm
	client    Client
	identity  uint64 // of the order in which endpoints are added

	// Of the last list that was accepted.
	members Members
	base    []int     // what the algorithm chose, in ascending order
	factors []float64 // nil if all are 1
	refused error     // of LoadWeights

	lot  int // held; 0 before the first list
	size int // follows the load

	cover cover
}

// NewSelector looks the index up and returns a Selector that has no list yet. The error
// joins every problem of the configuration.
func NewSelector(c Config) (*Selector, error) {
	client, indexed, err := c.client()
	if err != nil {
		return nil, err
	}
	s := &Selector{config: c, algorithm: c.Algorithm, client: client, size: c.size()}
	if s.algorithm == Auto {
		s.algorithm = UseRendezvous
		if indexed {
			s.algorithm = UseDeal
		}
	}
	switch {
	case indexed:
		s.identity = client.own()
	case c.Seed != 0:
		s.identity = c.Seed
	default:
		s.identity = rand.Uint64()
	}
	return s, nil
}

// Algorithm returns what chooses, which is never Auto.
func (s *Selector) Algorithm() Algorithm { return s.algorithm }

// Lot returns the size of the lots of Deal for the last list, 0 before it and for others.
func (s *Selector) Lot() int { return s.lot }

// Update takes a new list and returns the indices of the client's subset in it, in ascending
// order. After an error the last list and its subset stay what they were. A list with the same IDs,
// in the same order or not, gives the same endpoints.
func (s *Selector) Update(m Members) ([]int, error) {
	if s.base != nil && same(m, s.members) {
		return s.Subset(), nil
	}
	m = Members{slices.Clone(m.IDs), slices.Clone(m.Weights), slices.Clone(m.Ordinals)}
	if err := s.choose(m, s.size); err != nil {
		return nil, err
	}
	return s.Subset(), nil
}

// same reports whether the lists are equal in all that counts.
func same(a, b Members) bool {
	return slices.Equal(a.IDs, b.IDs) && slices.Equal(a.Weights, b.Weights) && slices.Equal(a.Ordinals, b.Ordinals)
}

// choose sets everything that depends on the list and the size, or nothing.
func (s *Selector) choose(m Members, size int) error {
	base, factors, lot, err := s.chosen(m, size)
	if err != nil {
		return err
	}
	old := s.members
	s.members, s.base, s.lot, s.size = m, base, lot, size
	s.factors, s.refused = factors, nil
	if s.evensOut() && lot > 1 {
		s.factors, s.refused = LoadWeights(s.client, m, Lot{lot, DefaultExact})
	}
	s.cover.moved(old, m, base)
	return nil
}

func (s *Selector) chosen(m Members, size int) (base []int, parts []float64, lot int, err error) {
	switch s.algorithm {
	case UseDeal:
		lot = s.lotFor(len(m.IDs), size)
		base, err = DealLot(s.client, m, Lot{max(lot, 1), DefaultExact})
	case UseRocksteadier:
		base, err = Rocksteadier(s.client, m, size)
	case UseDeterministic:
		base, err = Deterministic(s.client, m, size)
	case UseAperture:
		var own []float64
		base, own, err = Aperture(s.client, m, size)
		parts = make([]float64, len(m.IDs))
		for i := range parts {
			parts[i] = 1
		}
		for k, i := range base {
			parts[i] = own[k]
		}
	default:
		// The pool counts weights when it picks; counted here too, they would count twice, and move connections.
		if err = m.Validate(); err == nil {
			base, err = Rendezvous(Client{Seed: s.identity}, Members{IDs: m.IDs}, size)
		}
	}
	if base == nil {
		base = []int{}
	}
	return base, parts, lot, err
}

// lotFor returns the lot for n endpoints. An empty list says nothing about the fleet, and
// what was held comes through it.
func (s *Selector) lotFor(n, size int) int {
	switch {
	case s.config.LotSize > 0:
		return s.config.LotSize
	case n == 0:
		return s.lot
	}
	return LotSize(n, size, s.lot)
}

// evensOut reports whether all clients can know what all others have.
func (s *Selector) evensOut() bool {
	return s.algorithm == UseDeal && s.client.Count > 0 && s.config.MaxSize == 0
}

// Subset returns the client's endpoints, in ascending order: indices in the last list.
func (s *Selector) Subset() []int {
	return ascendingInts(slices.Concat(s.base, s.cover.added))
}

// Weights returns a factor for each endpoint of [Selector.Subset], in its order, by which to
// multiply the endpoint's own weight so that endpoints get even load; nil if there is
// none. Deal has factors when the number of clients is known and the size is fixed, and Aperture always.
func (s *Selector) Weights() []float64 {
	if s.factors == nil {
		return nil
	}
	subset := s.Subset()
	out := make([]float64, len(subset))
	for k, i := range subset {
		out[k] = s.factors[i]
	}
	return out
}

// Load bands of [Selector.SetLoad]: the size follows when what the load wants is beyond
// these parts of it, so that noise moves nothing.
const (
	widerFrom    = 1.25
	narrowerFrom = 0.6
)

// SetLoad says what load the client offers, in the unit of Config.LoadPerEndpoint, smoothed over
// minutes. It returns the subset and whether it has changed. Without Config.MaxSize it
// does nothing. A load below 0, or none, counts as 0.
func (s *Selector) SetLoad(load float64) (subset []int, changed bool) {
	c := s.config
	if c.MaxSize == 0 {
		return s.Subset(), false
	}
	// What the load wants is compared, and not the bound that it is kept to: else a bound near the
	// size that there is would never be reached.
	want := math.Ceil(load / c.LoadPerEndpoint)
	now := float64(s.size)
	if far := want > widerFrom*now || !(want >= narrowerFrom*now); !far {
		return s.Subset(), false
	}
	wanted := c.size()
	if want > float64(wanted) {
		wanted = int(min(want, float64(c.MaxSize)))
	}
	if wanted == s.size {
		return s.Subset(), false
	}
	before := s.Subset()
	if s.base == nil {
		s.size = wanted
		return before, false
	}
	// The list was accepted before; that the size is another cannot make it wrong.
	if err := s.choose(s.members, wanted); err != nil {
		return before, false
	}
	subset = s.Subset()
	return subset, !slices.Equal(before, subset)
}

// Resume makes s, which has no list yet, go on where another Selector was, so that a
// configuration that differs in something else does not move connections: with the lot that
// was held, and with the size that followed the load, where s has either. nil changes nothing.
func (s *Selector) Resume(from *Selector) {
	if from == nil || s.base != nil {
		return
	}
	if s.algorithm == UseDeal {
		s.lot = from.lot
	}
	if s.config.MaxSize > 0 && from.config.MaxSize > 0 {
		s.size = min(max(from.size, s.size), s.config.MaxSize)
	}
}

// Size returns how many endpoints the client is to have at the moment.
func (s *Selector) Size() int { return s.size }

// Warnings returns those of the configuration and those of the last list; nil if there are
// none.
func (s *Selector) Warnings() []string {
	out := s.config.Warnings()
	if count := s.client.Count; s.algorithm == UseDeal && count > 0 && count < s.lot {
		out = append(out, fmt.Sprintf("subset: Config.ClientCount is %d and a lot is %d clients: "+
			"about %.0f %% of the endpoints have no client", count, s.lot, 100*(1-float64(count)/float64(s.lot))))
	}
	if s.algorithm == UseRocksteadier && len(s.members.IDs) > 0 && s.members.Ordinals == nil {
		out = append(out, "subset: Members.Ordinals is nil: without them, rocksteadier moves more than half of all connections when an endpoint comes or goes")
	}
	if s.refused != nil {
		out = append(out, s.refused.Error()+": the load is not evened out")
	}
	return out
}
