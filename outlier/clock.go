package outlier

import "time"

const (
	maxGap = int64(time.Hour)
	// maxNow keeps sums of instants and waits from overflowing.
	maxNow = int64(1) << 62
)

func clamp(now int64) int64 { return min(max(now, 0), maxNow) }

// advance takes the time forward. Only differences count: a clock that goes back counts as one
// that stood still, and a gap of more than an hour as an hour. All instants that are kept
// move along, so that neither freezes an ejection nor ends all of them at once.
func (d *Detector) advance(now int64) {
	now = clamp(now)
	gap := now - d.now
	switch {
	case gap < 0:
		d.shift(gap)
		d.requeue()
	case gap > maxGap:
		d.shift(gap - maxGap)
		d.requeue()
	}
	d.now = now
}

// shift moves every instant by delta.
func (d *Detector) shift(delta int64) {
	d.lastTick += delta
	d.lastRecent += delta
	d.distressUntil += delta
	for _, h := range d.hosts {
		h.shift(delta, d.now+delta)
	}
	for _, h := range d.gone {
		h.shift(delta, d.now+delta)
	}
	for _, s := range d.left {
		s.shift(delta)
	}
	d.rampsVersion = 0
}

func (h *Host) shift(delta, now int64) {
	for _, at := range []*int64{&h.ejectedAt, &h.returnedAt, &h.rampFrom, &h.removedAt, &h.windowFrom, &h.rateAt} {
		*at += delta
	}
	h.start.shift(delta)
	h.lastFailure.Add(delta)
	switch p := h.permit.Load(); {
	case p >= permitDeciding:
	case p < 0:
		// Its holder cannot be told. Its result will count as any other's.
		h.permit.CompareAndSwap(p, max(now, 0))
	default:
		h.permit.CompareAndSwap(p, max(p+delta, 0))
	}
}
