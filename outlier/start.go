package outlier

import "time"

// awayLong is how long a member has to be away for its return to be a slow start, where nothing else says
// that it is one. A connection that broke, or a list that misses an endpoint for a moment, is
// repaired within a few seconds, by the first or second attempt; a process that was started anew, whose caches are
// empty, commonly takes longer to be back.
const awayLong = int64(10 * time.Second)

// start is a member's slow start; see [Detector.SetSlowStart]. It needs the owner's lock.
type start struct {
	ramping bool  // it is under way, and began at from
	due     bool  // no: it begins with the next sweep, as its instant is not known exactly
	away    bool  // it cannot be used, or is not in the list, since since
	earned  bool  // its return is a slow start however soon it comes
	from    int64 // instant
	since   int64 // instant
}

func (s *start) shift(delta int64) {
	if s != nil {
		s.from += delta
		s.since += delta
	}
}

// startRules are those of a [Ramp].
type startRules struct {
	window            int64
	aggression, floor float64
}

func (r *startRules) factor(s *start, now int64) float64 {
	elapsed := now - s.from
	if s.due {
		elapsed = 0
	}
	return SlowStart(time.Duration(elapsed), time.Duration(r.window), r.aggression, r.floor)
}

// under reports whether the slow start is under way at instant now.
func (r *startRules) under(s *start, now int64) bool {
	return r != nil && s != nil && s.ramping && (s.due || now-s.from < r.window)
}

// SetSlowStart gives members a slow start of that form, in all modes, each from its own return: when it joins
// others, when it passes its checks again, when it is no longer drained, when it can be used
// again after ten seconds in which it could not, or was not in the list, and in Soft when an ejection ends. In Envoy and A50
// the end of an ejection is none, as theirs is not. What is there first has none, nor what is there when this
// is called. nil, the default, ends all of them; c.Window below 0 is nil. It is part of [Detector.RampFactor].
func (d *Detector) SetSlowStart(c *Ramp, now int64) {
	d.advance(now)
	d.rampsVersion = 0 // whoever is counted
	if c == nil || c.Window < 0 {
		if d.slow != nil {
			d.slow = nil
			clear(d.left)
			for _, h := range d.hosts {
				h.start = nil
			}
		}
		return
	}
	r := startRules{nanos(c.Window, defaultRamp), c.Aggression, c.Floor.or(defaultFloor) / 100}
	if d.slow != nil {
		*d.slow = r
		return
	}
	d.slow, d.left = &r, map[string]*start{}
	for _, h := range d.hosts {
		d.trackFirst(h)
	}
}

// trackFirst begins to look at a member that was there first. One that cannot be used for long from the
// beginning has its slow start when it can.
func (d *Detector) trackFirst(h *Host) {
	h.start = &start{away: h.standing != Usable, since: d.now}
}

// trackJoin begins to look at a member that is new in the list; first if there was nobody before.
func (d *Detector) trackJoin(h *Host, first bool) {
	switch s := d.left[h.id]; {
	case d.slow == nil:
	case s != nil:
		delete(d.left, h.id)
		h.start = s
		if d.now-s.since >= awayLong {
			s.earned = true
		}
		if h.standing == Usable {
			d.returned(h, false)
		}
	case first:
		d.trackFirst(h)
	default:
		h.start = &start{away: true, earned: true, since: d.now}
		if h.standing == Usable {
			d.returned(h, false)
		}
	}
}

// trackLeave keeps what is known of a member that leaves, for as long as it matters.
func (d *Detector) trackLeave(h *Host) {
	s := h.start
	if s == nil {
		return
	}
	h.start = nil
	if !s.away {
		s.away, s.since = true, d.now
	}
	d.left[h.id] = s
}

// trackStanding notes a member's new standing, of which the instant may be some time ago.
func (d *Detector) trackStanding(h *Host, from Standing) {
	s := h.start
	switch {
	case s == nil || h.standing == from:
	case h.standing == Usable:
		d.returned(h, true)
	default:
		if !s.away {
			s.away, s.since = true, d.now
		}
		s.earned = s.earned || h.standing == Failing || h.standing == Drained
	}
}

// returned begins the slow start of a member that is back, if it is one.
func (d *Detector) returned(h *Host, due bool) {
	s := h.start
	if s.earned || s.away && d.now-s.since >= awayLong {
		s.ramping, s.due, s.from = true, due, d.now
	}
	s.away, s.earned = false, false
}

// trackRelease begins the slow start of a member whose ejection ends.
func (d *Detector) trackRelease(h *Host, why Reason) {
	if s := h.start; s != nil && why != Reconfigured {
		s.ramping, s.due, s.from = true, false, d.now
	}
}

// sweepStarts begins those that are due, ends those that are over, and forgets who left long ago.
func (d *Detector) sweepStarts() {
	if d.slow == nil {
		return
	}
	for _, h := range d.hosts {
		if s := h.start; s.due {
			s.due, s.from = false, d.now
		} else {
			s.ramping = d.slow.under(s, d.now)
		}
	}
	d.forgetLeft(len(d.hosts))
}

// forgetLeft drops what no longer matters. Of a list whose IDs are others each time there is not to be more
// than of the members: then all are taken for new.
func (d *Detector) forgetLeft(members int) {
	for id, s := range d.left {
		if d.now-s.since >= awayLong {
			delete(d.left, id)
		}
	}
	if len(d.left) > rememberAtMost*max(members, 1) {
		clear(d.left)
	}
}

// mostRamp reports whether slow starts and ramps are left out at instant now: a single endpoint has nobody to
// leave requests to, and when more than half of those that may be picked are on their way back, they would
// cancel out or the others would get too much.
func (d *Detector) mostRamp(now int64) bool {
	if d.rampsAt == now && d.rampsVersion == d.version {
		return d.rampsMost
	}
	open, ramping := 0, 0
	for _, h := range d.hosts {
		state := State(h.state.Load())
		if h.standing != Usable || state == Ejected {
			continue
		}
		open++
		if state == Ramping || d.slow.under(h.start, now) {
			ramping++
		}
	}
	d.rampsAt, d.rampsVersion, d.rampsMost = now, d.version, open <= 1 || 2*ramping > open
	return d.rampsMost
}
