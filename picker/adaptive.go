package picker

import (
	"slices"
	"sync/atomic"

	"github.com/evenkeel/evenkeel/ewma"
)

// Adaptive is the default policy: the expected wait of five endpoints compared, two of
// them drawn uniformly and three in proportion to how fast they are thought to be. The
// second kind finds good endpoints among many of which little is known; the first
// keeps looking at all of them, and keeps an endpoint that is wrongly thought
// to be fast from drawing everything. Up to twelve endpoints are all compared, which costs
// no more than drawing five. With weights, both kinds are drawn in proportion to
// them, for any number.
//
// The expected wait is the signal [Latency]'s: an average that remembers, peaks only
// where something is badly wrong, the age of unanswered requests only beyond the
// endpoint's own peak, requests in flight, and failures as a score of their own. All of
// its time constants are multiples of a unit that follows the pace of requests, so that
// there is nothing to tune. An endpoint that has not answered yet is taken for average, one that
// joins others for a little better, and gets one request until it has. One that is new or back, or
// that has failed, counts for a while as no faster than the median while it has requests in flight. While most of
// the endpoints fail, failures count for less. One that has had no request for 45 seconds gets the next one,
// whatever it looks like, and a better answer replaces what was known of it; where latencies are above a tenth of a
// second or little is sent, it takes longer, but no longer for one that has let requests wait for long.
//
// It needs a sweep about once a second (evenkeel.Pool sees to that), which rebuilds the
// table that the second kind is drawn from. A pick compares five endpoints, whatever
// their number.
type Adaptive struct{}

// Validate returns nil: there is nothing to set.
func (Adaptive) Validate() error { return nil }

// Needs returns what the policy learns.
func (Adaptive) Needs() Need {
	return NeedLatency | NeedAge | NeedSuccess | NeedMeanPrior
}

const (
	// scanUpTo is the number of endpoints up to which all are compared.
	scanUpTo = 12
	// uniformDraws and fastDraws are how many are drawn each way.
	uniformDraws = 2
	fastDraws    = 3
	// fastDrawTries bounds the draws for distinct fast ones.
	fastDrawTries = 20
	// fastExponent: an endpoint is drawn in proportion to 1/cost^4.
	fastExponent = 4
	// Costs relative to the median count from e^-2 to e^4, in Q16 bits.
	leastRelative = -2 * 94548
	mostRelative  = 4 * 94548
)

// Build returns the Picker.
func (Adaptive) Build(m *Members, _ Picker) Picker {
	p := &adaptive{costs: newCosts(m, Latency), shared: m.shared}
	if m.WeightsDiffer() {
		p.static = newWeightedRandom(m.weights)
		p.weigh(m)
	}
	return p
}

type adaptive struct {
	costs
	shared *shared
	static *weightedRandom // in proportion to weight alone; nil when all are equal
	fast   atomic.Pointer[aliasTable]
}

// Watch implements Watcher.
func (p *adaptive) Watch(s *Snapshot) {
	if p.static != nil {
		p.static.Watch(s)
	}
	if s.whole == nil { // else who is away is for that to say
		for i, r := range s.records {
			if s.Available(i) {
				r.comeBack()
			} else {
				r.mark(markAway)
			}
		}
	}
	p.Sweep(s, s.members.shared.swept.Load())
}

// Sweep implements Sweeper: it rebuilds the table of fast endpoints.
func (p *adaptive) Sweep(s *Snapshot, now int64) {
	if s.n <= scanUpTo && p.static == nil || s.n == 0 {
		return
	}
	l := p.shared.learning.Load()
	median := p.shared.median.Load()
	weights := make([]float64, len(s.records))
	sum, counted := 0.0, 0.0
	for k := range s.n {
		i := s.At(k)
		if s.records[i].marks.Load()&markShare != 0 {
			continue // below
		}
		relative := int64(0)
		if median != ewma.NoTarget {
			relative = min(max(s.records[i].idleWait(now, l)-median, leastRelative), mostRelative)
		}
		fast := ewma.Exp2(-fastExponent * relative)
		sum, counted = sum+fast, counted+1
		weights[i] = s.members.weights[i] * fast
	}
	p.averageShared(s, weights, sum/max(counted, 1))
	most := 0.0
	for _, w := range weights {
		most = max(most, w)
	}
	ints := make([]uint64, len(weights))
	for i, w := range weights {
		ints[i] = uint64(w / most * (1 << 36)) // a sum over 2^24 members still fits
	}
	p.fast.Store(newAliasTable(ints))
}

// averageShared has those that have a share drawn as often as others are in the mean: how fast they look
// is no part of it.
func (p *adaptive) averageShared(s *Snapshot, weights []float64, mean float64) {
	if mean == 0 {
		mean = 1
	}
	for k := range s.n {
		if i := s.At(k); s.records[i].marks.Load()&markShare != 0 {
			weights[i] = s.members.weights[i] * mean
		}
	}
}

// idleWait is the expected wait if nothing were in flight: how fast the endpoint is,
// whatever it is doing now.
func (r *Record) idleWait(now int64, l *learning) int64 {
	v := view(r.view.Load())
	if v == 0 {
		lg, _ := r.coldCost(0, now, l)
		v = newView(lg, r.failurePenalty(now, l), lg)
	}
	cost := v.cost()
	if r.avoidUntil.Load() > now {
		cost += maxPenalty
	}
	return cost
}

// Pick compares the candidates.
func (p *adaptive) Pick(s *Snapshot, _ Request, now int64) int {
	if s.n <= scanUpTo && p.static == nil || s.n == 1 {
		return p.pickOfFew(s, now)
	}
	var drawn [uniformDraws + fastDraws]int32
	var costs [uniformDraws + fastDraws]int64
	n := p.draw(s, &drawn)
	p.compare(s, drawn[:n], costs[:n], now)
	best, cost := 0, costs[0]
	for k := 1; k < n; k++ {
		if costs[k] < cost-tieBand {
			best, cost = k, costs[k]
		}
	}
	return p.better(s, int(drawn[best]), cost, now)
}

// compare fills in what one more request costs each of these members: as costs.of for the signal Latency, but without
// a call for those that are in no special state.
func (p *adaptive) compare(s *Snapshot, members []int32, cost []int64, now int64) {
	l := p.shared.learning.Load()
	for k, i := range members {
		r := s.records[i]
		see := r.look() // from here as in wait
		open := r.openWith(see.aging)
		if see.plain() && (see.aging.Empty() || !see.aging.MayExceed(see.view.gate(), now)) {
			cost[k] = see.view.cost() + countLog2(open)
		} else {
			cost[k] = r.waitInDetail(see, open, now, l, len(members))
		}
		if p.shares != nil {
			cost[k] += p.shareLog2(r, int(i))
		}
	}
}

// draw fills drawn with candidates, the uniform ones first: on a tie the first one stays, so
// that equal endpoints share equally. It returns how many it found. Candidates are
// distinct, but for those that are drawn by weight: see choices.drawWeighted.
func (p *adaptive) draw(s *Snapshot, drawn *[uniformDraws + fastDraws]int32) (n int) {
	r := s.Uint64()
	if p.static == nil {
		k, l := twoDistinct(r, s.n)
		drawn[0], drawn[1] = int32(s.At(k)), int32(s.At(l))
	} else {
		drawn[0], drawn[1] = int32(p.static.Pick(s, Request{}, 0)), int32(p.static.Pick(s, Request{}, 0))
	}
	n = uniformDraws
	fast := p.fast.Load()
	if fast == nil {
		return n
	}
	tries := fastDrawTries
	if p.static != nil {
		tries = fastDraws
	}
	for ; n < len(drawn) && tries > 0; tries-- {
		r = step(r)
		i := fast.draw(r)
		if (s.bits == nil || s.Available(int(i))) && !drawnBefore(drawn, n, i) {
			drawn[n] = i
			n++
		}
	}
	return n
}

func drawnBefore(drawn *[uniformDraws + fastDraws]int32, n int, i int32) bool {
	for k := 0; k < n && k < len(drawn); k++ {
		if drawn[k] == i {
			return true
		}
	}
	return false
}

// pickOfFew compares all, and draws among those within the band of the best.
func (p *adaptive) pickOfFew(s *Snapshot, now int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	var at [scanUpTo]int32
	var cost [scanUpTo]int64
	for k := range s.n {
		at[k] = int32(s.At(k))
	}
	p.compare(s, at[:s.n], cost[:s.n], now)
	least := slices.Min(cost[:s.n])
	tied := 0 // the first of at, from here on
	for k := range s.n {
		if cost[k] <= least+tieBand {
			at[tied] = at[k]
			tied++
		}
	}
	if tied == 1 {
		return int(at[0])
	}
	return int(at[uniform(uint32(s.Uint64()>>32), tied)])
}
