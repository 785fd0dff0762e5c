package picker

import "github.com/evenkeel/evenkeel/ewma"

// costs compares the endpoints of a list by a signal and their weights.
type costs struct {
	signal    Signal
	lgWeights []int64 // nil when all are equal, or the draw alone accounts for them
	// shares are the weights in units of 2^-20 of their mean, for endpoints that are drawn in
	// proportion to weight; see [CountsInFlight]. Else nil.
	shares []uint64
	band   int64 // differences up to this are ties
	hints  bool  // the signal puts endpoints that ask to be left alone behind all others
	plain  bool  // the signal needs nothing learnt, and does not know of them: that is done here
	// relative are the weights in units of their mean, for who looks at all of different ones and has
	// to let one with a share have its part; else nil.
	relative []float64
}

func newCosts(m *Members, s Signal) costs {
	c := costs{signal: s, lgWeights: m.lgWeights}
	needs := s.Needs()
	c.hints, c.plain = needs&NeedSuccess != 0, needs == 0
	if m.lgWeights != nil {
		c.relative = relativeWeights(m.weights)
	}
	if needs&(NeedLatency|NeedEstimator) != 0 {
		c.band = tieBand
	}
	return c
}

// weigh prepares for endpoints that are drawn in proportion to weight.
func (c *costs) weigh(m *Members) {
	c.lgWeights, c.relative = nil, nil
	if _, ok := c.signal.(CountsInFlight); !ok {
		return
	}
	c.shares = make([]uint64, m.Len())
	for i, w := range relativeWeights(m.weights) {
		c.shares[i] = max(uint64(w*(1<<20)), 1)
	}
}

// relativeWeights returns weights in units of the mean of the positive ones: that way, the number of
// requests in flight that matters does not depend on how they are written.
func relativeWeights(weights []float64) []float64 {
	sum, positive := 0.0, 0.0
	for _, w := range weights {
		if w > 0 {
			sum += w
			positive++
		}
	}
	relative := make([]float64, len(weights))
	for i, w := range weights {
		relative[i] = w * positive / sum
	}
	return relative
}

// of is the cost of one more request to member i in a comparison of that many, with its weight taken into
// account.
func (c *costs) of(s *Snapshot, i, among int, now int64) int64 {
	r := s.records[i]
	cost := c.signal.Cost(r, now)
	switch marks := r.marks.Load(); {
	case marks&markAvoided != 0 && c.plain && cost <= mostCost && r.leftAlone(now):
		cost += leftAloneCost
	case marks&markShare != 0:
		relative := 1.0
		if c.relative != nil {
			relative = c.relative[i]
		}
		cost = r.inPart(cost, r.InFlight(), among, relative)
	}
	if c.shares != nil {
		return cost + c.shareLog2(r, i)
	}
	if c.lgWeights != nil {
		// A signal of the caller's own may say "never" with the largest number.
		cost = min(cost, neverCost) - c.lgWeights[i]
	}
	return cost
}

// mostCost bounds the costs of signals.
const mostCost = 1 << 40

// shareLog2 turns the factor k + 1 of a cost into k/w + 1.
func (c *costs) shareLog2(r *Record, i int) int64 {
	k := r.InFlight()
	return ewma.Log2(uint64(k)<<20+c.shares[i]) - ewma.Log2(c.shares[i]) - countLog2(k)
}

// avoided reports whether cost is that of an endpoint that asks to be left alone, and the least such cost.
func (c *costs) avoided(cost int64) (least int64, is bool) {
	if c.hints {
		return seemsAvoided, cost >= seemsAvoided
	}
	return seemsLeftAlone, c.plain && cost >= seemsLeftAlone && cost < neverCost-mostCost/2
}

// leastOf returns an available endpoint of least cost, all of those within the band of
// the least with equal probability. It looks at all.
func (c *costs) leastOf(s *Snapshot, now int64) int {
	best := s.At(0)
	if s.n == 1 {
		return best
	}
	least := c.of(s, best, s.n, now)
	r, ties := s.Uint64(), uint64(1)
	for k := 1; k < s.n; k++ {
		i := s.At(k)
		ci := c.of(s, i, s.n, now)
		if now == 0 && ci >= seemsLeftAlone {
			now = s.shared.at(0) // once, not for each that asks to be left alone
		}
		switch {
		case ci < least:
			best, least, ties = i, ci, 1
		case ci == least:
			// Reservoir sampling: the n-th tie replaces the choice with probability 1/n.
			ties++
			if r = mix(r); uniformTo(r, ties) == 0 {
				best = i
			}
		}
	}
	if c.band > 0 {
		return c.amongTies(s, least+c.band, best, r, now)
	}
	return best
}

// amongTies draws among the available endpoints that cost at most limit. Taking the
// first of them in an order that starts anywhere would favour whoever stands behind a
// long row of worse ones. An endpoint whose cost has changed since is in or out by its
// new one; best is the answer if all are out.
func (c *costs) amongTies(s *Snapshot, limit int64, best int, r uint64, now int64) int {
	ties := uint64(0)
	for k := range s.n {
		i := s.At(k)
		if s.records[i].marks.Load()&markShare != 0 { // it had its lot
			continue
		}
		if c.of(s, i, s.n, now) > limit {
			continue
		}
		ties++
		if r = mix(r); uniformTo(r, ties) == 0 {
			best = i
		}
	}
	return best
}

// furtherTries and furtherScan bound how far a pick looks for somebody better, when all that
// it compared are bad.
const (
	furtherTries = 4
	furtherScan  = 64
)

// tooBad is how much more than the pool's usual latency a choice among draws by weight may
// cost, four doublings, before others are looked at too: such draws may all be the same
// heavy endpoint, which must not keep its share when it fails or hangs.
const tooBad = 4 << 16

// better returns best, or somebody better if best is not good enough.
func (c *costs) better(s *Snapshot, best int, cost, now int64) int {
	if least, is := c.avoided(cost); is {
		return c.lookFurther(s, best, cost, least-1, s.shared.at(now))
	}
	if c.shares != nil && c.hints {
		if m := s.shared.median.Load(); m != ewma.NoTarget && cost > m+tooBad {
			return c.lookFurther(s, best, cost, m+tooBad, now)
		}
	}
	return best
}

// lookFurther returns an endpoint that costs at most limit, if a few uniform draws and a
// short scan find one; else the cheapest seen, which of those that ask to be left alone is
// the one that comes back first. best costs cost and is the choice so far.
func (c *costs) lookFurther(s *Snapshot, best int, cost, limit, now int64) int {
	at := 0
	for try := range furtherTries + min(furtherScan, s.n) {
		if try <= furtherTries {
			at = uniform(uint32(s.Uint64()>>32), s.n)
		} else if at++; at == s.n {
			at = 0
		}
		i := s.At(at)
		if limit < seemsAvoided-1 && s.records[i].marks.Load()&markShare != 0 { // it had its lot
			continue
		}
		if ci := c.of(s, i, s.n, now); ci < cost {
			if best, cost = i, ci; cost <= limit {
				return best
			}
		}
	}
	return best
}
