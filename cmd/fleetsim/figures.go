package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// timeAxis is that of charts over time. short leaves the title out and puts the unit to
// each label.
func (r *report) timeAxis(short bool) axis {
	unit, name := timeUnit(r.duration)
	a := axis{
		title: "time since the start (" + name + ")",
		scale: scale{kind: linear, high: float64(r.duration) / float64(unit)},
		label: func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) },
	}
	if short {
		a.title = ""
		a.label = func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + " " + name }
		a.ticks = linearTicks(0, a.scale.high, 4)
	}
	return a
}

// onTimeAxis returns where an instant is.
func (r *report) onTimeAxis(d time.Duration) float64 {
	unit, _ := timeUnit(r.duration)
	return float64(d) / float64(unit)
}

// bands are the incidents, and the warm-up.
func (r *report) bands() []band {
	var out []band
	if r.warmUp > 0 {
		out = append(out, band{"warm-up", 0, r.onTimeAxis(r.warmUp)})
	}
	for _, c := range r.incidents {
		out = append(out, band{c.tag(), r.onTimeAxis(c.from), r.onTimeAxis(min(c.until, r.duration))})
	}
	return out
}

// overTime is a chart with a line for each policy, of a figure of each step.
func (r *report) overTime(id, title, unit string, of func(*step) float64) *chart {
	c := &chart{id: id, title: title, x: r.timeAxis(false), bands: r.bands(), own: math.NaN()}
	c.y.title = unit
	for _, row := range r.rows {
		line := series{name: row.Name, class: row.class}
		for i := range row.tally.steps {
			s := &row.tally.steps[i]
			line.points = append(line.points, place{r.onTimeAxis(s.from + r.scenario.Bucket/2), of(s)})
		}
		c.series = append(c.series, line)
	}
	return c
}

// latencyOverTime is that of a quantile.
func (r *report) latencyOverTime(id, name string, q float64) *chart {
	c := r.overTime(id, name+" over time", name+" latency, log scale", func(s *step) float64 {
		return noneAsNaN(&s.latency, millis(s.latency.Quantile(q)))
	})
	c.useLatencies()
	c.desc = c.describe(latency)
	return c
}

// errorsOverTime is nil if there are none to speak of.
func (r *report) errorsOverTime() *chart {
	c := r.overTime("errors", "Errors over time", "requests that failed (%)", func(s *step) float64 {
		if s.requests == 0 {
			return math.NaN()
		}
		return 100 * float64(s.bad) / float64(s.requests)
	})
	most := c.greatest()
	if !(most > 0) {
		return nil
	}
	c.y.scale = linearScale(most)
	c.y.label = percentLabel
	c.desc = c.describe(func(v float64) string { return percent(v / 100) })
	return c
}

// ejectedOverTime is nil if nobody was ejected. Policies that eject nobody are left out.
func (r *report) ejectedOverTime() *chart {
	c := r.overTime("ejected", "Ejected endpoints over time", "endpoints that a client has ejected, mean of all clients", func(s *step) float64 {
		if s.ejected == nil {
			return math.NaN()
		}
		_, all := s.ejectedOf(focus{}, float64(r.seeds*r.clients))
		return all
	})
	c.series = slices.DeleteFunc(c.series, func(line series) bool {
		return !slices.ContainsFunc(line.points, func(p place) bool { return !math.IsNaN(p.y) })
	})
	most := c.greatest()
	if !(most > 0) {
		return nil
	}
	c.y.scale = linearScale(most)
	c.y.label = func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	c.desc = c.describe(digits)
	return c
}

func percentLabel(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + " %" }

// useLatencies chooses the y axis for latencies.
func (c *chart) useLatencies() {
	low, high := math.Inf(1), 0.0
	for _, line := range c.series {
		for _, p := range line.points {
			if p.y > 0 {
				low, high = min(low, p.y), max(high, p.y)
			}
		}
	}
	c.y.scale = logScale(low, high)
	c.y.label = latencyLabel
}

// latencyLabel is a round latency.
func latencyLabel(v float64) string {
	switch {
	case v >= 1000:
		return strconv.FormatFloat(decimal(v/1000), 'f', -1, 64) + " s"
	case v >= 0.1:
		return strconv.FormatFloat(v, 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(decimal(v*1000), 'f', -1, 64) + " µs"
}

// greatest returns the greatest value of all lines, 0 of none.
func (c *chart) greatest() float64 {
	most := 0.0
	for _, line := range c.series {
		most = max(most, greatest([][]place{line.points}))
	}
	return most
}

// describe says in words how the lines go.
func (c *chart) describe(text func(float64) string) string {
	var parts []string
	for _, line := range c.series {
		var values []float64
		for _, p := range line.points {
			if !math.IsNaN(p.y) {
				values = append(values, p.y)
			}
		}
		if len(values) == 0 {
			parts = append(parts, line.name+" has none")
			continue
		}
		slices.Sort(values)
		parts = append(parts, fmt.Sprintf("%s: median %s, from %s to %s", line.name,
			text(values[len(values)/2]), text(values[0]), text(values[len(values)-1])))
	}
	return "Line chart. " + strings.Join(parts, "; ") + "."
}

// sweepChart is the chart of sweep k.
func (r *report) sweepChart(k int) *chart {
	w := r.plan.sweeps[k]
	c := &chart{id: w.id, title: w.title, own: w.own}
	c.y.title = "p99 latency, log scale"
	c.x.title = w.axis
	c.x.label = func(v float64) string { return rateText(v) }
	low, high := w.points[0].at, w.points[len(w.points)-1].at
	switch {
	case w.logarithmic:
		c.x.scale = logScale(low, high)
	default:
		margin := max((high-low)*0.04, 0.01)
		c.x.scale = scale{kind: linear, low: low - margin, high: high + margin}
		c.x.label = func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	}
	for i, row := range r.rows {
		line := series{name: row.Name, class: row.class, marked: true}
		for j, at := range w.points {
			line.points = append(line.points, place{at.at, r.sweepP99(k, i, j)})
		}
		line.tip = func(p place) string {
			return fmt.Sprintf("%s at %s: %s", row.Name, w.valueText(p.x), latency(p.y))
		}
		c.series = append(c.series, line)
	}
	c.useLatencies()
	c.desc = c.describe(latency)
	return c
}

// sweepP99 returns the mean p99 of policy i at point j of sweep k.
func (r *report) sweepP99(k, i, j int) float64 {
	line := r.outcome.sweeps[k][i]
	if r.plan.sweeps[k].boundOnce && r.rows[i].bound {
		j = 0
	}
	return mean(line[j])
}

// valueText is a value of what a sweep changes.
func (w *sweep) valueText(v float64) string {
	if w.percent {
		return digits(v)
	}
	return rateText(v)
}

// rangeChart shows the quantiles of the whole run.
func (r *report) rangeChart() *ranges {
	c := &ranges{
		id: "glance", title: "p50, p99 and p99.9 of each policy",
		mark: math.NaN(),
		x:    axis{title: "latency of all requests, log scale", label: latencyLabel},
	}
	low, high := math.Inf(1), 0.0
	var parts []string
	for _, row := range r.rows {
		if row.p50 > 0 {
			low = min(low, row.p50)
		}
		if row.p999 > 0 {
			high = max(high, row.p999)
		}
		if row.bound && !math.IsNaN(row.p99) {
			c.mark, c.markName = row.p99, "p99 of "+row.label()
		}
		c.rows = append(c.rows, quantiles3{row.Name, row.class, row.p50, row.p99, row.p999})
		parts = append(parts, fmt.Sprintf("%s: %s, %s and %s", row.label(), latency(row.p50), latency(row.p99), latency(row.p999)))
	}
	c.x.scale = logScale(low, high)
	c.desc = "p50, p99 and p99.9. " + strings.Join(parts, "; ") + "."
	return c
}
