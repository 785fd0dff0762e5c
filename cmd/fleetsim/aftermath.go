package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// well is the part of the requests that succeed where nothing is wrong.
const well = 0.99

// aftermath is how an incident went for one policy: while it lasted, soon after its end, and later.
type aftermath struct {
	during, soon, later float64 // the part of the requests that succeeded; NaN of none
	// back is from the incident's end until all steps are well again; never says that the last
	// one is not.
	back  time.Duration
	never bool
	// these and others are the endpoints that something happened to and the others: how many a client had
	// ejected, on average while the incident lasted, and of the others at the worst
	// step of the run. NaN of policies that eject nobody.
	these, others float64
}

// outage returns the index of the incident whose aftermath is worth a table: the first that ends
// before the run does and costs some policy a hundredth of the requests. ok is false if there
// is none.
func (r *report) outage() (focus int, ok bool) {
	for i, f := range r.focuses {
		if f.incident == nil || f.incident.until >= r.duration {
			continue
		}
		for _, row := range r.contenders() {
			a := r.aftermath(row, f)
			if a.during < well || a.soon < well || a.later < well {
				return i, true
			}
		}
	}
	return 0, false
}

// soonFor is how long "soon after" an incident is.
func (f focus) soonFor() time.Duration { return (f.incident.until - f.incident.from) / 2 }

// aftermath reads it off the time series.
func (r *report) aftermath(row row, f focus) aftermath {
	end := f.incident.until
	a := aftermath{these: math.NaN(), others: math.NaN(), during: 1 - mean(row.tally.span(f).errors)}
	steps := row.tally.steps
	a.soon = successOf(steps, end, end+f.soonFor())
	a.later = successOf(steps, end+f.soonFor(), r.duration)
	inside := 0
	for i := range steps {
		s := &steps[i]
		if s.from >= end && s.requests > 0 && float64(s.bad) > (1-well)*float64(s.requests) {
			a.back, a.never = s.from+r.scenario.Bucket-end, i == len(steps)-1
		}
		if s.ejected == nil {
			continue
		}
		these, others := s.ejectedOf(f, float64(r.seeds*r.clients))
		if math.IsNaN(a.these) {
			a.these, a.others = 0, 0
		}
		if s.from >= f.incident.from && s.from < end {
			inside++
			a.these += these
		}
		a.others = max(a.others, others)
	}
	if inside > 0 {
		a.these /= float64(inside)
	}
	return a
}

// successOf is that of the steps that begin in a part of the run.
func successOf(steps []step, from, until time.Duration) float64 {
	requests, bad := 0, 0
	for i := range steps {
		if s := &steps[i]; s.from >= from && s.from < until {
			requests += s.requests
			bad += s.bad
		}
	}
	if requests == 0 {
		return math.NaN()
	}
	return 1 - float64(bad)/float64(requests)
}

// ejectedOf returns how many of a focus's endpoints, and of the others, were ejected at the end of the
// step, on average over clients.
func (s *step) ejectedOf(f focus, clients float64) (these, others float64) {
	for i, n := range s.ejected {
		if i >= f.first && i < f.first+f.count {
			these += float64(n) / clients
		} else {
			others += float64(n) / clients
		}
	}
	return these, others
}

// backText says how soon.
func (a aftermath) backText() string {
	switch {
	case a.never:
		return "never"
	case a.back == 0:
		return "at once"
	}
	return durationText(a.back)
}

// aftermathHeads and aftermathCells are the same on terminal and page.
func (f focus) aftermathHeads() [2][]string {
	return [2][]string{
		{"", "success", durationText(f.soonFor()), "", "back to", "ejected", "of the"},
		{"policy", "meanwhile", "after", "later", shortPercent(well), "of " + f.short(), "others"},
	}
}

func (r *report) aftermathCells(row row, f focus) []string {
	a := r.aftermath(row, f)
	count := func(v float64) string {
		if math.IsNaN(v) {
			return "-"
		}
		return digits(v)
	}
	return []string{row.label(), percent(a.during), percent(a.soon), percent(a.later), a.backText(), count(a.these), count(a.others)}
}

// aftermathText is the terminal's part about an outage, empty without one.
func (r *report) aftermathText() string {
	i, ok := r.outage()
	if !ok {
		return ""
	}
	f := r.focuses[i]
	heads := f.aftermathHeads()
	lines := [][]string{heads[0], heads[1]}
	for _, row := range r.rows {
		lines = append(lines, r.aftermathCells(row, f))
	}
	note := fmt.Sprintf("Ejected: how many of the endpoints a client had ejected on average, %s of %s, and at the worst moment of the run of the others.",
		strings.TrimPrefix(f.during(), " "), f.who())
	return align(lines) + wrap(note) + "\n" + r.sparklines(f)
}

// aftermathTable is the page's.
func (r *report) aftermathTable(i int) htmlTable {
	f := r.focuses[i]
	heads := f.aftermathHeads()
	t := htmlTable{ID: "aftermath", Caption: "Success while it lasted and after it, and how many endpoints a client had ejected: " +
		"on average meanwhile of " + f.who() + ", at the worst moment of the run of the others"}
	for k := range heads[0] {
		t.Heads = append(t.Heads, strings.TrimSpace(heads[0][k]+" "+heads[1][k]))
	}
	for _, row := range r.rows {
		t.Rows = append(t.Rows, htmlRow{row.class, r.aftermathCells(row, f)})
	}
	return t
}
