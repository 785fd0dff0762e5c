package outlier

// Part is one of several users of a detector's members, of whom each reaches some of them: who is ejected is
// the same for all, and who may be picked and whether there is panic is each one's own. The zero Part
// has seen nothing. It needs the lock of the detector's owner.
type Part struct {
	panicking, started bool
}

// Panicking reports whether verdicts are not believed, as of the last Available.
func (p *Part) Panicking() bool { return p.panicking }

// Available is [Detector.Available] for a user who has these standings of the members, by their index. Members that
// are none of this user's are Drained. It decides on panic, as the detector does for all.
func (p *Part) Available(d *Detector, standings []Standing, list []int32) []int32 {
	var c Counts
	verdicts := 0
	for i, h := range d.hosts {
		s, state := standings[i], State(h.state.Load())
		if s == Drained {
			continue
		}
		c.Total++
		if state == Ejected || s == Failing {
			verdicts++
		}
		if MayPick(s, state, false) {
			c.Available++
		}
	}
	p.panicking = d.rules.panic.follow(&p.started, p.panicking, c, verdicts)
	if p.panicking && d.rules.panic.failFast {
		return list
	}
	for i, h := range d.hosts {
		if MayPick(standings[i], State(h.state.Load()), p.panicking) {
			list = append(list, int32(i))
		}
	}
	return list
}
