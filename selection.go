package evenkeel

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// How long a member is unavailable before another is selected in its place. A connection
// that is lost is back at once more often than not, and one that is new takes its time.
const (
	lostGrace    = 500 * time.Millisecond
	connectGrace = 3 * time.Second
)

// Selected returns the handles of the members, in the order of the list: of all endpoints, or
// with [Config].Subset of this client's part of them. Whoever keeps connections needs them to
// these alone; ask again when [Pool.Generation] has changed.
func (p *Pool[T]) Selected() []T {
	if p.branch != nil {
		return p.selectedPart()
	}
	return slices.Clone(p.view.Load().handles)
}

// Generation returns a number that is raised whenever other endpoints, by their IDs, are
// selected. That is after calls of Update, SetConfig, Replace or Sweep and never on a
// pick. Read it before [Pool.Selected], so that no change is missed.
func (p *Pool[T]) Generation() uint64 { return p.view.Load().generation }

// newSelector returns what selects by c, nil for nil. A client that has neither an index nor
// a seed gets an identity of its own, once, so that it keeps its endpoints when anything else
// about c changes.
func (p *Pool[T]) newSelector(c *subset.Config) (*subset.Selector, error) {
	if c == nil {
		return nil, nil
	}
	own := *c
	if own.ClientIndex.Source == subset.NoIndex && own.Seed == 0 {
		if p.identity == 0 {
			random := p.random
			if random == nil {
				random = rand.Uint64
			}
			p.identity = random() | 1
		}
		own.Seed = p.identity
	}
	s, err := subset.NewSelector(own)
	if err == nil {
		s.Resume(p.selector)
	}
	return s, err
}

// subsetMembers is a list as package subset has it. Weights that are alike do not count.
func subsetMembers(list []Endpoint) subset.Members {
	m := subset.Members{IDs: make([]string, len(list))}
	for i, e := range list {
		m.IDs[i] = e.ID
		if m.Weights == nil && e.Weight.Value() != list[0].Weight.Value() {
			m.Weights = make([]float64, len(list))
		}
	}
	for i := range m.Weights {
		m.Weights[i] = list[i].Weight.Value()
	}
	return m
}

// adopt makes those that the selector chose the members, at instant now. built is that list
// if the registry has it already. mu is held.
func (p *Pool[T]) adopt(now int64, built *picker.Members) {
	p.offered.before(p.members, now)
	var factors []float64
	p.chosen = nil
	n := len(p.listed)
	if p.selector != nil {
		p.chosen, factors = p.selector.Subset(), p.selector.Weights()
		n = len(p.chosen)
	}
	list := make([]Endpoint, n)
	p.handles = make([]T, n)
	stayed, was := 0, p.members.Len()
	next := 0 // of listed
	for k := range n {
		for ; next < p.place(k); next++ {
			if e := &p.listed[next]; e.member {
				e.leaves()
			}
		}
		next++
		e := p.member(k)
		if e.member {
			stayed++
		} else {
			e.joins(now)
		}
		list[k], p.handles[k] = e.Endpoint, e.Handle
		if list[k].Weight = p.weight(e); factors != nil {
			list[k].Weight = scaled(list[k].Weight, factors[k])
		}
	}
	for ; next < len(p.listed); next++ {
		if e := &p.listed[next]; e.member {
			e.leaves()
		}
	}
	if stayed != n || stayed != was {
		p.generation++
	}
	if built == nil {
		built, _ = p.registry.Members(list, now) // part of a list that was validated
	}
	p.members = built
	p.takeReportsOf()
	p.judgeMembers(now)
	p.offered.after(p.members, p.selector != nil && p.config.Subset.MaxSize > 0)
	p.changed, p.houseDue = now, 0
	p.rebuild()
}

// place returns where in the list member i is. mu is held, as for member.
func (p *Pool[T]) place(i int) int {
	if p.chosen != nil {
		return p.chosen[i]
	}
	return i
}

func (p *Pool[T]) member(i int) *entry[T] { return &p.listed[p.place(i)] }

// scaled returns w times factor, within the bounds of weights.
func scaled(w Weight, factor float64) Weight {
	v := w.Value() * factor
	if v > 0 {
		v = min(max(v, picker.MinWeight), picker.MaxWeight)
	}
	return WeightOf(v)
}

// reselect lets the subset follow the load and what is available, and returns for how long
// nothing will change by itself. mu is held.
func (p *Pool[T]) reselect(now int64) (wait time.Duration) {
	wait = math.MaxInt64
	if p.selector == nil || p.closed {
		return wait
	}
	for i := range p.members.Len() {
		e := p.member(i)
		if e.available() {
			continue
		}
		if e.missing < 0 {
			e.missing = now
		}
		if left := time.Duration(e.missing-now) + e.grace(); left > 0 {
			wait = min(wait, left)
		}
	}
	wider := false
	if p.config.Subset.MaxSize > 0 {
		_, wider = p.selector.SetLoad(p.offered.measure(p.members, now))
	}
	_, covered := p.selector.Cover(now, func(i int) bool { return p.listed[i].down(now) })
	if wider || covered {
		p.adopt(now, nil)
	}
	return wait
}

// grace is how long a member that is not available counts as if it were about to be.
func (e *entry[T]) grace() time.Duration {
	if e.untried {
		return connectGrace
	}
	return lostGrace
}

// down reports whether it is known to be of no use, so that somebody else has to take its
// place. Of an endpoint that has to be connected to and is not selected nothing is known.
func (e *entry[T]) down(now int64) bool {
	switch {
	case e.drained:
		return true
	case e.available():
		return false
	case !e.member:
		return !e.NotReady
	}
	return e.missing >= 0 && now-e.missing >= int64(e.grace())
}
