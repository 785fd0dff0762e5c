package outlier

// Counts are those of a pool, or of one priority level of it.
type Counts struct {
	// Available is how many may be picked; in Envoy's terms healthy and degraded ones.
	Available int
	// Total is how many there are, without those that are drained (Envoy: excluded).
	Total int
}

// below reports whether less than percent of all are available. It compares products: a
// quotient would have to be rounded.
func (c Counts) below(percent float64) bool {
	return 100*float64(c.Available) < percent*float64(c.Total)
}

// Next reports whether there is panic after the counts have become c, if there was or
// was not before: it begins below Threshold, and ends at Leave. A pool without members
// is not in a panic, it is empty.
func (p Panic) Next(panicking bool, c Counts) bool {
	r := panicRules{threshold: p.Threshold.or(defaultPanic)}
	r.leaveAt(p.Leave)
	return r.next(panicking, c)
}

// leaveAt sets where panic ends, once the threshold is set.
func (r *panicRules) leaveAt(p Percent) {
	_, told := p.Value()
	r.leave, r.usual = p.or(min(r.threshold+defaultLeave, 100)), !told
}

func (r panicRules) next(panicking bool, c Counts) bool {
	switch {
	case r.threshold <= 0 || c.Total <= 0:
		return false
	case r.normalized:
		return EnvoyPanic([]Counts{c}, r.threshold)[0]
	case panicking && r.usual && c.Available == c.Total-1:
		// One that stays away does not keep up a panic that it would not begin. Of two it would for good, as ten points
		// are less than one of them, and get half of all requests.
		return c.below(r.threshold)
	case panicking:
		return c.below(r.leave)
	}
	return c.below(r.threshold)
}

// overprovisioning is Envoy's default factor, in percent: a level is taken to carry all of
// its load until less than 100/140 of it is available.
const overprovisioning = 140

// NormalizedAvailability is Envoy's: how much of the load, in percent, the levels together
// can be expected to carry, at most 100.
func NormalizedAvailability(levels []Counts) int {
	sum := 0
	for _, c := range levels {
		if c.Total > 0 {
			sum += min(overprovisioning*max(c.Available, 0)/c.Total, 100)
		}
	}
	return min(sum, 100)
}

// EnvoyPanic reports for each priority level whether Envoy panics there: less than
// threshold percent are available, and all levels together do not carry the load. With one
// level, thresholds above 71.4 therefore act as that. A level without members panics. A
// threshold of 0 is never.
func EnvoyPanic(levels []Counts, threshold float64) []bool {
	panics := make([]bool, len(levels))
	if threshold <= 0 || NormalizedAvailability(levels) >= 100 {
		return panics
	}
	for i, c := range levels {
		panics[i] = c.Total <= 0 || c.below(threshold)
	}
	return panics
}

// Panicking reports whether verdicts are not believed at present.
func (d *Detector) Panicking() bool { return d.panicking }

// Distressed reports whether so many endpoints fail at once that timeouts eject nobody
// (Soft), as of the last call.
func (d *Detector) Distressed() bool { return d.shared.distress.Load() }
