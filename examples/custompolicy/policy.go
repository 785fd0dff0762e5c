package main

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/evenkeel/evenkeel/picker"
)

// LeastRecent takes the endpoint, of a few drawn at random, whose last pick is longest
// ago: an even spread for clients that send so little that nothing is ever in flight.
// It shows what a policy is made of: settings with a Validate, a Build that takes over
// state, and a Picker that allocates nothing.
type LeastRecent struct {
	// Draws is how many endpoints are looked at, 1 to 8; 0 means 2.
	Draws int
}

func (p LeastRecent) draws() int {
	if p.Draws == 0 {
		return 2
	}
	return p.Draws
}

// Validate implements picker.Policy.
func (p LeastRecent) Validate() error {
	if d := p.draws(); d < 1 || d > 8 {
		return fmt.Errorf("custompolicy: LeastRecent.Draws is %d, want 1 to 8, or 0 for 2", d)
	}
	return nil
}

// Needs implements picker.Policy: it learns nothing from results.
func (p LeastRecent) Needs() picker.Need { return 0 }

// Build implements picker.Policy. Turns are kept by record, so that an update of the list
// loses none; who is new has never had one.
func (p LeastRecent) Build(m *picker.Members, prev picker.Picker) picker.Picker {
	next := &leastRecent{draws: p.draws(), turns: make([]*atomic.Uint64, m.Len())}
	byRecord := map[*picker.Record]*atomic.Uint64{}
	if old, ok := prev.(*leastRecent); ok {
		for i, r := range old.records {
			byRecord[r] = old.turns[i]
		}
		next.clock = old.clock
	} else {
		next.clock = new(atomic.Uint64)
	}
	for i := range next.turns {
		r := m.Record(i)
		next.records = append(next.records, r)
		if next.turns[i] = byRecord[r]; next.turns[i] == nil {
			next.turns[i] = new(atomic.Uint64)
		}
	}
	return next
}

type leastRecent struct {
	draws   int
	clock   *atomic.Uint64
	records []*picker.Record
	turns   []*atomic.Uint64 // by member index
}

// Pick implements picker.Picker.
func (p *leastRecent) Pick(s *picker.Snapshot, _ picker.Request, _ int64) int {
	best := s.At(int(s.Uint64() % uint64(s.Len())))
	for range p.draws - 1 {
		if i := s.At(int(s.Uint64() % uint64(s.Len()))); p.turns[i].Load() < p.turns[best].Load() {
			best = i
		}
	}
	p.turns[best].Store(p.clock.Add(1))
	return best
}

// Priced is a signal: the expected wait of the default policy, made more expensive for
// endpoints that cost money (another region, another provider). It adds to what the
// library knows, and works in every policy that compares.
type Priced struct {
	// Prices is the factor for the endpoints named, 1 for others; nil means 1 for all. It is
	// a pointer so that the signal can be compared.
	Prices *map[string]float64
}

// Validate is found by policies that use the signal.
func (s Priced) Validate() error {
	if s.Prices == nil {
		return nil
	}
	var problems []error
	for id, f := range *s.Prices {
		if !(f >= 1 && f <= 1000) {
			problems = append(problems, fmt.Errorf("custompolicy: price of %q is %v, want 1 to 1000", id, f))
		}
	}
	return errors.Join(problems...)
}

// Needs implements picker.Signal.
func (s Priced) Needs() picker.Need { return picker.Latency.Needs() }

// CountsInFlight says that the cost has the factor (in flight + 1), as Latency's has.
func (s Priced) CountsInFlight() {}

// Cost implements picker.Signal. Costs are logarithms, so that a factor is a sum: a
// price of 8 is worth three doublings of the wait.
func (s Priced) Cost(r *picker.Record, now int64) int64 {
	cost := picker.Latency.Cost(r, now)
	if s.Prices == nil {
		return cost
	}
	if f, ok := (*s.Prices)[r.ID()]; ok {
		cost += log2(f)
	}
	return cost
}
