package outlier

// census is how many members are what. It is counted anew whenever a state, a standing or the
// list has changed, and never kept up to date by adding to it: such numbers drift, and
// then nobody is ejected ever again, or everybody.
type census struct {
	version             uint64 // of the detector that it is true for
	panicked            uint64 // of the detector when panic was last decided
	total, out          int    // without drained ones
	usable, usableOut   int
	usableRamping, open int // open: may be picked without a panic
	verdicts            int // ejected, or failing their checks
}

func (d *Detector) census() *census {
	c := &d.counted
	if c.version == d.version {
		return c
	}
	*c = census{version: d.version, panicked: c.panicked}
	for _, h := range d.hosts {
		if h.standing == Drained {
			continue
		}
		s := State(h.state.Load())
		c.total++
		if s == Ejected {
			c.out++
		}
		if s == Ejected || h.standing == Failing {
			c.verdicts++
		}
		if MayPick(h.standing, s, false) {
			c.open++
		}
		if h.standing != Usable {
			continue
		}
		c.usable++
		switch s {
		case Ejected:
			c.usableOut++
		case Ramping:
			c.usableRamping++
		}
	}
	return c
}

// Counts returns the present counts, which panic goes by.
func (d *Detector) Counts() Counts {
	c := d.census()
	return Counts{Available: c.open, Total: c.total}
}

// nextPanic reports whether there is panic now. Until enough have been available once, a pool is
// starting: then those who are not connected yet are no sign of anything, so that there has to be a
// verdict for it not to be believed, and panic ends where it begins.
func (d *Detector) nextPanic() bool {
	return d.rules.panic.follow(&d.started, d.panicking, d.Counts(), d.counted.verdicts)
}

// follow is nextPanic for whoever has these counts, was panicking or not and has started.
func (r panicRules) follow(started *bool, was bool, c Counts, verdicts int) bool {
	if c.Total == 0 {
		*started = false
		return false
	}
	panicking := r.next(was && *started, c)
	if *started || panicking {
		return panicking && (*started || verdicts > 0)
	}
	*started = true
	return false
}

// decidePanic is called after whatever may have changed something.
func (d *Detector) decidePanic() {
	if d.counted.panicked == d.version {
		return
	}
	if now := d.nextPanic(); now != d.panicking {
		d.panicking = now
		d.version++
	}
	d.counted.panicked = d.version
}
