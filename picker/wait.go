package picker

import "github.com/evenkeel/evenkeel/ewma"

const (
	// failureFactor is how many doublings of cost a halving of the success score is
	// worth.
	failureFactor = 3
	// maxPenalty bounds the cost of failures, in Q16, and outagePenalty does in an outage:
	// whoever comes back first would otherwise get all of the traffic for as long as failures
	// are remembered, and go down under it.
	maxPenalty    = 30 << 16
	outagePenalty = 5 << 16
	// failsMostly is the penalty of an endpoint that fails every second request.
	failsMostly = failureFactor << 16
	// probationCost is what a second request to a cold endpoint costs more: enough
	// to lose against anybody who has answered.
	probationCost = 29 << 16
	// avoidedCost is what an endpoint costs that asked to be left alone: more than all
	// the other terms together. Only the time that is left is added, so that
	// among several the one that comes back first is the cheapest.
	avoidedCost = 200 << 16
	// seemsAvoided is below avoidedCost less the log of any weight, and above any other
	// cost.
	seemsAvoided = 165 << 16
	// rampUnits is how long an endpoint that comes back takes to its full share, from a
	// tenth of it (Envoy's slow start has the same least weight).
	rampUnits  = 10
	rampLeast  = 10
	threeTimes = 103872 // log2(3) in Q16
	// failedOnly stands in for the latency of an endpoint that has only failed, while
	// nothing is known of anybody: 2^36 ns, about a minute.
	failedOnly = 36 << 16
	// Adaptive takes a newcomer for a fifth of a doubling better than the mean, and once in so
	// many comparisons tries it whatever else there is: clients that each send little have
	// all found somebody good before, and would not try an average one for minutes. Neither
	// alone is as good for few and for many endpoints; see docs/default.md.
	newcomerLess = 13107
	outright     = 256
)

// prior returns what is assumed of an endpoint without samples: the median of the others, or
// with NeedMeanPrior their mean, for one that joined others a little less. Until it has
// answered in any way, it falls by half an e-fold in 240 units since the endpoint joined or
// last ended a request, so that one that a stale or unlucky prior hides is tried at last.
// Never 0, which would flood it, and never a fixed large number, which would starve it.
func (r *Record) prior(now int64, l *learning) (lg int64, ok bool) {
	m := r.shared.median.Load()
	if l.needs&NeedMeanPrior != 0 {
		m = r.shared.mean.Load()
	}
	if m == ewma.NoTarget {
		return 0, false
	}
	marks := r.marks.Load()
	if marks&markAnswered != 0 {
		return m, true
	}
	if marks&markLate != 0 && l.needs&NeedMeanPrior != 0 {
		m -= newcomerLess
	}
	return max(m-l.priorFall.Loss(now-r.lastDone.Load()), 0), true
}

// expectedWait returns the cost of one more request for an estimate lg of its latency,
// if known, that is not in the record's view.
func (r *Record) expectedWait(lg int64, known bool, now int64, l *learning) int64 {
	s := r.look()
	s.view = 0
	if known {
		lg = max(lg, 0)
		s.view = newView(lg, r.failurePenalty(now, l), lg)
	}
	return r.waitInDetail(s, r.openWith(s.aging), now, l, 0)
}

// coldCost is the latency assumed of an endpoint that has no sample, and the extra
// cost of a request while it is on probation: until something came back, one request
// in flight is enough to find out, unless it has been out for three times what it
// should take. While nobody has a sample all are equal and nobody is on probation;
// one that has only failed so far is then behind all that have not.
func (r *Record) coldCost(k, now int64, l *learning) (lg, extra int64) {
	lg, ok := r.prior(now, l)
	answered := r.marks.Load()&markAnswered != 0
	switch {
	case !ok && !r.success.Clean():
		return failedOnly, 0
	case !ok || k == 0 || answered:
		return lg, 0
	}
	if a, ok := r.AgeLog2(now); ok && a > r.shared.median.Load()+threeTimes {
		return lg, 0
	}
	return lg, probationCost
}

// rampCost returns the cost of an endpoint that is on its way back from having asked to be left
// alone, or from being new. Such an endpoint takes part in a growing
// fraction of comparisons: a higher cost instead would keep it out altogether
// until it suddenly is the cheapest.
func (r *Record) rampCost(cost, now int64, l *learning) int64 {
	window := uint64(rampUnits * l.unit)
	since := max(uint64(max(now-r.rampFrom.Load(), 0)), window/rampLeast)
	if since < window && r.shared.uint64()%window >= since {
		return cost + probationCost
	}
	return cost
}

// comeBack notes that the endpoint is available. If it was not, what is known of it is from
// before, or from an empty queue, while others' queues may be long. Latencies tell of a queue
// only when it has been worked off: all traffic would go there until the first request of one
// several times as long as the others' is answered. So for a unit, with requests in flight, it
// counts as no faster than the median, and gets as many as the others have. So do newcomers,
// from their first answer, and those that have failed mostly.
func (r *Record) comeBack() {
	if r.marks.Load()&markAway == 0 {
		return
	}
	if r.marks.And(^uint32(markAway))&markAnswered != 0 {
		r.mark(markFresh)
	}
}

// startRamp makes the endpoint take up its share slowly from instant from.
func (r *Record) startRamp(from int64) {
	r.rampFrom.Store(from)
	r.mark(markRamp)
}
