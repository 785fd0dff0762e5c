package outlier

import "time"

const (
	// Above this share of endpoints that fail at once it is not they who are to blame: the
	// load is too high, or this client's own machine or network. Ejecting for timeouts
	// then moves the load to fewer and fewer.
	distressPercent = 40
	// distressLeast: one endpoint alone is no mass, however few there are.
	distressLeast = 2
	// failingRun in a row, lately, make an endpoint one that fails.
	failingRun = 2
	failingFor = int64(defaultInterval)
	// lateShare: where the load is too high all have some timeouts, and few have nothing else.
	lateShare = 10 // one in
	// distressHold is how long it lasts from the last sign on: queues that are too long
	// everywhere run over one after the other, with pauses.
	distressHold = int64(defaultInterval)
	// distressRenew is how often it is worth a look at all endpoints again.
	distressRenew = int64(time.Second)
)

// distressed decides whether so many fail at once that timeouts do not eject, and tells the
// request path. When that begins, those that were ejected for timeouts just before come back:
// the first of many cannot be told from a single one.
func (d *Detector) distressed() bool {
	if d.rules.mode == Soft && d.distressUntil-d.now <= distressHold-distressRenew && d.massFails() {
		d.distressUntil = d.now + distressHold
	}
	is := d.rules.mode == Soft && d.now < d.distressUntil
	if was := d.shared.distress.Swap(is); is && !was {
		for _, h := range d.hosts {
			if h.forTimeouts && State(h.state.Load()) == Ejected && d.now-h.ejectedAt <= distressHold {
				h.spared++
				d.pardon(h)
			}
		}
	}
	return is
}

func (d *Detector) massFails() bool {
	failing, usable := 0, 0
	for _, h := range d.hosts {
		if h.standing == Usable {
			usable++
			if d.failsNow(h) {
				failing++
			}
		}
	}
	return failing >= distressLeast && 100*failing > distressPercent*usable
}

// failsNow: it is out, or has just failed twice in a row, or half of what it answered in
// the last one to two seconds, or let a tenth of that time out.
func (d *Detector) failsNow(h *Host) bool {
	if State(h.state.Load()) == Ejected {
		return true
	}
	if d.now-h.lastFailure.Load() <= failingFor && uint32(h.run.Load())&runCount >= failingRun {
		return true
	}
	t := h.tally()
	good, bad := parts(t.answers, h.recent[0].answers)
	_, late := parts(t.locals, h.recent[0].locals)
	return bad+late >= failingRun && bad+late >= good || late >= failingRun && lateShare*late >= good+bad+late
}

// pardon takes an ejection back, as if it had not been.
func (d *Detector) pardon(h *Host) {
	h.permit.Store(permitClosed)
	h.pending.Store(0)
	h.returnedAt = d.now
	h.backoff = 0
	d.setRun(h, 0)
	d.restartWindow(h)
	d.move(h, Available, Pardoned)
}
