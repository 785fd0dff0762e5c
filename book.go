package evenkeel

import (
	"github.com/evenkeel/evenkeel/outlier"
)

// bookSuccess books the end of nearly every request, and reports whether this is one.
func (k *Pick[T]) bookSuccess(r Result) bool {
	if r.Outcome != Success || r.Status != 0 || k.flags&pickBooked != 0 || k.event > outlier.Succeeded || !k.host.Succeed(k.token) {
		return false
	}
	k.host = nil
	return true
}

// book tells the endpoint's host how the request ended.
func (k *Pick[T]) book(now int64, r Result) {
	h := k.host
	k.host = nil
	event := outlier.EventOfResult(r)
	if event == outlier.Succeeded && k.event != outlier.Ignored {
		event = k.event // by a status that the end does not have
	}
	switch {
	case k.flags&pickBooked != 0 && (r.Outcome == Success || event == outlier.Ignored):
		return
	case event == outlier.Ignored && !k.token.Probe():
		return // a probe's permit has to be given back
	}
	if now == 0 {
		now = k.now() // Done needed none so far
	}
	k.observe(h, event, now)
}

// observe books one event. A failure is rare enough to look at the clock for.
func (k *Pick[T]) observe(h *outlier.Host, event outlier.Event, now int64) {
	if now == 0 && event != outlier.Succeeded {
		now = k.pool.now()
		k.pool.sweepIfLate(now)
	}
	if h.Observe(event, k.token, now) {
		k.pool.act(h, now)
	}
}

// bookEarly tells what the beginning of an answer says. A good one waits for its end, as an answer
// that breaks off is none; a stream's does not, as that may be hours away.
func (k *Pick[T]) bookEarly(now int64, r Result) {
	h := k.host
	if h == nil || r.Outcome == Unknown || k.flags&pickBooked != 0 {
		return
	}
	event := outlier.EventOfResult(r)
	switch {
	case r.Outcome != Success:
		k.host = nil
	case k.flags&pickStream == 0:
		k.event = event
		return
	default:
		k.flags |= pickBooked
	}
	k.observe(h, event, now)
	k.token = k.token.Spent()
}
