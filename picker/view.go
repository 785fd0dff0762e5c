package picker

import "github.com/evenkeel/evenkeel/ewma"

// A view is what a record's estimates and failures amount to, apart from requests in
// flight: the cost (latency estimate and penalty for failures) in the upper 32 bits, in
// Q16; the estimate alone, and the age from which unanswered requests count, in 16
// bits each, in Q10; 0 while there is no sample. A result refreshes it, and so does the
// sweep, since estimates fade with time constants of ten seconds and more. So
// a comparison reads one word instead of three and computes no decay. Counts in flight
// and hints are never part of it: decisions on old ones herd.
//
// Two results at once may leave it without one of theirs until the next.
type view uint64

// newView returns the view of an estimate lg with a penalty for failures. Requests
// count by their age when it exceeds gate, which is not below lg.
func newView(lg, penalty, gate int64) view {
	return view(uint64(uint32(min(lg+penalty, 1<<31-1)))<<32 | uint64(viewLog(lg))<<16 | uint64(viewLog(max(lg, gate))))
}

// viewLog is a logarithm in Q10, at least 1 so that no view of a sample is 0.
func viewLog(lg int64) uint16 { return uint16(min(max(lg>>6, 1), 1<<16-1)) }

func (v view) cost() int64     { return int64(v >> 32) }
func (v view) estimate() int64 { return int64(v>>16&(1<<16-1)) << 6 }
func (v view) gate() int64     { return int64(v&(1<<16-1)) << 6 }

// see returns the view at instant now.
func (r *Record) see(now int64, l *learning) view {
	lg, known := r.estimate(Latency, now, l)
	if !known {
		return 0
	}
	return newView(lg, r.failurePenalty(now, l), r.peak.Above(0, now, l.peak))
}

// failurePenalty is the cost of failures at instant now, seen or reported.
func (r *Record) failurePenalty(now int64, l *learning) int64 {
	claimed := int64(0)
	if r.marks.Load()&markReported != 0 {
		claimed = r.reported.failing.at(now, l.failing)
	}
	if r.success.Clean() {
		return claimed
	}
	most := int64(maxPenalty)
	if r.shared.outage.Load() {
		most = outagePenalty
	}
	return max(min(failureFactor*r.success.PenaltyLog2(now, l.success), most), claimed)
}

// setView stores v, unless all that changes is a gate that has decayed a little: a peak
// falls all the time, and a write per result for that would cost as much as the rest.
func (r *Record) setView(v view) {
	old := view(r.view.Load())
	if d := old.gate() - v.gate(); old>>16 == v>>16 && d >= 0 && d < gateStep {
		return
	}
	r.view.Store(uint64(v))
}

// gateStep is how far a gate may be behind, a sixteenth of a doubling.
const gateStep = 1 << 12

// fadeView lets time pass in the view, unless a result comes in between.
func (r *Record) fadeView(now int64, l *learning) {
	old := r.view.Load()
	if v := r.see(now, l); uint64(v) != old {
		r.view.CompareAndSwap(old, uint64(v))
	}
}

// sight is what a comparison sees of a record beside the number of its requests.
type sight struct {
	aging ewma.AgeView
	view  view
	marks uint32
}

// look and plain are as small as they are to be inlined: a pick compares many.
func (r *Record) look() sight {
	return sight{aging: r.age.Look(), view: view(r.view.Load()), marks: r.marks.Load()}
}

// plain reports whether the cost is that of the view and of the requests in flight, unless some of these have waited
// for longer than the endpoint's own peak.
func (s sight) plain() bool {
	return s.view != 0 && s.marks&(markLeaked|markAvoided|markRamp|markFresh|markShare|markReported|markDue) == 0
}

// wait is the cost of one more request by the signal Latency, in a comparison of that many; 0 leaves
// shares to whoever compares.
func (r *Record) wait(now int64, l *learning, among int) int64 {
	s := r.look()
	k := r.openWith(s.aging)
	if s.plain() && (s.aging.Empty() || !s.aging.MayExceed(s.view.gate(), now)) {
		return s.view.cost() + countLog2(k)
	}
	return r.waitInDetail(s, k, now, l, among)
}

// overdue is how much longer than the estimate unanswered requests have been waiting, in
// Q16, if they have waited for longer than the endpoint's own peak. Up to there
// waiting says nothing: the mean age of exponential work exceeds its log-mean.
func (r *Record) overdue(v view, aging ewma.AgeView, marks uint32, now int64) int64 {
	if a, ok := r.ageOf(aging, marks, now); ok && a > v.gate() {
		return a - v.estimate()
	}
	return 0
}

// waitInDetail is wait for endpoints without samples, with leaks, hints or reports, with overdue requests, and
// for those that have come lately.
func (r *Record) waitInDetail(s sight, k, now int64, l *learning, among int) int64 {
	v, marks := s.view, s.marks
	if marks&(markDue|markAvoided|markShare) == markDue && among > 0 && r.takesLook() {
		return 0
	}
	if marks&markLeaked != 0 {
		k = max(k-r.leaked.Load(), 0)
	}
	var extra int64
	if v == 0 {
		var lg int64
		lg, extra = r.coldCost(k, now, l)
		if k == 0 && r.triedOutright(marks, l) {
			lg = 0
		}
		v = newView(lg, r.failurePenalty(now, l), lg)
	}
	cost := v.cost() + extra + countLog2(k) + r.overdue(v, s.aging, marks, now)
	if marks&markReported != 0 {
		cost += r.reported.surcharge.at(now, l.report)
	}
	if marks&markFresh != 0 && k > 0 {
		cost = max(cost, r.shared.median.Load()+countLog2(k))
	}
	switch {
	case marks&(markAvoided|markRamp) != 0 && r.avoidUntil.Load() > now:
		return avoidedCost + ewma.LatencyLog2(r.avoidUntil.Load()-now)
	case marks&markShare != 0 && among > 0:
		return r.inPart(cost, k, among, 1)
	case marks&(markRamp|markShare) == markRamp:
		return r.rampCost(cost, now, l)
	}
	return cost
}

// triedOutright reports whether a comparison is the one of many in which an endpoint that
// nobody has tried, and that joined others, wins.
func (r *Record) triedOutright(marks uint32, l *learning) bool {
	return marks&(markLate|markAnswered) == markLate && l.needs&NeedMeanPrior != 0 &&
		r.shared.median.Load() != ewma.NoTarget && r.shared.uint64()%outright == 0
}

// smallCounts holds Log2(k + 1) for small k.
var smallCounts = makeSmallCounts()

func makeSmallCounts() (t [64]int32) {
	for k := range t {
		t[k] = int32(ewma.Log2(uint64(k) + 1))
	}
	return t
}

// countLog2 returns log2(k + 1) in Q16 for k >= 0.
func countLog2(k int64) int64 {
	if uint64(k) < uint64(len(smallCounts)) {
		return int64(smallCounts[k])
	}
	return bigCountLog2(k)
}

// bigCountLog2 is apart so that countLog2 is inlined.
//
//go:noinline
func bigCountLog2(k int64) int64 { return ewma.Log2(uint64(k) + 1) }
