package picker

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// Estimator is one endpoint's estimate of latency, if the built-in ones do not do. Its
// methods are called concurrently, Log2 on every comparison.
type Estimator interface {
	// Observe adds a sample of x nanoseconds, taken at instant now.
	Observe(x, now int64)
	// Log2 returns log2 of the estimate in nanoseconds at instant now, in Q16; ok is
	// false while there is no sample.
	Log2(now int64) (lg int64, ok bool)
}

// Estimating is a Signal with an estimator of its own for each endpoint. A signal that
// implements it must be comparable (==), has NeedEstimator among its needs, and finds the
// endpoint's estimator with [Record.Estimator]. It outlives updates as everything in a
// record does; another signal's takes its place. Just after a change of policy a pick may
// still find the one before: check the type.
type Estimating interface {
	Signal
	// NewEstimator returns an estimator without samples.
	NewEstimator() Estimator
}

// ownEstimator remembers whose the estimator is.
type ownEstimator struct {
	by        Estimating
	estimator Estimator
}

// Estimator returns the estimator of the signal in use, nil if it has none.
func (r *Record) Estimator() Estimator {
	if o := r.estimator.Load(); o != nil {
		return o.estimator
	}
	return nil
}

func (r *Record) observeOwn(x, now int64) {
	if o := r.estimator.Load(); o != nil {
		o.estimator.Observe(x, now)
	}
}

func (r *Record) ownLog2(now int64) (lg int64, ok bool) {
	if o := r.estimator.Load(); o != nil {
		return o.estimator.Log2(now)
	}
	return 0, false
}

// UseSignal gives every member's record an estimator of s, if s is [Estimating] and the
// record does not have one of its already. A policy of your own calls it in Build.
func (m *Members) UseSignal(s Signal) {
	e, ok := s.(Estimating)
	if !ok {
		return
	}
	comparable := reflect.ValueOf(e).Comparable()
	for _, r := range m.records {
		if o := r.estimator.Load(); o != nil && comparable && reflect.ValueOf(o.by).Comparable() && o.by == e {
			continue
		}
		r.estimator.Store(&ownEstimator{by: e, estimator: e.NewEstimator()})
	}
}

// PeakEWMA is the expected wait by somebody else's peak EWMA ([ewma.PeakEWMA]). Each
// look at it takes the endpoint's lock. The zero value is Finagle's.
type PeakEWMA struct {
	// Form is whose definition it follows.
	Form ewma.PeakForm
	// Tau is the time constant, 0 to an hour; 0 means 10 s, and no fading in
	// ewma.AlphaForm.
	Tau time.Duration
	// Alpha is the step of ewma.AlphaForm, 0 to 1; 0 means 0.3. Others ignore it.
	Alpha float64
	// Plain leaves the cost at estimate × (in flight + 1), as its authors have it:
	// failures, the age of unanswered requests and overload hints do not count, and
	// an endpoint without samples costs what it does in Finagle, nothing for the first
	// request and too much for a second.
	Plain bool
}

// Validate reports every setting out of range, joined.
func (p PeakEWMA) Validate() error {
	var problems []error
	if p.Form > ewma.AlphaForm {
		problems = append(problems, fmt.Errorf("picker: PeakEWMA.Form is %d, want FinagleForm, LinkerdForm or AlphaForm", p.Form))
	}
	if p.Tau < 0 || p.Tau > ewma.MaxGap {
		problems = append(problems, fmt.Errorf("picker: PeakEWMA.Tau is %v, want 0 to %v", p.Tau, ewma.MaxGap))
	}
	if !(p.Alpha >= 0 && p.Alpha <= 1) {
		problems = append(problems, fmt.Errorf("picker: PeakEWMA.Alpha is %v, want 0 to 1", p.Alpha))
	}
	return errors.Join(problems...)
}

// Needs returns what the signal reads.
func (p PeakEWMA) Needs() Need {
	if p.Plain {
		return NeedLatency | NeedEstimator
	}
	return NeedLatency | NeedAge | NeedSuccess | NeedEstimator | NeedRamp
}

// NewEstimator implements Estimating.
func (p PeakEWMA) NewEstimator() Estimator {
	if p.Alpha == 0 {
		p.Alpha = 0.3
	}
	return &ewma.PeakEWMA{Form: p.Form, Tau: p.Tau, Alpha: p.Alpha}
}

// CountsInFlight implements CountsInFlight.
func (PeakEWMA) CountsInFlight() {}

// Cost implements Signal.
func (p PeakEWMA) Cost(r *Record, now int64) int64 {
	lg, known := r.ownLog2(now)
	if !p.Plain {
		return r.expectedWait(lg, known, now, r.shared.learning.Load())
	}
	k := uint64(r.InFlight())
	if !known && k > 0 {
		return 47<<16 + ewma.Log2(k) // see ewma.FinagleCost
	}
	return lg + ewma.Log2(k+1)
}
