package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxShares is how many columns of shares a table has room for.
const maxShares = 3

// table returns what the terminal shows.
func table(r *report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", wrap(r.title()), wrap(r.lead()))
	for _, line := range r.description() {
		b.WriteString(indent(line))
	}
	b.WriteString("\n")
	b.WriteString(columns(r))
	b.WriteString("\n")
	if text := r.aftermathText(); text != "" {
		b.WriteString(text + "\n")
	}
	for _, line := range r.notes() {
		b.WriteString(wrap(line))
	}
	return b.String()
}

// indent wraps a line and moves it to the right.
func indent(line string) string {
	text := strings.TrimSuffix(wrapTo(line, 74), "\n")
	return "  " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

// columns returns the figures, headings in two lines above them.
func columns(r *report) string {
	heads := [2][]string{
		{"", "", "", "", "", ""},
		{"policy", "requests", "errors", "p50", "p99", "p99.9"},
	}
	head := func(above, below string) {
		heads[0], heads[1] = append(heads[0], above), append(heads[1], below)
	}
	bounded := r.boundLine() >= 0
	if bounded {
		head("p99 to", r.boundRole()+"'s")
	}
	for i, f := range r.focuses[:min(len(r.focuses), maxShares)] {
		above := "share of"
		if r.incidents != nil && i > 0 {
			above = "of"
		}
		head(above, f.short())
	}
	if len(r.focuses) == 0 {
		head("busiest", "to mean")
	}
	head("most in", "flight")
	lines := [][]string{heads[0], heads[1]}
	for _, row := range r.rows {
		lines = append(lines, cells(row, bounded))
	}
	return align(lines)
}

// short is a focus in a word.
func (f focus) short() string {
	if f.count == 1 {
		return fmt.Sprintf("#%d", f.first+1)
	}
	return fmt.Sprintf("#%d-%d", f.first+1, f.first+f.count)
}

// cells returns a policy's line of the table.
func cells(r row, bounded bool) []string {
	out := []string{
		r.label(), whole(int(r.requests + 0.5)), percent(r.errors), latency(r.p50), latency(r.p99), latency(r.p999),
	}
	if bounded {
		out = append(out, ratio(r.overBound))
	}
	for _, s := range r.shares[:min(len(r.shares), maxShares)] {
		out = append(out, percent(s))
	}
	if len(r.shares) == 0 {
		out = append(out, ratio(r.evenness))
	}
	return append(out, whole(int(r.most+0.5)))
}

// label is the policy's name for a table.
func (c contender) label() string {
	if c.bound {
		return c.Name + " (" + c.role + ")"
	}
	return c.Name
}

// align lets columns stand below each other, the first to the left and others to the
// right.
func align(lines [][]string) string {
	widths := make([]int, len(lines[0]))
	for _, cells := range lines {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, cells := range lines {
		var line strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i == 0 {
				line.WriteString(c + pad)
			} else {
				line.WriteString("  " + pad + c)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteString("\n")
	}
	return b.String()
}
