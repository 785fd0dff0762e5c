package outlier

import "time"

// MayPick reports whether a member may be picked: it has nothing against it, from checks
// or from its own results, whichever is worse; in a panic, all that can be reached
// may.
func MayPick(s Standing, state State, panicking bool) bool {
	switch s {
	case Usable:
		return panicking || state == Available || state == Ramping
	case Failing:
		return panicking
	}
	return false
}

// Available appends to list the indices of the members that may be picked, in order. In a
// panic that fails fast there are none. Members that are probed are not among them: they get
// a request by [Detector.Probe] alone.
func (d *Detector) Available(list []int32) []int32 {
	if d.panicking && d.rules.panic.failFast {
		return list
	}
	for i, h := range d.hosts {
		if MayPick(h.standing, State(h.state.Load()), d.panicking) {
			list = append(list, int32(i))
		}
	}
	return list
}

// Ejected appends to list the indices of the usable members that are ejected, in order:
// where requests may overflow to when the others are full. What such requests bring
// counts for their return (Soft).
func (d *Detector) Ejected(list []int32) []int32 {
	for i, h := range d.hosts {
		if h.standing == Usable && State(h.state.Load()) == Ejected {
			list = append(list, int32(i))
		}
	}
	return list
}

// Index returns the index of the member with that ID.
func (d *Detector) Index(id string) (i int, ok bool) {
	h := d.byID[id]
	if h == nil {
		return 0, false
	}
	return h.index, true
}

// SuccessRateThreshold returns the success rate in percent below which the last sweep
// ejected; ok is false if it computed none. Envoy, A50.
func (d *Detector) SuccessRateThreshold() (percent float64, ok bool) { return d.threshold, d.hasLimit }

// Stats returns a picture of the member with that index at instant now, the zero one if
// there is none.
func (d *Detector) Stats(i int, now int64) HostStats {
	h := d.Host(i)
	if h == nil {
		return HostStats{}
	}
	s := HostStats{ID: h.id, State: h.State(now), Standing: h.standing, Reason: h.reason, Epoch: h.Epoch(),
		Multiplier: h.multiplier, ProbesFailed: h.backoff, Capped: h.capped, Unenforced: h.unenforced, Spared: h.spared, SlowStart: d.slow.under(h.start, now)}
	switch {
	case State(h.state.Load()) != Ejected:
	case d.rules.mode != Soft:
		s.Wait = time.Duration(max(h.ejectedAt+h.sentence-now, 0))
	default:
		if p := h.permit.Load(); p >= 0 && p < permitDeciding {
			s.Wait = time.Duration(max(p-now, 0))
		}
	}
	return s
}
