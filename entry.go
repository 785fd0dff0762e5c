package evenkeel

// entry is one endpoint of a pool's list, whether it is a member or not. It is guarded by
// the pool's mu.
type entry[T any] struct {
	Member[T] // as the list has it

	drained bool // its weight is 0, and not everybody's
	member  bool // selected
	state   State

	// Of members alone.
	untried bool  // never Ready since it was selected, and has to be connected to first
	missing int64 // instant at which it was first seen not to be available; -1 while it is
}

// available reports whether a member may be picked. What else than its state keeps an
// endpoint from that belongs here.
func (e *entry[T]) available() bool { return e.state == Ready }

// becomes takes a new state.
func (e *entry[T]) becomes(s State) {
	e.state = s
	if e.available() {
		e.untried, e.missing = false, -1
	}
}

// joins makes it a member at instant now.
func (e *entry[T]) joins(now int64) {
	e.member = true
	e.missing = -1
	if !e.available() {
		e.untried, e.missing = e.NotReady, now
	}
}

// leaves makes it no member any more. Who has to be connected to starts anew next time.
func (e *entry[T]) leaves() {
	e.member, e.untried = false, false
	if e.NotReady {
		e.state = NotReady
	}
}

// entries returns the list that members make, with what is known of those that were
// listed before. mu is held.
func (p *Pool[T]) entries(members []Member[T]) (listed []entry[T], index map[string]int) {
	listed = make([]entry[T], len(members))
	index = make(map[string]int, len(members))
	allDrained := true
	for i, m := range members {
		index[m.ID] = i
		if old, ok := p.index[m.ID]; ok {
			listed[i] = p.listed[old]
		} else if m.NotReady {
			listed[i].state = NotReady
		}
		listed[i].Member = m
		listed[i].drained = m.Weight.Value() == 0
		allDrained = allDrained && listed[i].drained
	}
	for i := range listed {
		listed[i].drained = listed[i].drained && !allDrained
	}
	return listed, index
}
