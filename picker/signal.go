package picker

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// Signal is what a comparing policy goes by: one of the built-in ones, or your own.
type Signal interface {
	// Cost returns what sending a request to r at instant now would cost, in Q16 log2
	// (65536 is twice as much); lower is better. It is called several times per
	// request and concurrently, and must not block or allocate. The policy subtracts
	// log2 of the weight itself.
	Cost(r *Record, now int64) int64
	// Needs says what has to be learnt for it.
	Needs() Need
}

// BuiltinSignal is a Signal of this package. The zero value is InFlight.
type BuiltinSignal uint8

const (
	// InFlight is log2(requests in flight + 1): least request, least connections.
	InFlight BuiltinSignal = iota
	// Latency is the expected wait: log2 of the latency (peak-hold, or the age of
	// unanswered work where that is longer), plus log2(requests in flight + 1), plus a
	// penalty of 3 doublings for each halving of the success score, and of 30 while
	// an endpoint asks to be left alone.
	Latency
)

// Needs returns what the signal reads.
func (b BuiltinSignal) Needs() Need {
	if b == InFlight {
		return 0
	}
	return NeedLatency | NeedAge | NeedSuccess
}

// Cost implements Signal.
func (b BuiltinSignal) Cost(r *Record, now int64) int64 {
	if b == InFlight {
		return ewma.Log2(uint64(r.InFlight()) + 1)
	}
	return latencyCost(r, now, r.shared.learning.Load())
}

const (
	// failureFactor is how many doublings of cost a halving of the success score is
	// worth.
	failureFactor = 3
	// maxPenalty bounds every penalty, in Q16, so that costs stay comparable.
	maxPenalty = 30 << 16
	// probationCost is what a second request to a cold endpoint costs more: enough
	// to lose against anybody who has answered.
	probationCost = 29 << 16
)

// priorFall is how fast the assumed latency of an endpoint that has not answered
// falls: half an e-fold a minute, so that one that a stale or unlucky prior hides is
// tried at last.
var priorFall = ewma.NewDecay(2 * time.Minute)

// prior returns what is assumed of an endpoint without samples: the median of the
// others, falling since it joined. Never 0, which would flood it, and never a fixed
// large number, which would starve it.
func (r *Record) prior(now int64) (lg int64, ok bool) {
	m := r.shared.median.Load()
	if m == noMedian {
		return 0, false
	}
	return m - priorFall.Loss(now-r.joined), true
}

func latencyCost(r *Record, now int64, l *learning) int64 {
	k := r.InFlight()
	lg, known := r.peak.Log2(now, l.peak)
	var extra int64
	if !known {
		lg, extra = r.coldCost(k, now)
	}
	if a, ok := r.AgeLog2(now); ok {
		lg = max(lg, a)
	}
	cost := lg + ewma.Log2(uint64(k)+1) + extra
	if p := r.success.PenaltyLog2(now, l.success); p != 0 {
		cost += min(failureFactor*p, maxPenalty)
	}
	if r.marks.Load()&markAvoided != 0 && r.avoidUntil.Load() > now {
		cost += maxPenalty
	}
	return cost
}

// coldCost is the latency assumed of an endpoint that has no sample, and the extra
// cost of a request while it is on probation: until something came back, one request
// in flight is enough to find out, unless it has been out for three times what it
// should take. While nobody has a sample all are equal and nobody is on probation.
func (r *Record) coldCost(k, now int64) (lg, extra int64) {
	lg, ok := r.prior(now)
	if !ok || k == 0 || r.marks.Load()&markAnswered != 0 {
		return lg, 0
	}
	const three = 103872 // log2(3) in Q16
	if a, ok := r.AgeLog2(now); ok && a > r.shared.median.Load()+three {
		return lg, 0
	}
	return lg, probationCost
}

func validateSignal(policy string, s Signal) error {
	if b, ok := s.(BuiltinSignal); ok && b > Latency {
		return fmt.Errorf("picker: %s.Signal is %d, want InFlight or Latency", policy, b)
	}
	return nil
}
