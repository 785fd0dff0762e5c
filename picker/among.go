package picker

// ChooseAmong is [Snapshot.Choose] among those available endpoints that takes accepts: for whoever knows a
// reason against an endpoint that no policy does. takes may count the request; the first member that
// it accepts is the choice, and ok is false if it accepts none. With a key, a [Hash] goes on to the
// key's next candidates; other rules choose a few times anew, and then all are asked, from a random
// one on. Endpoints that ask to be left alone are asked after the others, and those that r avoids last. It
// allocates nothing and costs O(n) when most are refused.
func (s *Snapshot) ChooseAmong(r Request, now int64, takes func(i int) bool) (i int, ok bool) {
	if s.n == 0 {
		return 0, false
	}
	if p, hashes := s.picker.(*hashed); hashes && r.HasKey {
		return p.chooseAmong(s, &r, now, takes)
	}
	for range avoidTries {
		if i, err := s.Choose(r, now); err == nil && takes(i) { // which r avoids only if it avoids all
			return i, true
		}
	}
	from := uniform(uint32(s.Uint64()>>32), s.n)
	at := s.shared.at(now)
	for turn, turns := 0, 1; turn < turns; turn++ {
		for k := range s.n {
			i := s.At((from + k) % s.n)
			is := r.turnOf(s.records[i], at)
			if is == turn && takes(i) {
				return i, true
			}
			turns = max(turns, is+1)
		}
	}
	return 0, false
}

// turnOf says in which turn an endpoint is asked: those that r avoids last, before them those that ask to be left
// alone.
func (r *Request) turnOf(rec *Record, now int64) int {
	switch {
	case r.avoids(rec):
		return 2
	case rec.avoidUntil.Load() > now:
		return 1
	}
	return 0
}

// chooseAmong goes through a key's candidates: those that the policy's own bounds let take the request,
// then the others, and last those that were tried before.
func (p *hashed) chooseAmong(s *Snapshot, r *Request, now int64, takes func(i int) bool) (int, bool) {
	for _, pass := range [...]struct{ within, avoided bool }{{true, false}, {false, false}, {false, true}} {
		if pass.avoided && len(r.Avoid) == 0 {
			break
		}
		w := p.table.walk(r.Key)
		for i, ok := w.Next(); ok; i, ok = w.Next() {
			if !s.Available(i) || r.avoids(s.records[i]) != pass.avoided || pass.within && !p.within(s.records[i], r.Key, i, now) {
				continue
			}
			if takes(i) {
				return i, true
			}
		}
	}
	return 0, false
}

// within reports whether endpoint i may have one more request, of that key, by what search goes by.
func (p *hashed) within(rec *Record, key uint64, i int, now int64) bool {
	total := int64(0)
	if p.totals != nil {
		total = p.totals.recent.Load()
	}
	load := rec.InFlight()
	if most, limited := p.limit(rec, key, i, load, total, now, p.shared.learning.Load()); limited {
		return load < most
	}
	return load < p.minCapacity || p.totals == nil || p.bound.Room(load, total, p.weights[i], p.available.Load())
}
