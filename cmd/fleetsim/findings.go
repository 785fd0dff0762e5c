package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// findings says in sentences what the figures say. They are true of any figures, good or
// bad.
func (r *report) findings() []string {
	var out []string
	for _, text := range []string{r.latencyFinding(), r.errorFinding()} {
		if text != "" {
			out = append(out, text)
		}
	}
	for i := range r.focuses[:min(len(r.focuses), 2)] {
		out = append(out, r.shareFinding(i))
	}
	return out
}

// contenders are the rows without the bound.
func (r *report) contenders() []row {
	return slices.DeleteFunc(slices.Clone(r.rows), func(row row) bool { return row.bound })
}

// latencyFinding orders the policies by p99.
func (r *report) latencyFinding() string {
	rows := slices.DeleteFunc(r.contenders(), func(row row) bool { return math.IsNaN(row.p99) })
	if len(rows) == 0 {
		return ""
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		switch {
		case a.p99 < b.p99:
			return -1
		case a.p99 > b.p99:
			return 1
		}
		return 0
	})
	var parts []string
	for _, row := range rows {
		text := fmt.Sprintf("%s with %s", latency(row.p99), row.Name)
		if !math.IsNaN(row.overBound) {
			text += fmt.Sprintf(" (%s the %s)", ratio(row.overBound), r.boundRole())
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("p99 of all requests: %s.", joined(parts))
}

// errorFinding is empty if nothing failed.
func (r *report) errorFinding() string {
	some := false
	var parts []string
	for _, row := range r.contenders() {
		some = some || row.errors > 0
		parts = append(parts, fmt.Sprintf("%s with %s", percent(row.errors), row.Name))
	}
	if !some {
		return ""
	}
	return "Failed requests: " + joined(parts) + "."
}

// shareFinding says what focus i got.
func (r *report) shareFinding(i int) string {
	f := r.focuses[i]
	var parts []string
	for _, row := range r.contenders() {
		parts = append(parts, fmt.Sprintf("%s with %s", percent(row.shares[i]), row.Name))
	}
	first := percent(r.contenders()[0].shares[i])
	if !slices.ContainsFunc(r.contenders(), func(row row) bool { return percent(row.shares[i]) != first }) {
		parts = []string{first + " with any policy"}
	}
	parts[0] = strings.Replace(parts[0], " with", " of the requests with", 1)
	who, pronoun, get := f.who(), "it", "gets"
	if f.count > 1 {
		pronoun, get = "they", "get"
	}
	head := fmt.Sprintf("%s%s %s", strings.ToUpper(who[:1]), who[1:], get)
	if f.incident != nil {
		head = fmt.Sprintf("While %s %s, %s %s", who, f.incident.does(), pronoun, get)
	}
	return fmt.Sprintf("%s %s; %s would get %s %s.", head, joined(parts), pronoun, percent(f.reference), f.meaning)
}

// joined returns parts as in "a, b and c".
func joined(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
