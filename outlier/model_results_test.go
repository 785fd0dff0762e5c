package outlier_test

import "github.com/evenkeel/evenkeel/outlier"

// book says what an event is in the model's mode.
func (m *model) book(e outlier.Event) entry {
	if e > outlier.Unclear {
		return entry{}
	}
	switch m.mode {
	case outlier.Soft:
		switch e {
		case outlier.Succeeded, outlier.CallerFault, outlier.Unimplemented:
			return entry{v: vGood}
		case outlier.Failed, outlier.GatewayFailed, outlier.Unreached:
			return entry{v: vBad}
		case outlier.TimedOut:
			return entry{v: vLate}
		case outlier.Throttled, outlier.Shed:
			return entry{v: vLater}
		}
	case outlier.Envoy:
		switch e {
		case outlier.Succeeded, outlier.CallerFault, outlier.Throttled, outlier.Unclear:
			return entry{v: vGood}
		case outlier.Failed, outlier.Unimplemented:
			return entry{v: vBad}
		case outlier.GatewayFailed, outlier.Shed:
			return entry{v: vBad, gateway: true}
		case outlier.Unreached, outlier.TimedOut:
			if m.split {
				return entry{v: vLBad}
			}
			return entry{v: vBad, gateway: true}
		case outlier.Connected:
			if m.split {
				return entry{v: vLGood}
			}
		}
	default:
		switch e {
		case outlier.Succeeded:
			return entry{v: vGood}
		case outlier.Ignored, outlier.Connected:
		default:
			return entry{v: vBad}
		}
	}
	return entry{}
}

// observe books and acts in one.
func (m *model) observe(h *mHost, e outlier.Event, t mToken) {
	if t.epoch != h.epoch {
		return
	}
	b := m.book(e)
	if m.mode == outlier.Soft {
		m.observeSoft(h, b, t)
		return
	}
	if b.v == vNone {
		return
	}
	h.log = append(h.log, b)
	if m.mode != outlier.Envoy || !h.member {
		return
	}
	bad5, _ := h.tail(h.run, anyBad, anyGood)
	badGW, _ := h.tail(h.gw, func(e entry) bool { return e.gateway },
		func(e entry) bool { return e.v == vGood || e.v == vBad && !e.gateway })
	badL, _ := h.tail(h.local, func(e entry) bool { return e.v == vLBad }, func(e entry) bool { return e.v == vLGood })
	hit5, hitGW, hitL := b.v == vBad && bad5 == 5, b.gateway && badGW == 5, b.v == vLBad && badL == 5
	if !h.out {
		if hit5 {
			h.run = len(h.log)
		}
		if hitGW {
			h.gw = len(h.log)
		}
		if hitL {
			h.local = len(h.log)
		}
		if hit5 || hitGW || hitL {
			m.eject(h)
		}
	}
	if hit5 || hitGW || hitL {
		m.decide()
	}
}

func (m *model) observeSoft(h *mHost, b entry, t mToken) {
	probe := t.serial != 0 && t.serial == h.holder && h.out
	switch {
	case probe && (b.v == vNone || b.v == vLater):
		h.holder = 0
		h.probeAt = m.now
		if b.v == vLater {
			h.probeAt += m.wait(h.failed)
		}
		m.decide()
	case b.v == vNone || b.v == vLater:
	case h.out:
		h.goodRun++
		if b.v != vGood {
			h.goodRun = 0
		}
		if probe {
			h.holder, h.probeAt = 0, m.now
			if b.v != vGood {
				h.failed++
				h.probeAt = m.now + m.wait(h.failed)
			}
		}
		if h.goodRun >= 3 {
			m.back(h)
			h.goodRun = 0
		}
		if probe || !h.out {
			m.decide()
		}
	default:
		m.observeIn(h, b)
	}
}

func (m *model) observeIn(h *mHost, b entry) {
	b.ignored = b.v == vLate && m.distress
	h.log = append(h.log, b)
	if b.v != vGood {
		h.lastFail = m.now
	}
	limit := 5
	if h.ramping {
		limit = 2
	}
	n, late := h.tail(h.run, anyBad, anyGood)
	if b.v == vGood || b.ignored || n < limit {
		return
	}
	spare := late && m.guard()
	h.run = len(h.log)
	if !spare {
		before := h.epoch
		m.eject(h)
		h.forLate = h.epoch != before && late
	}
	m.decide()
}

// probe hands out a permit.
func (m *model) probe(h *mHost) (mToken, bool) {
	if m.mode != outlier.Soft || !h.out || h.holder != 0 || m.now < h.probeAt {
		return mToken{}, false
	}
	m.serial++
	h.holder, h.taken = m.serial, m.now
	return mToken{epoch: h.epoch, serial: m.serial}, true
}

func (m *model) check(h *mHost) {
	if m.mode == outlier.Envoy && h.out && h.standing != outlier.Failing {
		m.back(h)
	}
	m.settle()
}

func (m *model) sweep() {
	if m.mode == outlier.Soft {
		m.sweepSoft()
	} else if m.now-m.tick >= 10*second {
		m.tick = m.now
		m.sweepTimed()
	}
	m.settle()
}

func (m *model) sweepSoft() {
	if m.now-m.rec >= second {
		m.rec = m.now
		for _, h := range m.hosts {
			h.rec0, h.rec1 = h.rec1, len(h.log)
		}
	}
	for _, h := range m.hosts {
		if h.out && h.holder != 0 && m.now-h.taken >= 30*second {
			h.holder = 0
			h.failed++
			h.probeAt = m.now + m.wait(h.failed)
		}
		if h.ramping && m.now-h.rampAt >= 10*second {
			h.ramping, h.failed = false, 0
		}
	}
	if m.now-m.tick >= 10*second {
		m.tick = m.now
		m.rates()
	}
}
