package httpclient

import "time"

const (
	// sweepEvery is the time between two rounds over all targets. It is also the time from
	// a target's first list to its first sweep: until then a pool takes endpoints that
	// nobody has tried for as good as the best answer, and too early a sweep would end
	// that before there are answers.
	sweepEvery = time.Second
	// newsAtOnce is how many new lists may wait for the sweeper. More than that wait for
	// its next round.
	newsAtOnce = 64
)

// sweeper does the housekeeping of a fleet, in one goroutine with one timer. Once in
// sweepEvery it goes over all targets. Those that want to be swept at other instants, as
// a pool does for a while after a new list, are swept in between.
type sweeper struct {
	fleet *fleet
	round time.Time            // when the next one is due
	apart map[*group]time.Time // when those are due that the next round is not for
}

// sweep runs until the fleet is closed.
func (f *fleet) sweep() {
	s := sweeper{fleet: f, round: time.Now().Add(sweepEvery), apart: map[*group]time.Time{}}
	timer := time.NewTimer(sweepEvery)
	defer timer.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case g := <-f.news:
			s.newList(g, time.Now())
		case <-timer.C:
		}
		timer.Reset(time.Until(s.sweep(time.Now())))
	}
}

// newList takes note that g has a new list.
func (s *sweeper) newList(g *group, now time.Time) {
	if g.swept {
		s.apart[g] = now
	} else if _, noted := s.apart[g]; !noted {
		s.apart[g] = now.Add(sweepEvery)
	}
}

// sweep does what is due at now, and returns when the next is.
func (s *sweeper) sweep(now time.Time) (next time.Time) {
	if !now.Before(s.round) {
		s.round = now.Add(sweepEvery)
		for _, g := range *s.fleet.groups.Load() {
			switch _, apart := s.apart[g]; {
			case apart:
			case g.swept:
				s.one(g)
			case g.listed.Load(): // there was too much news
				s.newList(g, now)
			}
		}
		s.fleet.evictIdle(now)
	}
	next = s.round
	for g, due := range s.apart {
		if !due.After(now) {
			due = s.one(g)
		}
		if due.Before(next) {
			next = due
		}
	}
	return next
}

// one sweeps a target, and returns when it wants the next. Soon that is no sooner than
// the round, of a target that was evicted too.
func (s *sweeper) one(g *group) (due time.Time) {
	g.swept = true
	due = g.sweep(time.Now()) // of many targets the last would have an old instant
	if due.Before(s.round) {
		s.apart[g] = due
	} else {
		delete(s.apart, g)
	}
	return due
}
