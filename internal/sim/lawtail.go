package sim

import (
	"errors"
	"fmt"
	"sort"
	"time"
)

// Pareto is the Pareto law, cut off at a greatest duration: what would be longer takes
// exactly that long.
type Pareto struct {
	// Least is the least duration, 1 ns to 1,000 h.
	Least time.Duration
	// Alpha is the exponent of the tail, 0.1 to 100: the part longer than x falls as
	// x^-Alpha.
	Alpha float64
	// Cap is the greatest duration, Least to 1,000 h.
	Cap time.Duration
}

// At implements Law.
func (l Pareto) At(u float64) float64 {
	return min(float64(l.Least)*pow(u, -1/l.Alpha), float64(l.Cap))
}

// Mean implements Law.
func (l Pareto) Mean() float64 {
	low, high := float64(l.Least), float64(l.Cap)
	if l.Alpha == 1 {
		return low * (1 + ln(high/low))
	}
	return low * (l.Alpha - pow(low/high, l.Alpha-1)) / (l.Alpha - 1)
}

// Scale implements Law.
func (l Pareto) Scale(f float64) Law {
	return Pareto{scaled(l.Least, f), l.Alpha, scaled(l.Cap, f)}
}

// Validate implements Law.
func (l Pareto) Validate() error {
	return errors.Join(within("Pareto.Least", l.Least, 1, maxDuration),
		number("Pareto.Alpha", l.Alpha, 0.1, 100), within("Pareto.Cap", l.Cap, max(l.Least, 1), maxDuration))
}

// Quantile is one point of a [Quantiles] table.
type Quantile struct {
	// Part is how much is not longer than Time, 0 to 1.
	Part float64
	// Time is the duration.
	Time time.Duration
}

// Quantiles is a law given by some of its quantiles, such as a service's published
// percentiles, and straight lines between them. The first must have Part 0 and the last
// Part 1; both fields must not fall.
type Quantiles []Quantile

// At implements Law.
func (l Quantiles) At(u float64) float64 {
	i := max(sort.Search(len(l), func(k int) bool { return l[k].Part > u }), 1)
	if i == len(l) {
		return float64(l[i-1].Time)
	}
	a, b := l[i-1], l[i]
	f := (u - a.Part) / (b.Part - a.Part)
	return float64(a.Time) + float64(f*float64(b.Time-a.Time))
}

// Mean implements Law.
func (l Quantiles) Mean() float64 {
	sum := 0.0
	for i := 1; i < len(l); i++ {
		sum += float64((l[i].Part - l[i-1].Part) * float64(l[i].Time+l[i-1].Time) / 2)
	}
	return sum
}

// Scale implements Law.
func (l Quantiles) Scale(f float64) Law {
	out := make(Quantiles, len(l))
	for i, q := range l {
		out[i] = Quantile{q.Part, scaled(q.Time, f)}
	}
	return out
}

// Validate implements Law.
func (l Quantiles) Validate() error {
	if len(l) < 2 || l[0].Part != 0 || l[len(l)-1].Part != 1 {
		return errors.New("sim: Quantiles has not both ends, want the first Part 0 and the last 1")
	}
	var problems []error
	for i, q := range l {
		problems = append(problems, within(fmt.Sprintf("Quantiles[%d].Time", i), q.Time, 0, maxDuration))
		if i > 0 && !(q.Part >= l[i-1].Part && q.Time >= l[i-1].Time) {
			problems = append(problems, fmt.Errorf("sim: Quantiles[%d] is below Quantiles[%d], want both Part and Time not to fall", i, i-1))
		}
	}
	return errors.Join(problems...)
}
