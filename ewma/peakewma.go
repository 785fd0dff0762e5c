package ewma

import (
	"math"
	"sync"
	"time"
)

// PeakForm says whose peak EWMA a [PeakEWMA] is. They differ in what happens between
// samples.
type PeakForm uint8

const (
	// FinagleForm folds a sample of zero in at every read, so that reads move the
	// estimate and its stamp (Finagle's and tower's PeakEwma).
	FinagleForm PeakForm = iota
	// LinkerdForm projects e^(-Δ/τ) at a read and changes nothing; a sample below the
	// projection is blended with the stored value, and one not later than the last is
	// dropped (Linkerd's rate-limit-aware load biaser).
	LinkerdForm
	// AlphaForm projects at a read, and moves by the fixed part Alpha towards a sample
	// below the projection. Without Tau it does not fade.
	AlphaForm
)

// PeakEWMA is peak-sensitive average latency exactly as others define it: a sample
// above the estimate replaces it at once, one below it pulls it down slowly. It is
// here for comparison and compatibility: it takes a lock at every call, since
// its two numbers must agree. [Peak] does the same work without one.
//
// Set the exported fields before the first call. The zero value is Finagle's with its
// default decay of 10 s. Safe for concurrent use.
type PeakEWMA struct {
	// Form is whose definition it follows.
	Form PeakForm
	// Tau is the time constant; 0 means 10 s, and no fading in AlphaForm.
	Tau time.Duration
	// Alpha is AlphaForm's step, 0 to 1.
	Alpha float64

	mu    sync.Mutex
	value float64 // nanoseconds
	at    int64
	known bool
}

func (p *PeakEWMA) tau() float64 {
	if p.Tau <= 0 {
		if p.Form == AlphaForm {
			return math.Inf(1)
		}
		return float64(10 * time.Second)
	}
	return float64(p.Tau)
}

// keep returns e^(-gap/τ), the part of the stored value that is left.
func (p *PeakEWMA) keep(now int64) float64 {
	gap := min(max(now-p.at, 0), int64(MaxGap))
	return math.Exp(-float64(gap) / p.tau())
}

// Observe adds a sample of x nanoseconds, taken at instant now.
func (p *PeakEWMA) Observe(x, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sample := float64(max(x, 0))
	if !p.known {
		p.value, p.at, p.known = sample, max(now, 0), true
		return
	}
	w := p.keep(now)
	switch p.Form {
	case LinkerdForm:
		if now <= p.at {
			return
		}
		if sample > p.value*w {
			p.value = sample
		} else {
			p.value = sample*(1-w) + p.value*w
		}
	case AlphaForm:
		faded := p.value * w
		if sample > faded {
			p.value = sample
		} else {
			p.value = faded + p.Alpha*(sample-faded)
		}
	default:
		p.fold(sample, w)
	}
	p.at = max(now, p.at)
}

// fold is Finagle's step.
func (p *PeakEWMA) fold(sample, w float64) {
	if sample > p.value {
		p.value = sample
	} else {
		p.value = sample*(1-w) + p.value*w
	}
}

// Value returns the estimate in nanoseconds at instant now; ok is false while there
// is no sample. In FinagleForm it changes the estimate.
func (p *PeakEWMA) Value(now int64) (ns float64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known {
		return 0, false
	}
	w := p.keep(now)
	if p.Form != FinagleForm {
		return p.value * w, true
	}
	p.fold(0, w)
	p.at = max(now, p.at)
	return p.value, true
}

// Log2 is log2 of Value in Q16.
func (p *PeakEWMA) Log2(now int64) (lg int64, ok bool) {
	v, ok := p.Value(now)
	if !ok || v < 1 {
		return 0, ok
	}
	return LatencyLog2(int64(min(v, math.MaxInt64/2))), true
}

// finaglePenalty is what Finagle adds to the load of an endpoint that has work and no
// history: 2^47 - 1 ns, so that the first request is free and a second impossible.
const finaglePenalty = 1<<47 - 1

// FinagleCost is Finagle's load for an estimate of ns nanoseconds (0 while unknown) and
// pending requests.
func FinagleCost(ns float64, pending int64) float64 {
	if ns == 0 && pending != 0 {
		return finaglePenalty + float64(pending)
	}
	return ns * float64(pending+1)
}
