package outlier

import "math"

// A permit is, in one word so that one request at most can take it:
//
//	below 0           taken, at instant -1-p
//	permitDeciding    its result has come; the owner has yet to draw the conclusion
//	permitClosed      the endpoint is not ejected, or not in Soft
//	else              the instant from which it may be taken
const (
	permitClosed   = math.MaxInt64
	permitDeciding = math.MaxInt64 - 1
)

// TryProbe takes the permit to send one real request to the ejected endpoint, if there
// is one at instant now. The request's result, whatever it is, must go to Observe with the
// token: Ignored, for a caller that left, gives the permit back. Prefer requests that
// may be sent again; [Detector.Probe] finds the endpoint and sees to that.
func (h *Host) TryProbe(now int64) (t Token, ok bool) {
	p := h.permit.Load()
	if now < 0 || p < 0 || p > now || p >= permitDeciding {
		return Token{}, false
	}
	taken := -1 - now
	if !h.permit.CompareAndSwap(p, taken) {
		return Token{}, false
	}
	return holding(taken, h.Epoch()), true
}

// observeProbe books the result of a probe. Whoever does not hold the permit any more (it
// took too long, or the endpoint came back meanwhile) is a request like any other.
func (h *Host) observeProbe(f *effect, t Token, now int64, r *rules) (act bool) {
	if t.epoch != h.Epoch() {
		return false
	}
	if !h.permit.CompareAndSwap(t.held(), permitDeciding) {
		return h.observe(f, t.epoch, now, r)
	}
	if f.flags&(runGood|runBad) == 0 {
		if f.flags&waitMore != 0 {
			h.flag(pendProbeLater)
		} else {
			h.flag(pendProbeBack)
		}
		return true
	}
	recovered := h.observe(f, t.epoch, now, r)
	bit := pendProbeBad
	if f.flags&runGood != 0 {
		bit = pendProbeGood
	}
	return h.flag(bit) || recovered
}

// settleProbe draws the conclusion from a probe's result.
func (d *Detector) settleProbe(h *Host, noted uint32, now int64) {
	switch {
	case State(h.state.Load()) != Ejected || h.permit.Load() != permitDeciding:
	case noted&pendProbeBad != 0:
		h.backoff++
		d.permitFrom(h, now+d.probeWait(h.backoff))
	case noted&pendProbeLater != 0:
		d.permitFrom(h, now+d.probeWait(h.backoff))
	case noted&(pendProbeGood|pendProbeBack) != 0:
		d.permitFrom(h, now) // the next one may go at once
	}
}

// probeWait returns the wait before the next probe after so many that failed: base · 2^k up
// to the most, spread in both directions. While many fail at once it does not grow: those that
// are well again are needed.
func (d *Detector) probeWait(k int) int64 {
	r := d.rules
	wait := r.maxBackoff
	if d.shared.distress.Load() {
		k = 0
	}
	if k < 32 && r.backoff <= r.maxBackoff>>k {
		wait = r.backoff << k
	}
	spread := (2*d.uniform() - 1) * r.jitter
	return max(wait+int64(spread*float64(wait)), 0)
}

// loseProbe lets another probe out if the last one is overdue. It counts as failed: an
// endpoint that swallows requests is not well.
func (d *Detector) loseProbe(h *Host, now int64) {
	p := h.permit.Load()
	if State(h.state.Load()) != Ejected || p >= 0 || now-(-1-p) < d.rules.probeTimeout {
		return
	}
	if h.permit.CompareAndSwap(p, permitDeciding) {
		d.settleProbe(h, pendProbeBad, now)
	}
}

// ProbeDue reports whether [Detector.Probe] may find something at instant now for a request
// that is safe (see there). It is one load, for the request path: without ejected
// endpoints it is false.
func (d *Detector) ProbeDue(now int64, safe bool) bool {
	at := d.nextProbe.Load()
	if !safe {
		at = min(at, permitDeciding-d.patience.Load()) + d.patience.Load()
	}
	return at <= now
}

// Probe takes the permit of the ejected endpoint that has waited longest, if one is due,
// and returns the endpoint's index in the list. The request whose token it is has to be
// sent there. safe says that the request may be sent again if it fails, or that
// nobody knows; others are used only if no safe one came within MaxProbeBackoff, so
// that an endpoint that gets nothing else comes back too.
func (d *Detector) Probe(now int64, safe bool) (i int, t Token, ok bool) {
	if d.rules.mode != Soft {
		return 0, Token{}, false
	}
	now = clamp(now)
	latest := now
	if !safe {
		latest -= d.rules.maxBackoff
	}
	for {
		e, found := d.nextPermit()
		if !found || e.at > latest {
			break
		}
		if t, ok = e.host.TryProbe(now); ok { // else somebody was faster
			i = e.host.index
			break
		}
	}
	d.planProbes()
	return i, t, ok
}
