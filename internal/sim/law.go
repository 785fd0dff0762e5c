package sim

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Law is a distribution of durations, given by its quantiles. One uniform number
// makes one duration, so that a run with another policy meets the same work.
type Law interface {
	// At returns the quantile u, 0 < u < 1, in nanoseconds.
	At(u float64) float64
	// Mean returns the mean in nanoseconds.
	Mean() float64
	// Scale returns the law of f times the duration, f > 0.
	Scale(f float64) Law
	// Validate reports every parameter out of range, joined.
	Validate() error
}

// maxDuration bounds all times of a scenario, far from overflow.
const maxDuration = 1000 * time.Hour

func scaled(d time.Duration, f float64) time.Duration {
	return time.Duration(math.Round(float64(d) * f))
}

func within(field string, d, low, high time.Duration) error {
	if d < low || d > high {
		return fmt.Errorf("sim: %s is %v, want %v to %v", field, d, low, high)
	}
	return nil
}

func number(field string, v, low, high float64) error {
	if !(v >= low && v <= high) {
		return fmt.Errorf("sim: %s is %v, want %v to %v", field, v, low, high)
	}
	return nil
}

// Exponential is the exponential law.
type Exponential struct {
	// MeanTime is its mean, 1 ns to 1,000 h.
	MeanTime time.Duration
}

// At implements Law.
func (l Exponential) At(u float64) float64 { return -ln(u) * float64(l.MeanTime) }

// Mean implements Law.
func (l Exponential) Mean() float64 { return float64(l.MeanTime) }

// Scale implements Law.
func (l Exponential) Scale(f float64) Law { return Exponential{scaled(l.MeanTime, f)} }

// Validate implements Law.
func (l Exponential) Validate() error {
	return within("Exponential.MeanTime", l.MeanTime, 1, maxDuration)
}

// Fixed is always the same duration.
type Fixed struct {
	// Value is that duration, 0 to 1,000 h.
	Value time.Duration
}

// At implements Law.
func (l Fixed) At(float64) float64 { return float64(l.Value) }

// Mean implements Law.
func (l Fixed) Mean() float64 { return float64(l.Value) }

// Scale implements Law.
func (l Fixed) Scale(f float64) Law { return Fixed{scaled(l.Value, f)} }

// Validate implements Law.
func (l Fixed) Validate() error { return within("Fixed.Value", l.Value, 0, maxDuration) }

// Uniform is the uniform law between two durations.
type Uniform struct {
	// Low and High are its ends, 0 <= Low <= High <= 1,000 h.
	Low, High time.Duration
}

// At implements Law.
func (l Uniform) At(u float64) float64 {
	return float64(l.Low) + float64(u*float64(l.High-l.Low))
}

// Mean implements Law.
func (l Uniform) Mean() float64 { return float64(l.Low+l.High) / 2 }

// Scale implements Law.
func (l Uniform) Scale(f float64) Law { return Uniform{scaled(l.Low, f), scaled(l.High, f)} }

// Validate implements Law.
func (l Uniform) Validate() error {
	return errors.Join(within("Uniform.Low", l.Low, 0, maxDuration), within("Uniform.High", l.High, l.Low, maxDuration))
}

// LogNormal is the law whose logarithm is normal.
type LogNormal struct {
	// Median is e to the mean of the logarithm, 1 ns to 1,000 h.
	Median time.Duration
	// Sigma is the standard deviation of the natural logarithm, 0 to 4.
	Sigma float64
}

// At implements Law.
func (l LogNormal) At(u float64) float64 {
	z := math.Sqrt2 * math.Erfinv(2*u-1)
	return float64(l.Median) * exp(float64(l.Sigma*z))
}

// Mean implements Law.
func (l LogNormal) Mean() float64 { return float64(l.Median) * exp(l.Sigma*l.Sigma/2) }

// Scale implements Law.
func (l LogNormal) Scale(f float64) Law { return LogNormal{scaled(l.Median, f), l.Sigma} }

// Validate implements Law.
func (l LogNormal) Validate() error {
	return errors.Join(within("LogNormal.Median", l.Median, 1, maxDuration), number("LogNormal.Sigma", l.Sigma, 0, 4))
}

// Bimodal is one of two durations.
type Bimodal struct {
	// Short and Long are the durations, 0 to 1,000 h.
	Short, Long time.Duration
	// LongShare is the probability of Long, 0 to 1.
	LongShare float64
}

// At implements Law.
func (l Bimodal) At(u float64) float64 {
	if u < l.LongShare {
		return float64(l.Long)
	}
	return float64(l.Short)
}

// Mean implements Law.
func (l Bimodal) Mean() float64 {
	return float64(l.LongShare*float64(l.Long)) + float64((1-l.LongShare)*float64(l.Short))
}

// Scale implements Law.
func (l Bimodal) Scale(f float64) Law {
	return Bimodal{scaled(l.Short, f), scaled(l.Long, f), l.LongShare}
}

// Validate implements Law.
func (l Bimodal) Validate() error {
	return errors.Join(within("Bimodal.Short", l.Short, 0, maxDuration),
		within("Bimodal.Long", l.Long, 0, maxDuration), number("Bimodal.LongShare", l.LongShare, 0, 1))
}
