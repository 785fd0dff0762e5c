package hash

import "slices"

// Update returns a ring for another list with the same config: the receiver if the result
// would be the same, indices included. It costs one pass over the points, a quarter
// to a third of a build, when few of them change, and gives what [NewRing] would, point for
// point. On an error, one of those of [NewRing], the receiver comes back with it, as good as
// before.
func (r *Ring) Update(endpoints []Endpoint) (*Ring, error) {
	next, err := planRing(endpoints, r.config)
	if err != nil {
		return r, err
	}
	if r.list == nil {
		next.build()
		return next, nil
	}
	if next.list.equal(r.list) {
		return r, nil
	}
	e := r.difference(next)
	switch changed := len(e.removed) + len(e.added); {
	case changed == 0: // an order, or a weight by less than a point
		next.circle = r.circle
	case changed > int(r.circle.count())/4:
		next.build()
	default:
		slices.Sort(e.removed)
		slices.Sort(e.added)
		next.circle = r.circle.edit(e)
	}
	return next, nil
}

// edit is what to do to one circle to get another.
type edit struct {
	removed []uint64 // points of the old circle
	added   []uint64 // points of the new one
	// position holds the new position of each of the old owners that stays.
	position []uint32
}

// difference returns what to do to r's circle to get next's.
func (r *Ring) difference(next *Ring) edit {
	e := edit{position: make([]uint32, len(r.counts))}
	for i, j := 0, 0; i < len(r.counts) || j < len(next.counts); {
		switch {
		case j == len(next.counts) || i < len(r.counts) && r.list.ids[i] < next.list.ids[j]:
			e.removed = r.appendPoints(e.removed, i, 0, r.counts[i])
			i++
		case i == len(r.counts) || r.list.ids[i] > next.list.ids[j]:
			e.added = next.appendPoints(e.added, j, 0, next.counts[j])
			j++
		default: // both have it
			e.position[i] = uint32(j)
			was, is := r.counts[i], next.counts[j]
			e.removed = r.appendPoints(e.removed, i, min(was, is), was)
			e.added = next.appendPoints(e.added, j, min(was, is), is)
			i++
			j++
		}
	}
	return e
}

// edit returns the circle with an edit made, whose points are sorted. What is between two
// changes is copied as a whole.
func (c *circle) edit(e edit) circle {
	n := int(c.count()) + len(e.added) - len(e.removed)
	to := emptyCircle(n)
	from, done := 0, 0 // how far the old and the new points have come
	copyUntil := func(until int) {
		if until > from {
			renumber(to.points[done:], c.points[from:until], e.position)
			done += until - from
			from = until
		}
	}
	removed, added := e.removed, e.added
	for len(removed) > 0 || len(added) > 0 {
		gone, comes := int(c.count()), int(c.count())
		if len(removed) > 0 {
			gone = c.indexOf(removed[0])
		}
		if len(added) > 0 {
			comes = c.insertionOf(added[0], e.position)
		}
		if len(added) > 0 && (len(removed) == 0 || comes <= gone) {
			copyUntil(comes)
			to.points[done] = added[0]
			done++
			added = added[1:]
		} else {
			// Of two equal points the first is gone already: from is at the second.
			copyUntil(gone)
			from++
			removed = removed[1:]
		}
	}
	copyUntil(int(c.count()))
	to.close()
	if to.shift == c.shift {
		to.shiftStarts(c.starts, e)
	} else {
		to.findStarts()
	}
	return to
}

// renumber copies points with the new positions of their owners.
func renumber(dst, src []uint64, position []uint32) {
	dst = dst[:len(src)]
	for i, p := range src {
		dst[i] = p&^ownerMask | uint64(position[p&ownerMask])
	}
}

// indexOf returns the index of a point of the circle, the first of equal ones.
func (c *circle) indexOf(point uint64) int {
	i := c.find(point)
	for c.points[i] < point {
		i++
	}
	return i
}

// insertionOf returns the index that a point with a new position is inserted at. Among the
// points of one place it may be before or behind those that go.
func (c *circle) insertionOf(point uint64, position []uint32) int {
	i := c.find(point)
	for ; i < int(c.count()); i++ {
		p := c.points[i]
		if p>>ownerBits != point>>ownerBits || uint64(position[p&ownerMask]) >= point&ownerMask {
			break
		}
	}
	return i
}

// shiftStarts fills in starts from those of the circle before the edit, with as many
// buckets: between two changes all of them move by the same number of points.
func (c *circle) shiftStarts(before []uint32, e edit) {
	removed, added := e.removed, e.added
	moved := uint32(0) // modulo 2^32
	for b := 0; b < len(before); {
		until := len(before)
		if len(removed) > 0 {
			until = min(until, int(removed[0]>>c.shift)+1)
		}
		if len(added) > 0 {
			until = min(until, int(added[0]>>c.shift)+1)
		}
		dst, src := c.starts[b:until], before[b:until]
		for i := range dst {
			dst[i] = src[i] + moved
		}
		b = until
		for ; len(removed) > 0 && int(removed[0]>>c.shift) < b; removed = removed[1:] {
			moved--
		}
		for ; len(added) > 0 && int(added[0]>>c.shift) < b; added = added[1:] {
			moved++
		}
	}
}

// findStarts fills in starts from the points.
func (c *circle) findStarts() {
	b := 0
	for i, p := range c.points[:c.count()] {
		for ; b <= int(p>>c.shift); b++ {
			c.starts[b] = uint32(i)
		}
	}
	for ; b < len(c.starts); b++ {
		c.starts[b] = c.count()
	}
}
