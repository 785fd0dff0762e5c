package main

import (
	"math"
	"strconv"
	"time"
)

// scale turns values into places on a chart.
type scale struct {
	kind     scaleKind
	low      float64 // values at the ends
	high     float64
	from, to float64 // places of the ends
}

type scaleKind uint8

const (
	linear scaleKind = iota
	logarithmic
	logOfOneMore // shows 0 too
)

// at returns the place of v. What is beyond an end is put there.
func (s scale) at(v float64) float64 {
	v = min(max(v, s.low), s.high)
	part := (s.turned(v) - s.turned(s.low)) / (s.turned(s.high) - s.turned(s.low))
	return s.from + float64(part*(s.to-s.from))
}

func (s scale) turned(v float64) float64 {
	switch s.kind {
	case logarithmic:
		return math.Log10(v)
	case logOfOneMore:
		return math.Log10(1 + v)
	}
	return v
}

// ticks returns about n values between the ends that are worth a line.
func (s scale) ticks(n int) []float64 {
	switch s.kind {
	case logarithmic:
		return logTicks(s.low, s.high, n)
	case logOfOneMore:
		out := []float64{0}
		for _, v := range logTicks(1, s.high, n-1) {
			if v >= 1 {
				out = append(out, v)
			}
		}
		return out
	}
	return linearTicks(s.low, s.high, n)
}

// linearTicks returns at most n+1 multiples of 1, 2 or 5 times a power of ten.
func linearTicks(low, high float64, n int) []float64 {
	rough := (high - low) / float64(n)
	if !(rough > 0) {
		return []float64{low}
	}
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	unit := 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= rough*0.999 {
			unit = m * power
			break
		}
	}
	var out []float64
	for i := math.Ceil(low/unit - 1e-9); i*unit <= high+unit*1e-9; i++ {
		out = append(out, decimal(i*unit)+0) // adding 0 makes 0 of -0
	}
	return out
}

// decimal rounds away what multiplication added: 0.30000000000000004.
func decimal(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	if err != nil {
		return v
	}
	return out
}

// logTicks returns at most n values that are 1, 2 and 5, or 1 and 3, or 1 times powers of
// ten, or of some powers only.
func logTicks(low, high float64, n int) []float64 {
	first, last := int(math.Floor(math.Log10(low))), int(math.Ceil(math.Log10(high)))
	for _, try := range []struct {
		digits []float64
		every  int
	}{
		{[]float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}, 1}, {[]float64{1, 1.5, 2, 3, 4, 5, 7}, 1}, {[]float64{1, 2, 5}, 1}, {[]float64{1, 3}, 1}, {[]float64{1}, 1},
		{[]float64{1}, 2}, {[]float64{1}, 3}, {[]float64{1}, 5},
	} {
		var out []float64
		for e := first; e <= last; e++ {
			if (e-first)%try.every != 0 {
				continue
			}
			for _, d := range try.digits {
				if v := decimal(d * math.Pow10(e)); v >= low*0.9999 && v <= high*1.0001 {
					out = append(out, v)
				}
			}
		}
		if len(out) <= n {
			return out
		}
	}
	return []float64{low, high}
}

// linearScale runs from 0 to a little above high.
func linearScale(high float64) scale {
	if !(high > 0) {
		high = 1
	}
	t := linearTicks(0, high*1.02, 5)
	end := t[len(t)-1]
	if len(t) > 1 && end < high*1.02 {
		end += t[1] - t[0]
	}
	return scale{kind: linear, high: end}
}

// logScale covers low to high, both above 0, with some room.
func logScale(low, high float64) scale {
	if !(low > 0) || math.IsInf(low, 0) {
		low, high = 1, 10
	}
	if high < low*2 {
		middle := math.Sqrt(low * high)
		low, high = middle/1.5, middle*1.5
	}
	margin := math.Pow(high/low, 0.05)
	return scale{kind: logarithmic, low: low / margin, high: high * margin}
}

// timeUnit returns the unit in which a chart of length d is labelled.
func timeUnit(d time.Duration) (unit time.Duration, name string) {
	switch {
	case d >= 6*time.Hour:
		return time.Hour, "h"
	case d >= 10*time.Minute:
		return time.Minute, "min"
	case d >= 2*time.Second:
		return time.Second, "s"
	}
	return time.Millisecond, "ms"
}
