package picker

// choices compares any number of endpoints by any signal, with any weights.
type choices struct {
	costs
	d     int
	draws *weightedRandom // nil when all weights are equal
}

func newChoices(m *Members, s Signal, d int) *choices {
	c := &choices{costs: newCosts(m, s), d: d}
	if m.WeightsDiffer() {
		c.draws = newWeightedRandom(m.weights)
		c.weigh(m)
	}
	return c
}

// Watch implements Watcher.
func (c *choices) Watch(s *Snapshot) {
	if c.draws != nil {
		c.draws.Watch(s)
	}
}

// Pick compares d endpoints, all of them if there are no more.
func (c *choices) Pick(s *Snapshot, _ Request, now int64) int {
	if s.n == 1 || s.n <= c.d && c.draws == nil {
		return c.leastOf(s, now)
	}
	var drawn [maxChoices]int32
	d := c.d
	if c.draws != nil {
		c.drawWeighted(s, drawn[:d])
	} else {
		c.drawUniform(s, drawn[:d])
	}
	best := int(drawn[0])
	cost := c.of(s, best, d, now)
	for _, i := range drawn[1:d] {
		if int(i) == best {
			continue
		}
		if ci := c.of(s, int(i), d, now); ci < cost-c.band {
			best, cost = int(i), ci
		}
	}
	if c.draws != nil && s.records[best].marks.Load()&markShare != 0 && onlyOne(drawn[:d]) {
		return c.alone(s, best, now)
	}
	return c.better(s, best, cost, now)
}

// onlyOne reports whether the same endpoint was drawn each time.
func onlyOne(drawn []int32) bool {
	for _, i := range drawn[1:] {
		if i != drawn[0] {
			return false
		}
	}
	return true
}

// alone returns endpoint i, which has a share and which nobody was compared with, or another in its place.
func (c *choices) alone(s *Snapshot, i int, now int64) int {
	if !s.records[i].HeldBack() {
		return i
	}
	for range avoidTries {
		j := c.draws.Pick(s, Request{}, 0)
		if rec := s.records[j]; j != i && !rec.passedOver(rec.marks.Load(), now) {
			return j
		}
	}
	return s.anyBut(i, Request{}, now)
}

// drawUniform fills drawn with distinct available endpoints, each order equally likely:
// the k-th is drawn among those that are left, by its rank among them.
func (c *choices) drawUniform(s *Snapshot, drawn []int32) {
	var sorted [maxChoices]int // ranks drawn so far, ascending
	var r uint64
	for k := range drawn {
		if k%2 == 0 {
			r = s.Uint64()
		} else {
			r <<= 32
		}
		rank := uniform(uint32(r>>32), s.n-k)
		at := 0
		for ; at < k && rank >= sorted[at]; at++ {
			rank++
		}
		copy(sorted[at+1:k+1], sorted[at:k])
		sorted[at] = rank
		drawn[k] = int32(s.At(rank))
	}
}

// drawWeighted fills drawn with available endpoints, each drawn in proportion to weight:
// the same one may come again. Were they made distinct, a light endpoint beside few heavy
// ones would be compared at nearly every pick, and win whenever it is idle.
func (c *choices) drawWeighted(s *Snapshot, drawn []int32) {
	for k := range drawn {
		drawn[k] = int32(c.draws.Pick(s, Request{}, 0))
	}
}
