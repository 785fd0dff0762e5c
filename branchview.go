package evenkeel

import "github.com/evenkeel/evenkeel/outlier"

// refit puts a branch's list in the places that the home's members have now, and makes a picker for them. The home's
// mu is held, as for all of this file.
func (p *Pool[T]) refit() {
	h := p.home
	p.branch.at = make([]int, len(p.listed))
	p.handles = make([]T, h.members.Len())
	for k := range p.listed {
		i, ok := h.index[p.listed[k].ID]
		if !ok {
			i = -1
		} else {
			p.handles[i] = p.listed[k].Handle
		}
		p.branch.at[k] = i
	}
	p.picker = h.config.policy().Build(h.members, p.picker)
}

// publishPart makes what the home published last, as far as it is the branch's, what the branch's picks see.
func (p *Pool[T]) publishPart() {
	h, b := p.home, p.branch
	whole := h.view.Load()
	v := *whole
	v.owner, v.handles, v.generation, v.closed = p, p.handles, p.generation, p.closed || h.closed
	b.standings = p.partStandings(b.standings[:0])
	if p.available == nil {
		p.available = []int32{} // nil would mean all
	}
	p.available = b.part.Available(h.detector, b.standings, p.available[:0])
	v.panicking = b.part.Panicking()
	v.snapshot = whole.snapshot.Part(p.available, p.picker)
	v.ejected = usableOf(whole.ejected, b.standings)
	v.spare = usableOf(whole.spare, b.standings)
	v.setProbes()
	p.view.Store(&v)
}

// partStandings appends a branch's standings of the home's members, by their index.
func (p *Pool[T]) partStandings(list []outlier.Standing) []outlier.Standing {
	for range p.home.members.Len() {
		list = append(list, outlier.Drained) // not the branch's
	}
	for k, i := range p.branch.at {
		if i >= 0 && p.home.members.Weight(i) > 0 {
			list[i] = p.listed[k].standing()
		}
	}
	return list
}

// usableOf returns those of the members with these indices that a branch can reach.
func usableOf(indices []int32, standings []outlier.Standing) (list []int32) {
	for _, i := range indices {
		if standings[i] == outlier.Usable {
			list = append(list, i)
		}
	}
	return list
}

// selectedPart is Selected for a branch.
func (p *Pool[T]) selectedPart() []T {
	p.home.mu.Lock()
	defer p.home.mu.Unlock()
	list := make([]T, len(p.listed))
	for k := range p.listed {
		list[k] = p.listed[k].Handle
	}
	return list
}

// drainedPart is Drained for a branch.
func (p *Pool[T]) drainedPart() (list []T) {
	for k, i := range p.branch.at {
		if s, _ := p.listed[k].worst(); s == Draining || i >= 0 && p.home.members.Weight(i) == 0 {
			list = append(list, p.listed[k].Handle)
		}
	}
	return list
}
