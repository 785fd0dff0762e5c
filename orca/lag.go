package orca

import (
	"math"
	"time"
)

// lags are the time constants that are tried, in nanoseconds: backends that do not average, and
// doublings from a second to half a minute. What averages for longer is taken for the last; the
// margin of the gain covers three times it.
var lags = [...]float64{0, 1e9, 2e9, 4e9, 8e9, 16e9, 32e9}

// firstLag is believed before anything was seen: with reports each second its gain is 1/18, slow
// and safe for averages of up to a minute.
const firstLag = 4

// lagFinder finds the time constant over which backends average their utilization from how the
// reports follow the weights. For each constant tried, an endpoint's log utilization is its log
// weight averaged with that constant, plus what the endpoint is (its capacity), a level that is learnt
// slowly; the constant with the smallest sum of squared misses is the answer. Noise and loads that
// change are missed with all constants alike, and so decide nothing.
//
// The level is a slow mean and not the report before: the weight has been corrected by that
// report's noise, so that any prediction from it finds the noise gone afterwards, and backends
// would seem to follow at once.
type lagFinder struct {
	misses [len(lags)]float64 // sums, old ones fading
	best   int
}

// lagNode is one endpoint's part.
type lagNode struct {
	followed [len(lags)]float64 // its log weight as each constant averages it
	level    [len(lags)]float64 // log utilization beyond that
}

func newLagFinder() lagFinder { return lagFinder{best: firstLag} }

func (l *lagFinder) smoothing() time.Duration { return time.Duration(lags[l.best]) }

// begin starts an endpoint whose weight is as it has long been.
func (n *lagNode) begin(off, weight float64) {
	for k := range lags {
		n.followed[k] = weight
		n.level[k] = off - weight
	}
}

const (
	levelPart = 1.0 / 32 // of a miss that goes into the level
	missFades = 1 - 1e-4 // at each report; a fleet of forty forgets in 250 of each
	// newLevel is a miss that no average explains: the endpoint is not what it was. It has no
	// voice then.
	newLevel = 0.25
)

// observe compares an endpoint's new error with what each constant predicts, weight being
// the log weight for the last gap nanoseconds.
func (l *lagFinder) observe(n *lagNode, off, weight, gap float64) {
	var misses [len(lags)]float64
	least := math.Inf(1)
	for k, tau := range lags {
		stays := 0.0
		if tau > 0 {
			stays = math.Exp(-gap / tau)
		}
		n.followed[k] = stays*n.followed[k] + (1-stays)*weight
		misses[k] = off - n.followed[k] - n.level[k]
		least = min(least, math.Abs(misses[k]))
	}
	for k, miss := range misses {
		if least > newLevel {
			n.level[k] += miss
			continue
		}
		n.level[k] += miss * levelPart
		l.misses[k] = l.misses[k]*missFades + miss*miss
	}
}

// shift follows a change of all weights by the same factor, which moves no utilization.
func (n *lagNode) shift(by float64) {
	for k := range lags {
		n.followed[k] -= by
		n.level[k] += by
	}
}

// clearlyBetter is how much smaller a sum of misses has to be: without changes of weights all are
// alike.
const clearlyBetter = 0.98

// decide chooses the best constant if it is clearly better than the one believed.
func (l *lagFinder) decide() {
	best := l.best
	for k, m := range l.misses {
		if m < l.misses[best] {
			best = k
		}
	}
	if l.misses[best] < clearlyBetter*l.misses[l.best] {
		l.best = best
	}
}
