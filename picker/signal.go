package picker

import (
	"fmt"
	"reflect"

	"github.com/evenkeel/evenkeel/ewma"
)

// Signal is what a comparing policy goes by: one of the built-in ones, or your own.
type Signal interface {
	// Cost returns what sending a request to r at instant now would cost, in Q16 log2
	// (65536 is twice as much); lower is better. It is called several times per
	// request and concurrently, and must not block or allocate. Policies take account
	// of weights themselves; see [CountsInFlight]. Costs above 2^40 mean one that is not to be
	// picked if any other can be. For a signal that needs NeedSuccess, those from 165·65536 mean an
	// endpoint that asks to be left alone; for one that needs nothing, policies see to that.
	Cost(r *Record, now int64) int64
	// Needs says what has to be learnt for it.
	Needs() Need
}

// CountsInFlight is a Signal whose cost contains log2(requests in flight + 1), as that of
// all built-in ones but LoadTable does. A policy that draws endpoints in proportion to
// weight w then takes k/w + 1 for the k + 1 in it: the wait in a queue with w
// servers. The draw has given idle endpoints their shares already, and (k + 1)/w would
// leave the light ones without any until the heavy ones are busy. For signals that do
// not say so, such a policy leaves all to the draw. A policy that looks at all endpoints
// divides by w, which is then a speed, for any signal.
type CountsInFlight interface {
	Signal
	// CountsInFlight does nothing.
	CountsInFlight()
}

// BuiltinSignal is a Signal of this package. The zero value is InFlight.
//
// All but InFlight are the expected wait in the same form, from different estimates of
// latency: log2 of the estimate (or of the mean age of unanswered requests where
// that is longer), plus log2(requests in flight + 1), plus 3 doublings for each
// halving of the success score, five doublings at most while most of the endpoints fail. An
// endpoint that asks to be left alone loses to everybody, and after that, like one that has
// joined others and given its first answer, comes back over ten time units. (For the latter
// [Adaptive] does otherwise: see [NeedMeanPrior].) See [Record] for what is learnt.
//
// Where answers carry a [Load], an endpoint that reports more in flight than it usually does costs
// more, by the square root of the ratio, for some latencies; one that reports errors costs up to twice
// as much. A report never makes an endpoint cheaper, so that none can draw requests by what it says, and
// it counts only as far as reports have been seen to go with latencies: old or invented ones do not.
type BuiltinSignal uint8

const (
	// InFlight is log2(requests in flight + 1): least request, least connections.
	InFlight BuiltinSignal = iota
	// Latency estimates by the larger of LogMean's estimate and 1/32 of PeakHold's: the
	// average, unless a peak says that something is badly wrong.
	Latency
	// PeakHold estimates by the highest of the decayed samples ([ewma.Peak]): it turns
	// away at the first slow answer, and back after ten time units.
	PeakHold
	// LogMean estimates by the average of logarithms ([ewma.LogMean]): it forgives single
	// slow answers, and remembers when many clients each send little.
	LogMean
)

var builtinNames = [...]string{"in_flight", "latency", "peak_hold", "log_mean"}

// String returns the signal's name, as in JSON.
func (b BuiltinSignal) String() string {
	if int(b) < len(builtinNames) {
		return builtinNames[b]
	}
	return "invalid"
}

// Needs returns what the signal reads.
func (b BuiltinSignal) Needs() Need {
	if b == InFlight {
		return 0
	}
	return NeedLatency | NeedAge | NeedSuccess | NeedRamp
}

// CountsInFlight implements CountsInFlight.
func (BuiltinSignal) CountsInFlight() {}

// Cost implements Signal.
func (b BuiltinSignal) Cost(r *Record, now int64) int64 {
	if b == InFlight {
		return ewma.Log2(uint64(r.InFlight()) + 1)
	}
	l := r.shared.learning.Load()
	if b == Latency {
		return r.wait(now, l, 0)
	}
	lg, known := r.estimate(b, now, l)
	return r.expectedWait(lg, known, now, l)
}

// tieBand is the difference of cost, a tenth of a doubling, below which two estimates
// of waiting are taken for equal: estimates are that exact, and without it the
// endpoint that happens to look a little faster would get all of an idle client's
// requests.
const tieBand = 6554

// peakExcess is how many bits a held peak must exceed the average by to count.
const peakExcess = 5 << 16

// estimate returns log2 of the latency by the estimator of b; known is false without
// samples.
func (r *Record) estimate(b BuiltinSignal, now int64, l *learning) (lg int64, known bool) {
	switch b {
	case PeakHold:
		lg, known = r.peak.Log2(now, l.peak)
		return max(lg, 0), known // decayed below a nanosecond, sums would go wrong
	case LogMean:
		return r.mean.Log2(now, l.mean, r.shared.target.Load())
	}
	lg, known = r.mean.Log2(now, l.mean, r.shared.target.Load())
	if known { // then there is a peak too
		lg = r.peak.Above(lg+peakExcess, now, l.peak) - peakExcess
	}
	return lg, known
}

func validateSignal(policy string, s Signal) error {
	if b, ok := s.(BuiltinSignal); ok && int(b) >= len(builtinNames) {
		return fmt.Errorf("picker: %s.Signal is %d, want InFlight, Latency, PeakHold or LogMean", policy, b)
	}
	if v := reflect.ValueOf(s); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("picker: %s.Signal is a nil %T, want a signal or no value", policy, s)
	}
	if _, ok := s.(Estimating); ok && !reflect.ValueOf(s).Comparable() {
		return fmt.Errorf("picker: %s.Signal is a %T that cannot be compared, which one with estimators must be", policy, s)
	}
	if v, ok := s.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}
