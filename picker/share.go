package picker

// SetShare makes the endpoint take part in that fraction of the choices, 0 to 1, until it is set
// again: how whoever ejects endpoints brings one back slowly. 1 and more, and what is no number, is
// all of them. Rules that compare costs hold it back in the others as they do an endpoint
// on probation, rules that rotate or draw go on to the next; those that hash keep their tables, and let it have
// that part of what it may have in flight. A policy of your own asks [Record.HeldBack].
func (r *Record) SetShare(f float64) {
	if !(f < 1) {
		if r.marks.Load()&markShare != 0 {
			r.marks.And(^uint32(markShare))
		}
		return
	}
	r.share.Store(uint32(max(f, 0) * (1 << 32)))
	r.mark(markShare)
}

// HeldBack draws whether the endpoint is to be left out of a choice: see SetShare. Ask once for each
// choice.
func (r *Record) HeldBack() bool {
	return r.marks.Load()&markShare != 0 && uint32(r.shared.uint64()>>32) >= r.share.Load()
}

// drawsAlone reports whether a Picker chooses without a look at costs, so that the snapshot has to hold
// endpoints back.
func drawsAlone(p Picker) bool {
	switch p.(type) {
	case *roundRobin, random, *weightedRandom, *stride, *turns, *smooth, p2cInFlight:
		return true
	}
	return false
}

// insteadOf finds another endpoint than i, which is held back: by the rule if it can, else the
// first from a random position; i itself if there is none.
func (s *Snapshot) insteadOf(i int, r Request, now int64) int {
	takes := func(j int) bool { return j != i && !r.avoids(s.records[j]) && !s.records[j].HeldBack() }
	for range avoidTries {
		if j := s.picker.Pick(s, r, now); uint(j) < uint(len(s.records)) && takes(j) {
			return j
		}
	}
	from := uniform(uint32(s.Uint64()>>32), s.n)
	for k := range s.n {
		if j := s.At((from + k) % s.n); takes(j) {
			return j
		}
	}
	return i
}

// Begin counts a request for member i, which need not be available: for whoever sends it to an
// endpoint of its own choice, such as one that is tried again. It is otherwise as
// [Snapshot.Pick].
func (s *Snapshot) Begin(i int, r Request, now int64) Pick {
	rec := s.records[i]
	switch {
	case s.needs == 0 && r.Kind != Stream:
		rec.picks.Add(1)
		return Pick{rec: rec, start: max(now, s.shared.swept.Load())}
	case s.needs&needTotal != 0:
		if t := s.shared.totals.Load(); t != nil && rec.marks.Load()&markApart != 0 {
			t.apart.Add(1) // what it begins is not the available ones'
		}
		return s.beginCounted(rec, i, r.Kind, now)
	}
	return Pick{rec: rec, start: now, epoch: rec.epoch.Load(), flags: rec.begin(r.Kind, s.needs, now)}
}

// Unary returns how many requests the registry's endpoints have in flight, those that left the list
// included and streams not.
func (g *Registry) Unary() (n int64) {
	for _, r := range g.records {
		n += max(r.InFlight()-r.streams.Load(), 0)
	}
	return n
}
