package subset

import (
	"slices"
	"time"
)

// CoverHold is how long endpoints that were added stay without being needed, so that one that
// goes up and down does not open and close connections to others each time.
const CoverHold = time.Minute

// cover is what was added to a subset because too little of it was available.
type cover struct {
	added []int // indices in the list, in the order in which they were added
	order []int // all endpoints, in the order in which to add; nil until needed
	tried int64 // when the last were added

	// While something could go: how much at the least since when.
	spare int
	since int64
}

// moved carries what was added over to a new list.
func (c *cover) moved(from, to Members, base []int) {
	c.order = nil
	if len(c.added) == 0 {
		return
	}
	at := make(map[string]int, len(to.IDs))
	for i, id := range to.IDs {
		at[id] = i
	}
	kept := c.added[:0]
	for _, i := range c.added {
		j, ok := at[from.IDs[i]]
		if _, chosen := slices.BinarySearch(base, j); ok && !chosen {
			kept = append(kept, j)
		}
	}
	c.added = kept
}

// Cover adds endpoints while fewer than Config.MinAvailable of the subset are available, and
// takes them away when they have not been needed for [CoverHold]. down reports whether the
// endpoint at an index of the last list is known to be unavailable; one that has not been tried
// yet is not, and one that is drained is. now is in nanoseconds since any fixed origin. Call it
// whenever an endpoint goes down or up, and from time to time. It returns the subset and whether
// it has changed.
//
// What comes next is the client's own random order (see [Order]), so that those who miss
// the same endpoint do not all go to the same other one. At most as many are added as the size
// says: when nearly everything is down, the fault may be the client's, and connecting to
// the whole fleet would not help. If nobody at all is available of as many, others take the place
// of some of those added, once in [CoverHold], so that nobody stays without as long as somebody is there.
func (s *Selector) Cover(now int64, down func(i int) bool) (subset []int, changed bool) {
	changed = s.topUp(now, down)
	if changed {
		s.cover.spare = 0
	} else {
		changed = s.giveBack(now, down)
	}
	return s.Subset(), changed
}

func (s *Selector) available(down func(i int) bool) int {
	n := 0
	for _, list := range [][]int{s.base, s.cover.added} {
		for _, i := range list {
			if !down(i) {
				n++
			}
		}
	}
	return n
}

func (s *Selector) topUp(now int64, down func(i int) bool) bool {
	c := &s.cover
	up := s.available(down)
	missing := s.config.minAvailable() - up
	room := s.size - len(c.added)
	if missing <= 0 || len(s.base)+len(c.added) >= len(s.members.IDs) {
		return false
	}
	var fresh []int
	drop := 0
	switch {
	case room > 0:
		fresh = s.others(0, min(missing, room), down)
	case up == 0 && now-c.tried >= int64(CoverHold):
		last := slices.Index(s.order(), c.added[len(c.added)-1])
		fresh = s.others(last+1, min(missing, s.size), down)
		drop = len(fresh) - room // the earliest make room
	}
	if len(fresh) == 0 {
		return false
	}
	c.added, c.tried = append(c.added[drop:], fresh...), now
	return true
}

// order is that in which to add, of all endpoints.
func (s *Selector) order() []int {
	if s.cover.order == nil {
		s.cover.order = order(s.identity, Members{IDs: s.members.IDs})
	}
	return s.cover.order
}

// others returns up to most endpoints that may be added, beginning at that place of the order.
func (s *Selector) others(from, most int, down func(i int) bool) (fresh []int) {
	order := s.order()
	for k := range order {
		if len(fresh) == most {
			break
		}
		i := order[(from+k)%len(order)]
		if _, chosen := slices.BinarySearch(s.base, i); !chosen && !slices.Contains(s.cover.added, i) && !down(i) {
			fresh = append(fresh, i)
		}
	}
	return fresh
}

// giveBack takes away the last of those that were added, as many as could go all the
// time since the first could.
func (s *Selector) giveBack(now int64, down func(i int) bool) bool {
	c := &s.cover
	extra := s.available(down) - s.config.minAvailable()
	spare := 0
	for _, i := range slices.Backward(c.added) {
		if !down(i) {
			extra--
		}
		if extra < 0 {
			break
		}
		spare++
	}
	if spare == 0 {
		c.spare = 0
		return false
	}
	if c.spare == 0 {
		c.spare, c.since = spare, now
	}
	c.spare = min(c.spare, spare)
	if now-c.since < int64(CoverHold) {
		return false
	}
	c.added = c.added[:len(c.added)-c.spare]
	c.spare = 0
	return true
}
