package picker

import "github.com/evenkeel/evenkeel/ewma"

// A record's view is what the signal Latency says of it apart from requests in flight:
// the cost (latency estimate and penalty for failures) in the upper half, the estimate
// alone in the lower half, both in Q16; 0 while there is no sample. A result
// refreshes it, and so does the sweep, since estimates fade with time constants of
// ten seconds and more. So a comparison reads one word instead of three and
// computes no decay. Counts in flight and hints are never part of it: decisions on old
// ones herd.
//
// Two results at once may leave it without one of theirs until the next.

func packView(cost, lg int64) uint64 {
	return uint64(uint32(int32(min(cost, 1<<31-1))))<<32 | uint64(uint32(max(lg, 1)))
}

func unpackView(v uint64) (cost, lg int64) { return int64(v) >> 32, int64(uint32(v)) }

// seen returns the view from what is known at instant now.
func (r *Record) seen(now int64, l *learning) uint64 {
	lg, known := r.estimate(Latency, now, l)
	if !known {
		return 0
	}
	return packView(lg+r.failurePenalty(now, l), lg)
}

// failurePenalty is the cost of failures at instant now.
func (r *Record) failurePenalty(now int64, l *learning) int64 {
	if r.success.Clean() {
		return 0
	}
	return min(failureFactor*r.success.PenaltyLog2(now, l.success), maxPenalty)
}

// refreshView takes a result into the view.
func (r *Record) refreshView(now int64, l *learning) { r.setView(r.seen(now, l)) }

func (r *Record) setView(v uint64) {
	if v != r.view.Load() {
		r.view.Store(v)
	}
}

// fadeView lets time pass in the view, unless a result comes in between.
func (r *Record) fadeView(now int64, l *learning) {
	old := r.view.Load()
	if v := r.seen(now, l); v != old {
		r.view.CompareAndSwap(old, v)
	}
}

// wait is the cost of one more request by the signal Latency.
func (r *Record) wait(now int64, l *learning) int64 {
	aging := r.age.Look()
	v := r.view.Load()
	marks := r.marks.Load()
	k := r.openWith(aging)
	if v == 0 || marks&(markLeaked|markAvoided|markRamp) != 0 {
		return r.waitInDetail(v, aging, k, marks, now, l)
	}
	cost, lg := unpackView(v)
	if aging.Count() != 0 && aging.MayExceed(lg, now) {
		if a, ok := r.ageOf(aging, marks, now); ok && a > lg {
			cost += a - lg
		}
	}
	return cost + countLog2(k)
}

// waitInDetail is wait for endpoints without samples, with leaks or with hints.
func (r *Record) waitInDetail(v uint64, aging ewma.AgeView, k int64, marks uint32, now int64, l *learning) int64 {
	if marks&markLeaked != 0 {
		k = max(k-r.leaked.Load(), 0)
	}
	cost, lg := unpackView(v)
	if v == 0 {
		var extra int64
		lg, extra = r.coldCost(k, now, l)
		cost = lg + extra + r.failurePenalty(now, l)
	}
	if a, ok := r.ageOf(aging, marks, now); ok && a > lg {
		cost += a - lg
	}
	cost += countLog2(k)
	if marks&(markAvoided|markRamp) != 0 {
		return r.cautious(cost, now, l)
	}
	return cost
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
	if k < int64(len(smallCounts)) {
		return int64(smallCounts[k])
	}
	return ewma.Log2(uint64(k) + 1)
}
