package picker

import "time"

// Bounds of how long an endpoint is avoided after an Overload. The cap keeps a
// mistaken or hostile hint from taking an endpoint out for long.
const (
	avoidDefault = time.Second
	avoidMax     = 30 * time.Second
)

// avoid keeps picks off the endpoint until its hint, spread by ±10 % so that clients
// do not all come back at once. A later instant is never shortened.
func (r *Record) avoid(now int64, hint time.Duration) {
	now = r.shared.at(now)
	if hint <= 0 {
		hint = avoidDefault
	}
	hint = min(hint, avoidMax)
	spread := int64(hint / 10)
	hint += time.Duration(int64(r.shared.uint64()%uint64(2*spread+1)) - spread)
	until := now + int64(hint)
	for {
		old := r.avoidUntil.Load()
		if old >= until || r.avoidUntil.CompareAndSwap(old, until) {
			break
		}
	}
	r.mark(markAvoided)
	r.startRamp(r.avoidUntil.Load())
}

// AvoidFor returns how much longer the endpoint asked not to be used, 0 if it did
// not or the time is over.
func (r *Record) AvoidFor(now int64) time.Duration {
	return time.Duration(max(r.avoidUntil.Load()-now, 0))
}

// leftAlone reports whether the endpoint, of which markAvoided is set, asks not to be used at instant now.
func (r *Record) leftAlone(now int64) bool { return r.avoidUntil.Load() > r.shared.at(now) }

// passedOver reports whether an endpoint with those marks is to be left out of a choice that was made
// without a look at them.
func (r *Record) passedOver(marks uint32, now int64) bool {
	return marks&markAvoided != 0 && r.leftAlone(now) || marks&markShare != 0 && r.HeldBack()
}

// leftAloneCost is what an endpoint costs more that asks to be left alone, by a signal that does not know of
// that: more than any cost but "never". Among several the signal decides as ever.
const (
	leftAloneCost = 2 * mostCost
	neverCost     = 2 * leftAloneCost
	// seemsLeftAlone is below leftAloneCost by more than the log of any weight.
	seemsLeftAlone = leftAloneCost - mostCost/2
)

// SetClock tells the registry a clock. Picks of policies that need no time, and their results, come with
// the instant 0; where one matters all the same, because an endpoint asks to be left alone, the clock is read
// then. Without it, that is the instant of the last sweep. Call it before the first pick.
func (g *Registry) SetClock(now func() int64) { g.shared.clock = now }

// at returns now, or if that is 0 the present instant.
func (s *shared) at(now int64) int64 {
	switch {
	case now != 0:
		return now
	case s.clock != nil:
		return s.clock()
	}
	return s.swept.Load()
}

// overlooks returns the marks that a Picker does not look at, so that whoever asks it has to: of an endpoint
// that is held back, and of one that asks to be left alone.
func overlooks(p Picker) uint32 {
	switch p.(type) {
	case *roundRobin, random, *weightedRandom, *stride, *turns, *smooth:
		return markShare | markAvoided
	case p2cInFlight: // may have drawn nobody else
		return markAvoided
	}
	return 0
}

// insteadOf finds another endpoint than i, which p has chosen and which is to be passed over: by the rule if
// it can, else one from a random position on. If nobody is found it is one of those that the rule has
// drawn, each as likely as the others: were it always i, a rotation of which each pick takes several steps
// would come round to some of them alone.
func (s *Snapshot) insteadOf(p Picker, i int, r Request, now int64) int {
	if s.n == 1 {
		return i
	}
	at, marks := s.shared.at(now), overlooks(p)
	random, one := s.Uint64(), i
	for try := range uint64(avoidTries) {
		j := p.Pick(s, r, now)
		if uint(j) >= uint(len(s.records)) || r.avoids(s.records[j]) {
			continue
		}
		rec := s.records[j]
		if j != i && !rec.passedOver(rec.marks.Load()&marks, at) {
			return j
		}
		if random = mix(random); uniformTo(random, try+2) == 0 {
			one = j
		}
	}
	if j := s.anyBut(i, r, at); j != i {
		return j
	}
	return one
}

// anyBut returns the first other endpoint than i, from a random position, that is not to be passed over; i
// itself if there is none within reach. When a whole fleet asks to be left alone, nobody is to look at thousands
// for every request.
func (s *Snapshot) anyBut(i int, r Request, now int64) int {
	from := uniform(uint32(s.Uint64()>>32), s.n)
	for k := range min(s.n, furtherScan) {
		j := s.At((from + k) % s.n)
		if rec := s.records[j]; j != i && !r.avoids(rec) && !rec.passedOver(rec.marks.Load(), now) {
			return j
		}
	}
	return i
}
