package outlier

import (
	"math"
	"time"
)

// SlowStart returns the part of its weight, from floor to 1, that an endpoint gets when it
// has been back for elapsed: max(floor, (max(1 ms, elapsed) / window)^(1/aggression)), as
// in Envoy's slow start, and 1 from window on. A window of 0 or less is none. An
// aggression that is not above 0 counts as 1, as it does in Envoy.
func SlowStart(elapsed, window time.Duration, aggression, floor float64) float64 {
	if elapsed >= window {
		return 1
	}
	if !(aggression > 0) {
		aggression = 1
	}
	part := float64(max(elapsed, time.Millisecond)) / float64(window)
	return min(max(floor, math.Pow(part, 1/aggression)), 1)
}

// RampFactor returns the part of its weight that the member with that index gets at
// instant now: below 1 while it has a slow start, or where there are none ([Detector.SetSlowStart]) while it is
// ramping, unless it is the only usable one, or more
// than half of them are on their way back in either manner, where ramps would cancel out or leave too little. Ask
// at each sweep, not on each request.
func (d *Detector) RampFactor(i int, now int64) float64 {
	h := d.Host(i)
	if h == nil || d.slow != nil && d.mostRamp(now) {
		return 1
	}
	factor := 1.0
	if h.standing == Usable && d.slow.under(h.start, now) {
		factor = d.slow.factor(h.start, now)
	}
	if d.slow != nil || State(h.state.Load()) != Ramping {
		return factor
	}
	if c := d.census(); c.usable <= 1 || 2*c.usableRamping > c.usable {
		return factor
	}
	r := d.rules
	return SlowStart(time.Duration(now-h.rampFrom), time.Duration(r.rampWindow), r.rampAggression, r.rampFloor)
}

// Ramps reports whether the member with that index is ramping or has a slow start, whatever its factor is.
func (d *Detector) Ramps(i int, now int64) bool {
	h := d.Host(i)
	return h != nil && (State(h.state.Load()) == Ramping || d.slow.under(h.start, now))
}

// startRamp reports whether there is a ramp; an ejected host's begins with its return. Where many
// fail at once, those that are well again are needed; in a panic they have their full share already.
func (d *Detector) startRamp(h *Host, why Reason) bool {
	if d.rules.mode != Soft || d.rules.rampWindow == 0 ||
		State(h.state.Load()) == Ejected && why == RampBegun {
		return false
	}
	if why != RampBegun && (d.panicking || d.shared.distress.Load()) {
		return false
	}
	h.rampFrom = d.now
	h.run.Or(runRamp)
	d.move(h, Ramping, why)
	return true
}

// endRamp: now it is believed well.
func (d *Detector) endRamp(h *Host) {
	h.backoff = 0
	h.run.And(^uint64(runRamp))
	d.move(h, Available, RampOver)
}

// rampLeft returns how much of its ramp a host has before it, 0 if it has none.
func (d *Detector) rampLeft(h *Host) int64 {
	if State(h.state.Load()) != Ramping {
		return 0
	}
	return max(h.rampFrom+d.rules.rampWindow-d.now, 0)
}
