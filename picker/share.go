package picker

import "github.com/evenkeel/evenkeel/ewma"

// SetShare lets the endpoint have that fraction, 0 to 1, of the requests that it would get
// otherwise, until it is set again: how whoever ejects endpoints brings one back slowly. 1 and more,
// and what is no number, is all of them. Rules that rotate or draw go on to the next in the other
// cases. Rules that compare costs give it as many as if all they compare were alike, less if it
// is much worse than that, and otherwise hold it back as they do an endpoint on probation. Rules that
// hash keep their tables, and let it have that part of what it may have in flight, one request at
// least; without a bound of load that part of its keys, more and more of the same. What a rule does
// by itself to bring newcomers in slowly is left out meanwhile, and does not follow.
// A policy of your own asks [Record.HeldBack], and [Record.AvoidFor].
func (r *Record) SetShare(f float64) {
	if f < 1 {
		r.share.Store(uint32(max(f, 0) * (1 << 32)))
		r.mark(markShare)
		return
	}
	switch marks := r.marks.Load(); {
	case marks&markShare == 0:
	case marks&markAvoided != 0: // what follows on an overload is still ahead
		r.marks.And(^uint32(markShare))
	default:
		r.marks.And(^uint32(markShare | markRamp))
	}
}

// Share returns what was set by SetShare, 1 if nothing was.
func (r *Record) Share() float64 {
	if r.marks.Load()&markShare == 0 {
		return 1
	}
	return float64(r.share.Load()) / (1 << 32)
}

// shareBonus is by how much the one that a comparison lets win by its share may be worse than the
// others: four doublings, which is what chance does to short queues. One that has become slower than
// that, or fails, loses all the same.
const shareBonus = 4 << 16

// inPart is the cost of an endpoint that has a share, in a comparison of that many, if it is cost
// with k requests in flight. That it took part in a fraction of comparisons by its cost
// would not do: it has less in flight than the others, so that it would win nearly all of those, against
// twelve others as against one. So it wins its part of what it would by lot. k counts as if its
// queue were as much longer as its share is smaller, which ends it when requests pile up.
func (r *Record) inPart(cost, k int64, among int, relative float64) int64 {
	cost = min(cost, mostCost)
	share := uint64(r.share.Load())
	if float64(r.shared.uint64()>>32)*float64(among) >= float64(share)*relative {
		return cost + probationCost
	}
	part := max(share>>12, 1)
	return cost - shareBonus + ewma.Log2(uint64(max(k, 0))<<20+part) - ewma.Log2(part) - countLog2(k)
}

// holdsKey reports whether a key is among those that an endpoint with a share has to leave to others.
func (r *Record) holdsKey(key uint64) bool {
	return uint32(mix(key+uint64(r.serial))>>32) >= r.share.Load()
}

// HeldBack draws whether the endpoint is to be left out of a choice: see SetShare. Ask once for each
// choice.
func (r *Record) HeldBack() bool {
	return r.marks.Load()&markShare != 0 && uint32(r.shared.uint64()>>32) >= r.share.Load()
}

// Begin counts a request for member i, which need not be available: for whoever sends it to an
// endpoint of its own choice, such as one that is tried again. It is otherwise as
// [Snapshot.Pick].
func (s *Snapshot) Begin(i int, r Request, now int64) (p Pick) {
	if s.needs&needTotal != 0 {
		if t := s.shared.totals.Load(); t != nil && s.records[i].marks.Load()&markApart != 0 {
			t.apart.Add(1) // what it begins is not the available ones'
		}
	}
	s.Start(&p, i, r.Kind, now)
	return p
}

// InFlight returns how many requests the endpoint with that ID has in flight, whether the list has it or
// not; 0 if nothing is known of it.
func (g *Registry) InFlight(id string) int64 {
	if r := g.records[id]; r != nil {
		return r.InFlight()
	}
	return 0
}

// Unary returns how many requests the registry's endpoints have in flight, those that left the list
// included and streams not.
func (g *Registry) Unary() (n int64) {
	for _, r := range g.records {
		n += max(r.InFlight()-r.streams.Load(), 0)
	}
	return n
}
