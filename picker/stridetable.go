package picker

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// strideTable is a rotation by weight. All but the counter is immutable.
//
// One slot for each endpoint, with the greatest weight w as a whole turn, is gRPC's
// table; the visits that pick nobody are max w/mean w in a pick. Where that is more
// than maxVisits, endpoints get several slots of at most a quarter of the mean each.
// Then there are at most 8 slots to an endpoint and 1.25 visits to a pick, on average.
type strideTable struct {
	slots   []slot
	inverse [2]uint64 // 2^128/len(slots), rounded up

	// The counter is written by every pick; the padding keeps it off the lines that picks
	// only read.
	_    [64]byte
	next atomic.Uint64 // the next visit
	_    [56]byte
}

// slot is a place in the table. A visit in round r finds start + r·round of a turn, in
// units of 2^-64, of which whole turns have fallen off. It adds the slot's fraction, and
// picks if a turn is complete.
type slot struct {
	start  uint64
	round  uint64 // the fractions of all the endpoint's slots
	skip   uint64 // a turn less the fraction: what is needed for a pick
	member int32
}

// maxVisits is how many visits to a pick are accepted to have gRPC's own sequence.
const maxVisits = 2.5

// newStrideTable returns a table over the members with positive weights, in the order of
// their seats, at the beginning of its rotation.
func newStrideTable(weights []uint64, seats []int32) *strideTable {
	sum, top := uint64(0), uint64(0)
	var members []int32
	for i, w := range weights {
		if w > 0 {
			members = append(members, int32(i))
		}
		sum += w
		top = max(top, w)
	}
	slices.SortFunc(members, func(a, b int32) int { return cmp.Compare(seats[a], seats[b]) })
	n := len(members)
	t := &strideTable{}
	switch {
	case n == 0:
		return t
	case float64(top)*float64(n) > maxVisits*float64(sum):
		t.slots = spreadSlots(weights, members, seats, max(sum/uint64(4*n), 1))
	default:
		t.slots = plainSlots(weights, members, top)
	}
	if n == 1 {
		t.slots = append(t.slots[:1], t.slots[0]) // the inverse of 1 would not fit
	}
	count := uint64(len(t.slots))
	hi, rest := bits.Div64(0, math.MaxUint64, count)
	lo, _ := bits.Div64(rest, math.MaxUint64, count)
	lo, carry := bits.Add64(lo, 1, 0)
	t.inverse = [2]uint64{hi + carry, lo}
	return t
}

// newSlot returns one of several slots of a member. A part of 0 is a whole turn.
func newSlot(member int32, start, part, slots uint64) slot {
	return slot{start: start, round: part * slots, skip: -part, member: member}
}

// fraction returns a/b in units of 2^-64, rounded up, for a <= b; 0 for 0 and for a = b.
func fraction(a, b uint64) uint64 {
	if a == b {
		return 0
	}
	f, rest := bits.Div64(a, 0, b)
	if rest > 0 {
		f++
	}
	return f
}

// plainSlots returns a table with one slot for each endpoint. Every other slot begins
// with half a turn, as in gRPC's.
func plainSlots(weights []uint64, members []int32, turn uint64) []slot {
	const half = maxStrideWeight / 2
	slots := make([]slot, len(members))
	for k, i := range members {
		start := fraction(uint64(k)*half%maxStrideWeight, maxStrideWeight)
		slots[k] = newSlot(i, start, fraction(weights[i], turn), 1)
	}
	return slots
}

// Where an endpoint's slots begin, and with what part of a turn, in units of 2^-64: these
// numbers times its seat, less whole ones. They are 1/g and 1/g² for
// the root g of g³ = g + 1, and fill the square more evenly than chance does (Roberts,
// "The Unreasonable Effectiveness of Quasirandom Sequences", 2018). With one number
// for both, all endpoints of a weight would be picked in the same part of a round.
const (
	spreadPlaces = 0xc13fa9a902a6328f
	spreadStarts = 0x91e10da5c79e7b1c
)

// spreadSlots returns a table in which no slot is more than a turn. The slots of an
// endpoint are the same distance from each other.
func spreadSlots(weights []uint64, members, seats []int32, turn uint64) []slot {
	type place struct {
		at uint64
		slot
	}
	var places []place
	for _, i := range members {
		seat, w := uint64(seats[i])+1, weights[i]
		first, start := seat*spreadPlaces, seat*spreadStarts
		n := (w + turn - 1) / turn
		part := fraction(w, n*turn)
		for k := range n {
			at, _ := bits.Div64(k, first, n)
			places = append(places, place{at, newSlot(i, start+k*part, part, n)})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	slots := make([]slot, len(places))
	for i, p := range places {
		slots[i] = p.slot
	}
	return slots
}

// picks reports whether a visit in that round picks the slot's member.
func (s *slot) picks(round uint64) bool { return s.start+s.round*round >= s.skip }

// place returns where visit number seq is: seq/len and seq%len. The division is a
// multiplication with the inverse, exact for 64 bits (Lemire, Kaser, Kurz, "Faster
// Remainder by Direct Computation", 2019).
func (t *strideTable) place(seq uint64) (round, at uint64) {
	round, low := bits.Mul64(t.inverse[0], seq)
	high, _ := bits.Mul64(t.inverse[1], seq)
	_, carry := bits.Add64(low, high, 0)
	round += carry
	return round, seq - round*uint64(len(t.slots))
}

// startAnywhere sets the counter to a random visit that picks. With just a random visit,
// the first pick would more often be one before which many are passed over.
func (t *strideTable) startAnywhere(random func() uint64) {
	n := uint64(len(t.slots))
	for range visitsAnywhere {
		if n == 0 {
			break
		}
		at, low := bits.Mul64(random(), n)
		round := low >> 32
		t.next.Store(round*n + at)
		if t.slots[at].picks(round) {
			break
		}
	}
}

// rotation is where a table's rotation is.
type rotation struct {
	parts []uint64 // by member, what its next visit finds of a turn
	order []int32  // the members of the slots, the next to be visited first
	at    int      // the slot to be visited next
	slots int
}

// rotation returns where t is. parts are for members that are not in t.
func (t *strideTable) rotation(parts []uint64) rotation {
	r := rotation{parts: slices.Clone(parts), order: make([]int32, len(t.slots)), slots: 1}
	if len(t.slots) == 0 {
		return r
	}
	seq, n := t.next.Load(), uint64(len(t.slots))
	round, from := seq/n, seq%n
	r.at, r.slots = int(from), int(n)
	known := make([]bool, len(parts))
	for k := range n {
		at := from + k
		if at >= n {
			at -= n
		}
		s := &t.slots[at]
		r.order[k] = s.member
		if !known[s.member] {
			known[s.member] = true
			r.parts[s.member] = s.start + s.round*(round+(from+k)/n)
		}
	}
	return r
}

// goOn begins where r is: the first that is visited is the first in r that t has, and
// each visit finds what it would have found.
func (t *strideTable) goOn(r rotation) {
	n := len(t.slots)
	from := t.find(r)
	t.next.Store(uint64(from))
	parts := slices.Clone(r.parts)
	for k := range n {
		at := from + k
		s := &t.slots[at%n]
		s.start = parts[s.member]
		if at >= n {
			s.start -= s.round
		}
		parts[s.member] -= s.skip
	}
}

// find returns the slot to be visited first.
func (t *strideTable) find(r rotation) int {
	n := len(t.slots)
	from := int(uint64(r.at) * uint64(n) / uint64(r.slots))
	here := make([]bool, len(r.parts))
	for i := range t.slots {
		here[t.slots[i].member] = true
	}
	for _, member := range r.order {
		if !here[member] {
			continue
		}
		for k := range n {
			if at := (from + k) % n; t.slots[at].member == member {
				return at
			}
		}
	}
	return from
}
