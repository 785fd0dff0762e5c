package evenkeel

import (
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/outlier"
)

// entry is one endpoint of a pool's list, whether it is a member or not. It is guarded by
// the pool's mu.
type entry[T any] struct {
	Member[T] // as the list has it

	drained bool // its weight is 0, and not everybody's
	member  bool // selected
	at      int  // its index among the members
	states  [sources]State

	reported reported

	// Of members alone.
	untried bool  // never Ready since it was selected, and has to be connected to first
	missing int64 // instant at which it was first seen not to be available; -1 while it is
}

// available reports whether there is nothing against a member. That it is ejected does not count:
// nobody takes its place in a subset for that.
func (e *entry[T]) available() bool { return e.standing() == outlier.Usable }

// standing is the worst of what the sources say.
func (e *entry[T]) standing() outlier.Standing {
	worst := outlier.Usable
	for _, s := range e.states {
		worst = max(worst, s.standing())
	}
	return worst
}

// worst returns the worst state and who says so.
func (e *entry[T]) worst() (s State, from Source) {
	for by, is := range e.states {
		if is.standing() > s.standing() {
			s, from = is, Source(by)
		}
	}
	return s, from
}

// takes is becomes for a change of a caller's, and reports whether the standing is another one.
func (e *entry[T]) takes(c StateChange) (changed bool) {
	if c.State >= states {
		c.State = NotReady
	}
	before := e.standing()
	e.becomes(c.Source, c.State)
	return e.standing() != before
}

// becomes takes a new state.
func (e *entry[T]) becomes(from Source, s State) {
	if from == Connection && s != Ready && e.states[from] == Ready && e.reported.estimate != nil {
		// What answers next may be another process, of which nothing is known. Picks may hold the estimate.
		e.reported.estimate.Reset()
		e.reported.node, e.reported.weight = new(orca.FeedbackNode), 0
	}
	e.states[from] = s
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

// leaves makes it no member any more. Who has to be connected to starts anew next time, and
// checks of it end.
func (e *entry[T]) leaves() {
	e.member, e.untried = false, false
	e.states[Checks] = Ready
	e.reported = reported{} // reports of it are not taken until it is back
	if e.NotReady {
		e.states[Connection] = NotReady
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
			listed[i].states[Connection] = NotReady
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
