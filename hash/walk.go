package hash

import "math/bits"

// Walk goes through the candidates of one key, in the order of [Maglev.Candidates] and its
// likes: the owner first, each endpoint once, until all with a positive weight have been
// seen. It is a small value that lives on the stack, behind an interface as well, where a
// sequence would allocate:
//
//	w := table.Walk(key)
//	for i, ok := w.Next(); ok; i, ok = w.Next() {
//		...
//	}
//
// The zero Walk has no candidates. A Walk belongs to one goroutine; the table may be shared.
type Walk struct {
	// One of the three is set. Two kinds of table are called directly, which spares the
	// copies of the state that an interface costs.
	maglev *Maglev
	ring   *Ring
	table  stepper

	state walkState
}

// Next returns the next candidate as an index into the slice that the table was built from,
// and false, with -1, when there are no more.
func (w *Walk) Next() (int, bool) {
	i := -1
	switch {
	case w.maglev != nil:
		i = w.maglev.next(&w.state)
	case w.ring != nil:
		i = w.ring.next(&w.state)
	case w.table != nil:
		w.state, i = w.table.step(w.state)
	}
	return i, i >= 0
}

// stepper is a table that yields candidates one by one. The state goes in and comes out by
// value: a pointer to it, passed through the interface, would put every Walk on the heap.
type stepper interface {
	// step returns the state after the next candidate, and its index in the caller's slice,
	// or -1 when there are no more, and from then on.
	step(s walkState) (walkState, int)
}

// walkFew is how many candidates a walk that draws them tells apart by remembering them.
const walkFew = 8

// walkState is how far a walk has come. Its zero value but for key is the beginning; what
// score and at mean is each table's own affair.
type walkState struct {
	key   uint64          // as given to Walk
	score uint64          // such as that of the last candidate
	at    uint32          // such as a position in a table
	swept uint32          // see list.strew; 0 before it begins
	count uint32          // how many of few are in use
	few   [walkFew]uint32 // the first candidates, as indices in the caller's slice
}

// seen reports whether the endpoint at an index of the caller's slice is among the first few.
func (s *walkState) seen(index uint32) bool {
	for i := range min(s.count, walkFew) {
		if s.few[i] == index {
			return true
		}
	}
	return false
}

// add remembers the endpoint at an index of the caller's slice, if there is room.
func (s *walkState) add(index uint32) {
	if s.count < walkFew {
		s.few[s.count] = index
		s.count++
	}
}

// strew goes through the places of a list, each once, from a place and by steps that the key
// decides, and returns -1 at the end. Steps of one would send the keys of a whole zone that is
// down, whose IDs are neighbours, to the first of the next zone. An odd step modulo a power of
// two passes all places; fewer than half of them are behind the end of the list.
func (l *list) strew(s *walkState) int {
	n := uint32(len(l.index))
	mask := uint32(1)<<bits.Len32(n-1) - 1
	h := mix64(s.key ^ l.keySeed)
	start, step := uint32(h), uint32(h>>32)|1
	for s.swept <= mask {
		p := (start + s.swept*step) & mask
		s.swept++
		if p < n {
			return int(p)
		}
	}
	return -1
}

// sweep is the end of a walk that draws its candidates: everybody who is not among the first few.
func (l *list) sweep(s *walkState) int {
	for p := l.strew(s); p >= 0; p = l.strew(s) {
		if i := l.index[p]; !s.seen(uint32(i)) {
			return int(i)
		}
	}
	return -1
}
