package evenkeel

import (
	"sync/atomic"

	"github.com/evenkeel/evenkeel/internal/limit"
)

// reportKind is what was made of a load report.
type reportKind uint8

const (
	reportRead     reportKind = iota // weights do not come from reports, or not from those of that endpoint
	reportUsed                       // it is a weight
	reportUnusable                   // it has no weight

	reportKinds = iota
)

// reportCounts counts load reports, in stripes as requests come on all processors at once. The zero
// reportCounts has seen none.
type reportCounts [8]reportStripe

// reportStripe is a part of the counts. The padding is two lines, which processors fetch together.
type reportStripe struct {
	kinds [reportKinds]atomic.Uint64
	_     [128 - 8*reportKinds]byte
}

func (c *reportCounts) add(k reportKind) { c[limit.Lane()%uint32(len(c))].kinds[k].Add(1) }

// sum returns how many there were of each kind.
func (c *reportCounts) sum() (n [reportKinds]uint64) {
	for i := range c {
		for k := range n {
			n[k] += c[i].kinds[k].Load()
		}
	}
	return n
}

// countReports fills in the counts. mu is held.
func (p *Pool[T]) countReports(s *Stats) {
	n := p.reports.counts.sum()
	s.Reports = n[reportRead] + n[reportUsed] + n[reportUnusable]
	s.UsedReports, s.UnusableReports = n[reportUsed], n[reportUnusable]
	if bad := p.reports.failed.Load(); bad != nil {
		s.BadReports, s.BadReport = bad.count, bad.last
	}
}

// reporting reports whether the weight of member i comes from its own reports. mu is held.
func (p *Pool[T]) reporting(i int, now int64) bool {
	t, e := p.reports.taking.Load(), p.member(i).reported.estimate
	switch {
	case t == nil || e == nil:
		return false
	case p.reports.feedback != nil:
		return t.weights.Recent(e, now)
	}
	return t.weights.Known(e, now)
}
