package outlier

import "math"

// tryEject ejects a host if the cap allows it and chance enforces it, in that order.
// It reports whether it did.
func (d *Detector) tryEject(h *Host, why Reason, enforce float64) bool {
	if State(h.state.Load()) == Ejected {
		return false // by another detector: one ejection, one multiplier
	}
	if !h.member {
		return false // what fails while it leaves says little of its return
	}
	if !d.capAllows(h) {
		h.capped++
		return false
	}
	if !d.enforced(enforce) {
		h.unenforced++
		return false
	}
	d.eject(h, why)
	return true
}

// enforced draws. Verdicts that are always or never enforced draw nothing.
func (d *Detector) enforced(percent float64) bool {
	return percent >= 100 || percent > 0 && 100*d.uniform() < percent
}

// capAllows reports whether one more may be out.
func (d *Detector) capAllows(h *Host) bool {
	c := d.census()
	out, of := c.out, c.total
	if d.rules.mode == Soft { // others take no load anyway
		out, of = c.usableOut, c.usable
		if h.standing != Usable || of <= 1 {
			return false
		}
	}
	switch {
	case h.standing == Drained:
		return false
	case d.rules.mode == A50:
		return 100*float64(out) < d.rules.cap*float64(of)
	}
	return 100*float64(out+1) <= d.rules.cap*float64(of) || d.rules.oneAtAll && out == 0
}

func (d *Detector) eject(h *Host, why Reason) {
	again := State(h.state.Load()) == Ramping // it was believed well, and was not
	flags := uint64(0)
	if d.rules.mode == Soft {
		flags = runOut
	}
	// The epoch first: from here on results of earlier requests teach nothing.
	h.run.Store(uint64(h.Epoch()+1)<<epochBit | flags)
	h.gatewayRun.Store(0)
	h.localRun.Store(0)
	h.reason = why
	h.ejectedAt = d.now
	h.hasRate, h.forTimeouts = false, false
	if d.rules.mode == Soft {
		h.backoff++
		if !again {
			h.backoff = 0
		}
		d.permitFrom(h, d.now+d.probeWait(h.backoff))
	} else {
		d.raise(h)
		h.sentence = d.sentenceOf(h)
		if d.rules.ejectJitter > 0 {
			h.sentence += int64(d.uniform() * float64(d.rules.ejectJitter))
		}
	}
	d.move(h, Ejected, why)
}

// raise makes the next ejection longer. Envoy's stops growing once it has no effect, so that it
// does not take long to decay.
func (d *Detector) raise(h *Host) {
	r := d.rules
	if r.mode == A50 && h.multiplier < math.MaxInt32 ||
		r.mode == Envoy && float64(r.base)*float64(h.multiplier) < float64(r.max+r.base) {
		h.multiplier++
	}
}

// sentenceOf is min(base × multiplier, max).
func (d *Detector) sentenceOf(h *Host) int64 {
	if float64(d.rules.base)*float64(h.multiplier) >= float64(d.rules.max) {
		return d.rules.max
	}
	return d.rules.base * int64(h.multiplier)
}

// bringBack ends an ejection.
func (d *Detector) bringBack(h *Host, why Reason) {
	h.permit.Store(permitClosed)
	h.gatewayRun.Store(0)
	h.localRun.Store(0)
	h.pending.Store(0)
	h.returnedAt = d.now
	d.setRun(h, 0)
	if d.rules.mode != Soft {
		d.move(h, Available, why)
		return
	}
	d.restartWindow(h)
	d.trackRelease(h, why)
	if !d.startRamp(h, why) {
		h.backoff = 0
		d.move(h, Available, why)
	}
}

// restartWindow forgets what was counted so far.
func (d *Detector) restartWindow(h *Host) {
	t := h.tally()
	h.window, h.windowFrom = t, d.now
	h.recent = [2]tally{t, t}
	h.hasRate = false
}
