package picker

// coverage decides over whom a weighted table is made: over all members while at least
// three quarters of their weight are available, and over the available ones when
// less is. Draws from a table are repeated while they give somebody who is not
// available: this bounds how often, and still leaves the table alone when a single
// endpoint comes or goes. It is used by one goroutine at a time.
type coverage struct {
	weights []uint64 // members'
	total   uint64   // their sum
	// partial reports who is in the table, nil when all are; covered is their weight.
	partial []bool
	covered uint64
}

func newCoverage(weights []uint64) coverage {
	return coverage{weights: weights, total: sumOf(weights)}
}

// update takes a new snapshot in. changed says that a table over other members is needed:
// over those that in reports, over all if it is nil. in must not be changed.
func (c *coverage) update(s *Snapshot) (in []bool, changed bool) {
	available := uint64(0)
	missing := false // somebody is available and not in the table
	for k := range s.n {
		i := s.At(k)
		available += c.weights[i]
		missing = missing || c.partial != nil && !c.partial[i]
	}
	switch {
	case s.n == 0:
		return nil, false // no picks, nothing to be made a table of
	case enough(available, c.total):
		changed = c.partial != nil
		c.partial = nil
	case c.partial == nil || missing || !enough(available, c.covered):
		c.partial = make([]bool, len(c.weights))
		for k := range s.n {
			c.partial[s.At(k)] = true
		}
		c.covered, changed = available, true
	}
	return c.partial, changed
}

// enough reports whether available is at least three quarters of total.
func enough(available, total uint64) bool { return total-available <= total/4 }
