package evenkeel

import (
	"errors"
	"slices"

	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

var (
	errBranched       = errors.New("evenkeel: the pool has branches, whose lists count: want Update of those")
	errBranchedSubset = errors.New("evenkeel: Config.Subset is set, want none for a pool with branches")
)

// branch is what a pool that is a branch has beside its list, its picker and its view. It is guarded by the
// home's mu, as all of this file.
type branch struct {
	at        []int  // of each in the list: its index among the home's members; -1: the home does not have it yet, or any more
	stamp     uint64 // the higher, the later its list came
	part      outlier.Part
	standings []outlier.Standing // scratch
}

// Branch returns another pool for the same service, which shares with p and with p's other branches all that is known of
// endpoints (by ID): requests in flight, latencies, failures, ejections, reports; and the rules: configuration, limit,
// caps, and the lock of what is no pick. Its own are the list, the handles, the states, and so who may be picked and
// whether there is panic. So several users of one service, each with connections of its own, balance as one.
//
// A branch begins with an empty list. Once there is one, the list of p is that of all its branches together, with
// the weights of the list that came last and the best state that one of them has for an endpoint: p's own Update and
// Replace fail, its SetStates changes nothing, and from its handles, which are some branch's, nobody should
// pick. SetConfig of any of them counts for all. Sweep of any does the work for all, once.
// When the last branch is closed, p is a pool like others, with the list of that one.
//
// The branch of a branch is p's. The errors are [ErrClosed], and one for a [Config].Subset: each user would connect to a part of
// its own. Branches cost O(n) memory each, a picker of their own (with tables, if its policy has any), and a pick
// nothing. A branch whose list is empty, while others' are not, has nobody ready.
func (p *Pool[T]) Branch() (*Pool[T], error) {
	p = p.home
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, ErrClosed
	case p.config.Subset != nil:
		return nil, errBranchedSubset
	}
	b := &Pool[T]{start: p.start, home: p, comparable: p.comparable, branch: &branch{}}
	p.branches = append(p.branches, b)
	b.refit()
	b.publishPart()
	return b, nil
}

// closePart closes a branch. What the others list stays.
func (p *Pool[T]) closePart() {
	h := p.home
	p.closed = true
	at := slices.Index(h.branches, p)
	h.branches = slices.Delete(h.branches, at, at+1)
	p.listed, p.index = nil, nil // the home's members go on without it
	p.refit()
	p.publishPart()
	if h.closed || len(h.branches) == 0 {
		return
	}
	_ = h.replaceAt(h.detector.Now(), nil, h.gather(nil)) // of lists that were validated
	h.uniteAll()
}

// replacePart is replaceAt for a branch.
func (p *Pool[T]) replacePart(now int64, c *Config, members []Member[T]) error {
	h := p.home
	if members != nil && !p.closed && p.same(members) {
		members = nil
	}
	_, list, err := h.validated(c, members)
	if err == nil {
		err = picker.Validate(list) // validated leaves that to whoever builds the members, which is not this list
	}
	switch {
	case err != nil:
		return err
	case p.closed || h.closed:
		return ErrClosed
	case members == nil:
		return h.replaceAt(now, c, nil)
	}
	if now > h.sweepDue.Load() {
		h.sweep(now) // else replaceAt would, and publish what is not whole yet
	}
	listed, index := p.listed, p.index
	p.listed, p.index = p.entries(members)
	if err := h.replaceAt(now, c, h.gather(p)); err != nil {
		p.listed, p.index = listed, index
		return err
	}
	if !sameIDs(index, p.index) {
		p.generation++
	}
	p.refit()
	h.uniteAll()
	p.publishPart()
	return nil
}

func sameIDs(a, b map[string]int) bool {
	if len(a) != len(b) {
		return false
	}
	for id := range a {
		if _, ok := b[id]; !ok {
			return false
		}
	}
	return true
}

// gather returns what the branches list together, in the order that it has already, so that lists which differ in nothing
// else change nothing. news is the branch whose list is the newest, nil if there is no new one.
func (p *Pool[T]) gather(news *Pool[T]) []Member[T] {
	if news != nil {
		for _, b := range p.branches {
			news.branch.stamp = max(news.branch.stamp, b.branch.stamp+1)
		}
	}
	var all []Member[T]
	var stamps []uint64
	index := make(map[string]int, len(p.listed))
	for _, b := range p.branches {
		for i := range b.listed {
			m := &b.listed[i].Member
			switch at, known := index[m.ID]; {
			case !known:
				index[m.ID] = len(all)
				all, stamps = append(all, *m), append(stamps, b.branch.stamp)
			case b.branch.stamp > stamps[at]:
				all[at].Endpoint, stamps[at] = m.Endpoint, b.branch.stamp
			}
		}
	}
	list := make([]Member[T], 0, len(all))
	for i := range p.listed {
		if at, ok := index[p.listed[i].ID]; ok {
			list = append(list, all[at])
			delete(index, p.listed[i].ID)
		}
	}
	for _, m := range all {
		if _, left := index[m.ID]; left {
			list = append(list, m)
		}
	}
	return list
}

// unite gives member i the best state that a branch has for it, and reports whether its standing is another one.
func (p *Pool[T]) unite(i int) (changed bool) {
	e := &p.listed[i]
	var best *entry[T]
	for _, b := range p.branches {
		if k, ok := b.index[e.ID]; ok {
			if one := &b.listed[k]; best == nil || one.standing() < best.standing() {
				best = one
			}
		}
	}
	if best == nil {
		return false
	}
	before := e.standing()
	for from, s := range best.states {
		if s != e.states[from] {
			e.becomes(Source(from), s)
		}
	}
	return e.standing() != before
}

// uniteAll is unite for all, and tells the detector.
func (p *Pool[T]) uniteAll() {
	var news []outlier.StandingChange
	for i := range p.listed {
		if p.unite(i) {
			news = append(news, outlier.StandingChange{Index: i, Standing: p.standing(i)})
		}
	}
	p.stand(news, nil)
}

// setPartStates is SetStates for a branch.
func (p *Pool[T]) setPartStates(changes []StateChange) (found int) {
	h := p.home
	var news []outlier.StandingChange
	var passed []int
	changed := false
	for _, c := range changes {
		k, ok := p.index[c.ID]
		if !ok {
			continue
		}
		found++
		if c.Source >= sources {
			continue
		}
		changed = p.listed[k].takes(c) || changed
		i := p.branch.at[k]
		if h.unite(i) {
			news = append(news, outlier.StandingChange{Index: i, Standing: h.standing(i)})
		}
		if c.Source == Checks && c.State == Ready {
			passed = append(passed, i)
		}
	}
	if p.closed || h.closed {
		return found
	}
	seen := h.view.Load()
	h.stand(news, passed)
	if changed && h.view.Load() == seen { // else all branches were published
		p.publishPart()
	}
	return found
}
