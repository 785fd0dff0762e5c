package picker

import "math/bits"

// vtime is a point in a schedule's own time, or a span of it, in units of 2^-64. It wraps
// around after 2^64; two points are compared by their signed difference, so that
// nothing happens then.
type vtime struct{ whole, frac uint64 }

func (t vtime) plus(u vtime) vtime {
	frac, carry := bits.Add64(t.frac, u.frac, 0)
	return vtime{t.whole + u.whole + carry, frac}
}

func (t vtime) minus(u vtime) vtime {
	frac, borrow := bits.Sub64(t.frac, u.frac, 0)
	return vtime{t.whole - u.whole - borrow, frac}
}

func (t vtime) before(u vtime) bool { return int64(t.minus(u).whole) < 0 }

// times returns t·w, for products below 2^64.
func (t vtime) times(w uint64) vtime {
	hi, lo := bits.Mul64(t.frac, w)
	return vtime{t.whole*w + hi, lo}
}

// over returns t/w, rounded down.
func (t vtime) over(w uint64) vtime {
	frac, _ := bits.Div64(t.whole%w, t.frac, w)
	return vtime{t.whole / w, frac}
}

// schedule is a queue of turns, the earliest deadline first. An endpoint of weight w has
// w turns in each unit of time. Turn j is due at base + floor(j·2^64/w): computed
// from whole numbers rather than added up, so that equal fractions tie exactly and
// nothing drifts, however long it runs. Unequal fractions never tie while weights are
// below 2^32. Ties go to whoever got into the queue first.
//
// An endpoint of weight 0 has no turns. A schedule is not safe for concurrent use.
type schedule struct {
	turns []turn  // by member
	queue []int32 // the members that are waiting for their turn, as a binary heap
	now   vtime   // when the latest turn taken was due
	order uint64  // how many turns ever got into the queue
}

// turn is an endpoint's next turn.
type turn struct {
	due    vtime
	order  uint64 // when it got into the queue
	base   vtime
	j      uint64 // below weight
	weight uint64
	queued bool
	paused vtime // when it left the queue
}

func newSchedule(weights []uint64) schedule {
	s := schedule{turns: make([]turn, len(weights)), queue: make([]int32, 0, len(weights))}
	for i, w := range weights {
		s.turns[i] = turn{weight: w}
	}
	return s
}

// plan makes i's next turn due at base + j/weight, and puts it behind all others that are
// due then.
func (s *schedule) plan(i int, base vtime, j uint64) {
	t := &s.turns[i]
	t.base, t.j, t.paused, t.order = base, 0, s.now, s.order
	s.order++
	t.putOff(j)
}

// putOff makes t due steps turns later.
func (t *turn) putOff(steps uint64) {
	t.j += steps
	if t.j >= t.weight {
		t.base.whole += t.j / t.weight
		t.j %= t.weight
	}
	t.due = t.base.plus(vtime{whole: t.j}.over(t.weight))
}

// keep gives i the turn that member k has in old, a schedule whose time s continues. If
// the weight has changed, the part of a period that is left stays the same.
func (s *schedule) keep(i int, old *schedule, k int) {
	t, was := &s.turns[i], &old.turns[k]
	if t.weight == was.weight {
		*t = *was
		if t.queued {
			t.queued, t.paused = false, s.now
		}
		return
	}
	wait := old.wait(k).times(was.weight).over(t.weight)
	s.plan(i, s.now.plus(wait), 0)
	t.order = was.order
}

// take returns who is first in the queue. The present is when its turn was due, and its
// next one comes steps turns later.
func (s *schedule) take(steps func(i int) uint64) int {
	i := int(s.queue[0])
	t := &s.turns[i]
	if s.now.before(t.due) {
		s.now = t.due
	}
	t.putOff(steps(i))
	t.order = s.order
	s.order++
	s.down(0)
	return i
}

// resume puts off the turn of an endpoint that is not in the queue by the time that has
// passed since it was, so that it has neither lost its place nor turns to catch up
// with.
func (s *schedule) resume(t *turn) {
	if !t.queued {
		gap := s.now.minus(t.paused)
		t.base, t.due, t.paused = t.base.plus(gap), t.due.plus(gap), s.now
	}
}

// wait returns how long it is until i's turn, 0 if that is overdue.
func (s *schedule) wait(i int) vtime {
	t := &s.turns[i]
	from := s.now
	if !t.queued {
		from = t.paused
	}
	if t.due.before(from) {
		return vtime{}
	}
	return t.due.minus(from)
}

// setQueue makes the queue consist of the members that in reports.
func (s *schedule) setQueue(in func(i int) bool) {
	s.queue = s.queue[:0]
	for i := range s.turns {
		t := &s.turns[i]
		if t.weight > 0 && in(i) {
			s.resume(t)
			t.queued = true
			s.queue = append(s.queue, int32(i))
		} else if t.queued {
			t.queued, t.paused = false, s.now
		}
	}
	for k := len(s.queue)/2 - 1; k >= 0; k-- {
		s.down(k)
	}
}

// sooner reports whether a's turn comes before b's.
func (s *schedule) sooner(a, b int32) bool {
	x, y := &s.turns[a], &s.turns[b]
	if x.due != y.due {
		return x.due.before(y.due)
	}
	return int64(x.order-y.order) < 0
}

// down restores the order of the queue after the turn at place k was put off.
func (s *schedule) down(k int) {
	i := s.queue[k]
	for {
		c := 2*k + 1
		if c >= len(s.queue) {
			break
		}
		if c+1 < len(s.queue) && s.sooner(s.queue[c+1], s.queue[c]) {
			c++
		}
		if !s.sooner(s.queue[c], i) {
			break
		}
		s.queue[k] = s.queue[c]
		k = c
	}
	s.queue[k] = i
}
