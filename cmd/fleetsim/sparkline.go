package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// maxSpark is how many steps a line of the terminal shows; more are put together.
const maxSpark = 50

// levels are the heights of a success: the last is for what is well, and the others share the rest.
var levels = []rune("▁▂▃▄▅▆▇█")

// sparklines draws the success over time, a line for each policy, and f's incident above.
func (r *report) sparklines(f focus) string {
	steps := r.rows[0].tally.steps
	each := (len(steps) + maxSpark - 1) / maxSpark
	length := time.Duration(each) * r.scenario.Bucket
	width := 0
	for _, row := range r.rows {
		width = max(width, utf8.RuneCountInString(row.label()))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Success over time, in steps of %s: %c is %s and more, %c less than a seventh.\n",
		durationText(length), levels[len(levels)-1], shortPercent(well), levels[0])
	first, last := int(f.incident.from/length), int((f.incident.until-1)/length)
	fmt.Fprintf(&b, "%*s  %s%s %s\n", width, "", strings.Repeat(" ", first), strings.Repeat("─", last-first+1), f.incident.tag())
	for _, row := range r.rows {
		fmt.Fprintf(&b, "%-*s  ", width, row.label())
		for from := time.Duration(0); from < r.duration; from += length {
			b.WriteRune(levelOf(successOf(row.tally.steps, from, from+length)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// levelOf returns the height of a success, a blank for none.
func levelOf(success float64) rune {
	switch {
	case success >= well:
		return levels[len(levels)-1]
	case success >= 0:
		return levels[min(int(success*float64(len(levels)-1)), len(levels)-2)]
	}
	return ' '
}
