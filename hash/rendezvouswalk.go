package hash

import "math"

// exactSteps is how many candidates after the owner follow the order of ranks: the second one,
// and eight times as many as one pass finds.
const exactSteps = 1 + 8*walkFew

// step implements stepper. The second candidate takes a pass over all points, since most walks
// end there; after it one pass finds eight. few holds their positions, and at the last one
// that was given out.
// After exactSteps of them the order matters to nobody any more, but that neighbours in the
// list must not follow each other: each further one is the next by list.strew that ranks
// behind all of those, of which few[0] is the last.
func (t *Rendezvous) step(s walkState) (walkState, int) {
	switch {
	case t.list == nil || s.count >= uint32(len(t.list.ids)):
		return s, -1
	case s.count == 0:
		s.at = uint32(t.owner(t.mixKey(s.key)))
	case s.count > exactSteps:
		return t.stepOn(s)
	case s.count == 1:
		t.refill(&s, 1)
		s.at = s.few[0]
	default:
		at := (s.count - 2) % walkFew
		if at == 0 {
			t.refill(&s, walkFew)
		}
		s.at = s.few[at]
		if s.count == exactSteps {
			s.few[0] = s.at
		}
	}
	s.count++
	return s, int(t.list.index[s.at])
}

// refill finds the candidates that come after position s.at, at most some of them.
func (t *Rendezvous) refill(s *walkState, most int) {
	h := t.mixKey(s.key)
	last := t.rankAt(h, int32(s.at))
	var best [walkFew]rank
	n := 0
	for _, g := range t.groups {
		limit := t.limit(best[:most], n, g.heaviest)
		for k, p := range t.points[g.from:g.to] {
			sc := score(h, p)
			if sc > limit {
				continue
			}
			if r := t.rank(int(g.from)+k, sc); last.before(&r) {
				n = insert(best[:most], n, &r)
				limit = t.limit(best[:most], n, g.heaviest)
			}
		}
	}
	for k := range best[:n] {
		s.few[k] = uint32(best[k].place)
	}
}

// limit returns the greatest score with which an endpoint of weight w may be among the best.
func (t *Rendezvous) limit(best []rank, n int, w uint64) uint64 {
	switch {
	case n < len(best):
		return math.MaxUint64
	case t.place == nil:
		return best[n-1].score
	}
	return best[n-1].limit(w)
}

// insert puts r among the best, of which there are n, and returns how many there are now.
func insert(best []rank, n int, r *rank) int {
	at := n
	if n < len(best) {
		n++
	} else if at--; !r.before(&best[at]) {
		return n
	}
	for ; at > 0 && r.before(&best[at-1]); at-- {
		best[at] = best[at-1]
	}
	best[at] = *r
	return n
}

// stepOn is step after exactSteps.
func (t *Rendezvous) stepOn(s walkState) (walkState, int) {
	h := t.mixKey(s.key)
	last := t.rankAt(h, int32(s.few[0]))
	for p := t.list.strew(&s); p >= 0; p = t.list.strew(&s) {
		if r := t.rankAt(h, int32(p)); last.before(&r) {
			s.count++
			return s, int(t.list.index[p])
		}
	}
	return s, -1
}
