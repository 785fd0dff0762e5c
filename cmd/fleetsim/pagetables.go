package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// htmlTable is one table of the page.
type htmlTable struct {
	ID, Caption string
	Groups      []htmlGroup // above the heads; nil for none
	Heads       []string
	Rows        []htmlRow
}

type htmlGroup struct {
	Name, Class string
	Span        int
}

// htmlRow is a row; a class gives it the sample of a policy's line.
type htmlRow struct {
	Class string
	Cells []string
}

// summary is the table of the terminal, with deviations.
func (r *report) summary() htmlTable {
	t := htmlTable{ID: "summary", Caption: "The whole run, of which there was one"}
	if r.seeds > 1 {
		t.Caption = fmt.Sprintf("The whole run, %s; ± is the standard deviation between them", runsText(r.seeds))
	}
	t.Heads = []string{"policy", "requests", "errors", "p50", "p99", "p99.9"}
	failures := slices.ContainsFunc(r.rows, func(row row) bool { return row.errors > 0 })
	if failures {
		t.Heads = append(t.Heads, "p99 of successes")
	}
	bounded, shown := r.boundLine() >= 0, min(len(r.focuses), 1)
	if bounded {
		t.Heads = append(t.Heads, "p99 / "+r.boundRole())
	}
	for _, f := range r.focuses[:shown] {
		t.Heads = append(t.Heads, "share of "+f.short())
	}
	if len(r.focuses) == 0 {
		t.Heads = append(t.Heads, "busiest / mean")
	}
	t.Heads = append(t.Heads, "most in flight")
	for _, row := range r.rows {
		w := &row.tally.whole
		cells := []string{
			row.label(), whole(int(row.requests + 0.5)), percent(row.errors), latency(row.p50),
			latency(row.p99) + plusMinus(w.p99), latency(row.p999) + plusMinus(w.p999),
		}
		if failures {
			cells = append(cells, latency(row.goodP99))
		}
		if bounded {
			cells = append(cells, ratio(row.overBound))
		}
		for _, s := range row.shares[:shown] {
			cells = append(cells, percent(s))
		}
		if len(row.shares) == 0 {
			cells = append(cells, ratio(row.evenness))
		}
		t.Rows = append(t.Rows, htmlRow{row.class, append(cells, whole(int(row.most+0.5)))})
	}
	return t
}

// plusMinus is empty where there is one run only.
func plusMinus(values []float64) string {
	if d := deviation(values); !math.IsNaN(d) {
		return " ± " + latency(d)
	}
	return ""
}

// duringIncident is what requests met that arrived while incident i lasted.
func (r *report) duringIncident(i int) htmlTable {
	f := r.focuses[i]
	t := htmlTable{
		ID: fmt.Sprintf("during-%d", i), Caption: f.incident.sentence(r.duration) + ": requests that arrived meanwhile",
		Heads: []string{"policy", "requests", "errors", "p50", "p99", "p99.9", "share of " + f.short(), "most in flight"},
	}
	for _, row := range r.rows {
		w := row.tally.span(f)
		t.Rows = append(t.Rows, htmlRow{row.class, []string{
			row.label(), whole(int(mean(w.requests) + 0.5)), percent(mean(w.errors)), latency(mean(w.p50)), latency(mean(w.p99)),
			latency(mean(w.p999)), percent(row.shares[i]), whole(int(mean(w.most) + 0.5)),
		}})
	}
	return t
}

// grouped returns a table with the same heads for each policy.
func (r *report) grouped(id, caption, first string, heads ...string) htmlTable {
	t := htmlTable{ID: id, Caption: caption, Heads: []string{first}}
	for _, row := range r.rows {
		t.Groups = append(t.Groups, htmlGroup{row.label(), row.class, len(heads)})
		t.Heads = append(t.Heads, heads...)
	}
	return t
}

// overTimeTable holds the figures of the charts over time.
func (r *report) overTimeTable() htmlTable {
	unit, name := timeUnit(r.duration)
	t := r.grouped("over-time", fmt.Sprintf("By time, in steps of %s, requests of all runs together", durationText(r.scenario.Bucket)),
		"from ("+name+")", "p50", "p99", "errors")
	for k := range r.rows[0].tally.steps {
		from := float64(r.rows[0].tally.steps[k].from) / float64(unit)
		cells := []string{strconv.FormatFloat(decimal(from), 'f', -1, 64)}
		for _, row := range r.rows {
			s := &row.tally.steps[k]
			errors := math.NaN()
			if s.requests > 0 {
				errors = float64(s.bad) / float64(s.requests)
			}
			cells = append(cells,
				latency(noneAsNaN(&s.latency, millis(s.latency.Quantile(0.5)))),
				latency(noneAsNaN(&s.latency, millis(s.latency.Quantile(0.99)))), percent(errors))
		}
		t.Rows = append(t.Rows, htmlRow{Cells: cells})
	}
	return t
}

// maxEndpointRows is how many endpoints a table lists.
const maxEndpointRows = 64

// endpointTable holds what each endpoint got in the whole run.
func (r *report) endpointTable() htmlTable {
	t := r.grouped("by-endpoint", "By endpoint, in the whole run: share of the requests, working workers on average, most in flight",
		"endpoint", "share", "at work", "most")
	listed := 0
	for i := range r.endpoints {
		left := r.endpoints > maxEndpointRows && len(r.focuses) > 0 && !r.isSpecial(i)
		if left || listed >= maxEndpointRows {
			continue
		}
		listed++
		cells := []string{fmt.Sprintf("#%d", i+1)}
		for _, row := range r.rows {
			sum := 0
			for _, n := range row.tally.picks {
				sum += n
			}
			cells = append(cells, percent(float64(row.tally.picks[i])/float64(max(sum, 1))),
				digits(row.tally.busy[i]/float64(row.tally.runs)), whole(row.tally.maxInFlight[i]))
		}
		t.Rows = append(t.Rows, htmlRow{Cells: cells})
	}
	if n := r.endpoints - listed; n > 0 {
		t.Caption += fmt.Sprintf(" (without %s that are like most)", plural(n, "endpoint"))
	}
	return t
}

// sweepTable holds the figures of sweep k.
func (r *report) sweepTable(k int) htmlTable {
	w := r.plan.sweeps[k]
	t := htmlTable{ID: "sweep-" + w.id, Caption: w.title + ", " + runsText(r.sweepRuns), Heads: []string{w.axis}}
	for _, row := range r.rows {
		t.Heads = append(t.Heads, row.label())
	}
	for j, at := range w.points {
		name := w.valueText(at.at)
		if at.at == w.own {
			name += " (this fleet)"
		}
		cells := []string{name}
		for i := range r.rows {
			cells = append(cells, latency(r.sweepP99(k, i, j)))
		}
		t.Rows = append(t.Rows, htmlRow{Cells: cells})
	}
	return t
}
