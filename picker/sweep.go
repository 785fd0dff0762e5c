package picker

import "slices"

// Sweep does what must happen now and then rather than per request, at instant now:
// it takes the median latency of the members, from which cold endpoints start; it
// stops believing requests in flight on endpoints that have finished none for
// [LeakAfter] and hold no stream; and it forgets endpoints that were removed longer
// than [Tombstone] ago. It costs O(n) and should run about once a second.
func (g *Registry) Sweep(now int64) {
	l := g.shared.learning.Load()
	lgs := g.scratch[:0]
	for id, r := range g.records {
		if !r.member {
			if now-r.removedAt >= int64(Tombstone) {
				delete(g.records, id)
			}
			continue
		}
		if lg, ok := r.peak.Log2(now, l.peak); ok {
			lgs = append(lgs, lg)
		}
		r.disbelieve(now)
		if r.marks.Load()&markAvoided != 0 && r.avoidUntil.Load() <= now {
			r.marks.And(^uint32(markAvoided))
			if r.avoidUntil.Load() > now { // a hint came in between
				r.marks.Or(markAvoided)
			}
		}
	}
	g.scratch = lgs
	if len(lgs) > 0 {
		slices.Sort(lgs)
		g.shared.median.Store(lgs[(len(lgs)-1)/2])
	}
}

// disbelieve applies the rule for picks that were never done.
func (r *Record) disbelieve(now int64) {
	ended, open := r.ended(), r.open()
	if r.leaked.Load() > open { // a Done crossed an earlier sweep
		r.leaked.Store(max(open, 0))
	}
	if r.leaked.Load() == 0 && r.marks.Load()&markLeaked != 0 {
		r.marks.And(^uint32(markLeaked))
	}
	if ended != r.sweptEnded || open <= 0 || r.quietSince == 0 || r.streams.Load() > 0 {
		r.sweptEnded, r.quietSince = ended, max(now, 1)
		return
	}
	if now-r.quietSince >= int64(LeakAfter) {
		r.leakBefore.Store(now)
		r.leaked.Store(open)
		r.mark(markLeaked)
		r.quietSince = max(now, 1) // later picks get their own ten minutes
	}
}
