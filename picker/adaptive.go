package picker

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/evenkeel/evenkeel/ewma"
)

// Adaptive is the default policy: the expected wait of five endpoints compared, two of
// them drawn uniformly and three in proportion to how fast they are thought to be. The
// second kind finds good endpoints among many of which little is known; the first
// keeps looking at all of them, and keeps an endpoint that is wrongly thought
// to be fast from drawing everything. Up to five endpoints are all compared.
//
// The expected wait is the signal [Latency]'s: an average that remembers, peaks only
// where something is badly wrong, the age of unanswered requests only beyond both,
// requests in flight, and failures as a score of their own. All of its time
// constants are multiples of a unit that follows the pace of requests, so that there is
// nothing to tune. An endpoint that has not answered yet is taken for average, and gets
// one request until it has.
//
// It needs a sweep about once a second (evenkeel.Pool sees to that). Where it comes from,
// and what else was tried, is in docs/default.md.
type Adaptive struct{}

// Validate returns nil: there is nothing to set.
func (Adaptive) Validate() error { return nil }

// Needs returns what the policy learns.
func (Adaptive) Needs() Need {
	return NeedLatency | NeedAge | NeedSuccess | NeedMeanPrior
}

const (
	// scanUpTo is the number of endpoints up to which all are compared.
	scanUpTo = 5
	// uniformDraws and fastDraws are how many are drawn each way.
	uniformDraws = 2
	fastDraws    = 3
	// fastDrawTries bounds the draws for distinct fast ones.
	fastDrawTries = 20
	// fastExponent: an endpoint is drawn in proportion to 1/cost^3.
	fastExponent = 3
	// Costs relative to the median count from e^-2 to e^4, in Q16 bits.
	leastRelative = -2 * 94548
	mostRelative  = 4 * 94548
)

// Build returns the Picker.
func (a Adaptive) Build(m *Members, prev Picker) Picker {
	p := &adaptive{costs: newCosts(m, Latency), shared: m.shared}
	if m.WeightsDiffer() {
		p.static = newWeightedDraw(m)
		p.weigh(m)
	}
	return p
}

type adaptive struct {
	costs
	shared *shared
	static *weightedDraw // in proportion to weight alone; nil when all are equal
	fast   atomic.Pointer[weightedDraw]
}

// Watch implements Watcher.
func (p *adaptive) Watch(s *Snapshot) {
	if p.static != nil {
		p.static.Watch(s)
	}
	if s.n > scanUpTo {
		p.Sweep(s, s.members.shared.swept.Load())
	}
}

// Sweep implements Sweeper: it rebuilds the table of fast endpoints.
func (p *adaptive) Sweep(s *Snapshot, now int64) {
	if s.n <= scanUpTo {
		return
	}
	l := p.shared.learning.Load()
	median := p.shared.median.Load()
	weights := make([]float64, len(s.records))
	for k := range s.n {
		i := s.At(k)
		relative := min(max(s.records[i].idleWait(now, l)-median, leastRelative), mostRelative)
		if median == ewma.NoTarget {
			relative = 0
		}
		weights[i] = s.members.weights[i] * ewma.Exp2(-fastExponent*relative)
	}
	p.fast.Store(drawByWeight(weights))
}

// idleWait is the expected wait if nothing were in flight: how fast the endpoint is,
// whatever it is doing now.
func (r *Record) idleWait(now int64, l *learning) int64 {
	cost, _ := unpackView(r.view.Load())
	if cost == 0 {
		cost, _ = r.prior(now, l)
		cost += r.failurePenalty(now, l)
	}
	if r.avoidUntil.Load() > now {
		cost += maxPenalty
	}
	return cost
}

// Pick compares the candidates.
func (p *adaptive) Pick(s *Snapshot, _ Request, now int64) int {
	if s.n <= scanUpTo {
		return p.pickOfFew(s, now)
	}
	var drawn [uniformDraws + fastDraws]int32
	n := p.draw(s, &drawn)
	l := p.shared.learning.Load()
	best := int(drawn[0])
	cost := p.wait(s, best, now, l)
	for _, i := range drawn[1:n] {
		if ci := p.wait(s, int(i), now, l); ci < cost-tieBand {
			best, cost = int(i), ci
		}
	}
	if cost >= seemsAvoided {
		return p.notAvoided(s, best, cost, now)
	}
	return best
}

// wait is costs.of for the signal Latency, with its constants looked up.
func (p *adaptive) wait(s *Snapshot, i int, now int64, l *learning) int64 {
	if p.shares != nil {
		return p.of(s, i, now)
	}
	return s.records[i].wait(now, l)
}

// draw fills drawn with distinct candidates, the uniform ones first: on a tie the first
// one stays, so that equal endpoints share equally. With weights "uniform" is in
// proportion to them. It returns how many it found.
func (p *adaptive) draw(s *Snapshot, drawn *[uniformDraws + fastDraws]int32) (n int) {
	r := s.Uint64()
	if p.static == nil {
		k, l := twoDistinct(r, s.n)
		drawn[0], drawn[1] = int32(s.At(k)), int32(s.At(l))
		n = 2
	} else {
		drawn[0] = int32(p.static.draw(s))
		n = 1
		for range fastDrawTries {
			if i := int32(p.static.draw(s)); i != drawn[0] {
				drawn[1] = i
				n = 2
				break
			}
		}
	}
	fast := p.fast.Load()
	if fast == nil {
		return n
	}
	want := n + fastDraws
	for tries := 0; n < want && tries < fastDrawTries; tries++ {
		r = mix(r)
		i := int32(fast.at(r))
		if s.Available(int(i)) && !slices.Contains(drawn[:n], i) {
			drawn[n] = i
			n++
		}
	}
	return n
}

// pickOfFew compares all, and draws among those within the band of the best.
func (p *adaptive) pickOfFew(s *Snapshot, now int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	l := p.shared.learning.Load()
	var at [scanUpTo]int
	var cost [scanUpTo]int64
	least := int64(math.MaxInt64)
	for k := range s.n {
		at[k] = s.At(k)
		cost[k] = p.wait(s, at[k], now, l)
		least = min(least, cost[k])
	}
	ties := 0
	for k := range s.n {
		if cost[k] <= least+tieBand {
			at[ties] = at[k]
			ties++
		}
	}
	if ties == 1 {
		return at[0]
	}
	return at[uniform(uint32(s.Uint64()>>32), ties)]
}
