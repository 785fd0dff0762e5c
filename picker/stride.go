package picker

import (
	"math/bits"
	"sync/atomic"
)

// WeightedRoundRobin takes the available endpoints in turn by weight, without a lock. It
// goes round a table in which every visit to a slot adds its endpoint's weight, and
// picks the endpoint when that makes a whole turn: 5, 1, 1 give a c a a b a a. In as
// many picks as the weights sum to, each endpoint has exactly its share. In between
// it is off by a turn or two; one that has most of the weight beside a thousand
// light ones, by a few more. Source: gRPC's static stride scheduler (A58), with exact
// fractions in place of 16-bit weights, which limits no weight and leaves none out.
//
// When to use it: weights of any size and any number of endpoints, where chance
// ([WeightedRandom]) is too uneven. A pick is O(1), at most 96 visits, and writes
// one counter, which all picks share.
//
// Like all rotations it is blind to what the endpoints are doing, and a slow one gets its
// full share. It begins at a random point, so that of many clients that start together,
// or send only a few requests, each endpoint gets its share; together they are as
// uneven as random picks over times in which each of them sends little.
//
// An update restarts nothing: endpoints that stay keep what they have of a turn, and a
// newcomer begins with a random part of one. Slots of endpoints that are not available
// are passed over, each on its own, so that nobody inherits their share. When more than
// a quarter of the weight is not available, the table is made anew without it.
type WeightedRoundRobin struct{}

// Validate returns nil: there is nothing to set.
func (WeightedRoundRobin) Validate() error { return nil }

// Needs returns 0.
func (WeightedRoundRobin) Needs() Need { return 0 }

// Build returns a Picker that goes on where prev is, if that is one of its kind.
func (WeightedRoundRobin) Build(m *Members, prev Picker) Picker {
	ints := integerWeights(m.weights)
	p := &stride{records: m.records, coverage: newCoverage(ints), parts: make([]uint64, len(ints))}
	for i := range p.parts {
		p.parts[i] = m.Uint64()
	}
	var t *strideTable
	if old, ok := prev.(*stride); ok {
		here := p.takeOver(old)
		t = newStrideTable(ints, p.seats)
		t.goOn(here)
	} else {
		p.seats = seatsFor(len(ints), nil)
		t = newStrideTable(ints, p.seats)
		t.startAnywhere(m.Uint64)
	}
	p.table.Store(t)
	return p
}

// stride is the Picker.
type stride struct {
	table   atomic.Pointer[strideTable] // written by Watch
	records []*Record                   // set at construction

	// seats is the order of the members in tables: that of the list at first, and then
	// the one before, whatever becomes of the list's, with newcomers in the seats of
	// leavers. Set at construction.
	seats []int32

	// Used by Build and Watch alone.
	coverage coverage
	parts    []uint64 // by member, what it had of a turn when it was last in a table
}

// takeOver returns where old's rotation is, in terms of p's members. Picks from old's
// table after that do not move the new one.
func (p *stride) takeOver(old *stride) rotation {
	places := placesOf(p.records)
	at := old.table.Load().rotation(old.parts)
	here := rotation{parts: p.parts, at: at.at, slots: at.slots}
	kept := make(map[int]int32)
	for k, r := range old.records {
		if i, ok := places[r]; ok {
			p.parts[i] = at.parts[k]
			kept[i] = old.seats[k]
		}
	}
	p.seats = seatsFor(len(p.records), kept)
	for _, k := range at.order {
		if i, ok := places[old.records[k]]; ok {
			here.order = append(here.order, int32(i))
		}
	}
	return here
}

// seatsFor returns seats for n members: those in kept, and for the others the first ones
// that are free.
func seatsFor(n int, kept map[int]int32) []int32 {
	taken := make(map[int32]bool, len(kept))
	for _, seat := range kept {
		taken[seat] = true
	}
	seats := make([]int32, n)
	free := int32(0)
	for i := range seats {
		seat, ok := kept[i]
		if !ok {
			for taken[free] {
				free++
			}
			seat = free
			free++
		}
		seats[i] = seat
	}
	return seats
}

// Watch implements Watcher.
func (p *stride) Watch(s *Snapshot) {
	in, changed := p.coverage.update(s)
	if !changed {
		return
	}
	weights := p.coverage.weights
	if in != nil {
		weights = among(weights, in)
	}
	t, r := newStrideTable(weights, p.seats), p.table.Load().rotation(p.parts)
	t.goOn(r)
	p.table.Store(t)
	p.parts = r.parts
}

const (
	// visitsInTurn bounds the slots that one pick visits in turn. More than this many in a
	// row are in vain only where neighbours in the list are not available together,
	// as those of a zone.
	visitsInTurn = 32
	// visitsAnywhere bounds the slots that it visits at random places after that.
	visitsAnywhere = 32
)

// Pick implements Picker. It looks for the next visit that picks, and then moves the
// counter behind it: one write, whatever the number of visits. If another pick has moved
// the counter meanwhile it begins again and takes visits one by one, which cannot
// fail. Either way each visit is that of one pick.
func (p *stride) Pick(s *Snapshot, _ Request, _ int64) int {
	t := p.table.Load()
	seq := t.next.Load()
	round, at := t.place(seq)
	for k := range uint64(visitsInTurn) {
		v := &t.slots[at]
		if v.picks(round) && s.Available(int(v.member)) {
			if t.next.CompareAndSwap(seq, seq+k+1) {
				return int(v.member)
			}
			return t.oneByOne(s)
		}
		if at++; at == uint64(len(t.slots)) {
			round, at = round+1, 0
		}
	}
	t.next.CompareAndSwap(seq, seq+visitsInTurn)
	return t.anywhere(s)
}

// oneByOne picks as Pick does, among many.
func (t *strideTable) oneByOne(s *Snapshot) int {
	for range visitsInTurn {
		round, at := t.place(t.next.Add(1) - 1)
		if v := &t.slots[at]; v.picks(round) && s.Available(int(v.member)) {
			return int(v.member)
		}
	}
	return t.anywhere(s)
}

// anywhere picks at random by weight. At least three quarters of the weight of a table are
// available, and at least two fifths of all visits pick, so that all of its visits are in
// vain in one of 90,000 calls; then it is anybody. (Over a snapshot that is no longer
// the last one watched it may be more, for as long as that takes.)
func (t *strideTable) anywhere(s *Snapshot) int {
	for range visitsAnywhere {
		at, part := bits.Mul64(s.Uint64(), uint64(len(t.slots)))
		if v := &t.slots[at]; part >= v.skip && s.Available(int(v.member)) {
			return int(v.member)
		}
	}
	return s.At(uniform(uint32(s.Uint64()>>32), s.n))
}
