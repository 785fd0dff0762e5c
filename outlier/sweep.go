package outlier

import "time"

// softSweep is how often Soft wants to look who fails at once, and who is back.
const softSweep = int64(time.Second)

// Sweep does what is due at instant now, and returns when to call it next at the latest,
// and what changed. Calling it sooner does no harm: rates are looked at once an
// Interval, however often it is called. It is O(n).
func (d *Detector) Sweep(now int64) (next int64, changes []Change) {
	d.begin(now)
	for _, h := range d.hosts {
		d.settle(h)
	}
	d.sweepStarts()
	if d.rules.mode == Soft {
		return d.sweepSoft(), d.end()
	}
	if d.now-d.lastTick >= d.rules.interval {
		d.lastTick = d.now
		if d.rules.mode == Envoy {
			d.sweepEnvoy()
		} else {
			d.sweepA50()
		}
	}
	return d.lastTick + d.rules.interval, d.end()
}

func (d *Detector) sweepSoft() (next int64) {
	d.expire()
	if d.now-d.lastRecent >= softSweep {
		d.lastRecent = d.now
		for _, h := range d.hosts {
			h.recent = [2]tally{h.recent[1], h.tally()}
		}
	}
	next = d.now + softSweep
	for _, h := range d.hosts {
		d.loseProbe(h, d.now)
		if State(h.state.Load()) != Ramping {
			continue
		}
		if left := d.rampLeft(h); left == 0 {
			d.endRamp(h)
		} else {
			next = min(next, d.now+left)
		}
	}
	if d.now-d.lastTick >= d.rules.interval {
		d.lastTick = d.now
		if !d.rules.noRate {
			d.sweepRates()
		}
	}
	return min(next, d.lastTick+d.rules.interval)
}

// interval is what one host did since the last sweep.
type interval struct {
	host      *Host
	good, bad uint64
}

func (v interval) total() uint64 { return v.good + v.bad }

// rate is the success rate in percent; NaN without requests, which is below and above
// nothing.
func (v interval) rate() float64 { return 100 * float64(v.good) / float64(v.total()) }

// swapIntervals returns what each host did since the last call, of both kinds.
func (d *Detector) swapIntervals() (answers, locals []interval) {
	answers = make([]interval, len(d.hosts))
	locals = make([]interval, len(d.hosts))
	for i, h := range d.hosts {
		t := h.tally()
		answers[i].host, locals[i].host = h, h
		answers[i].good, answers[i].bad = parts(t.answers, h.window.answers)
		locals[i].good, locals[i].bad = parts(t.locals, h.window.locals)
		h.window, h.windowFrom = t, d.now
	}
	return answers, locals
}
