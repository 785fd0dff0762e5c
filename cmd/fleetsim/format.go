package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// number returns v with up to four digits that matter and without trailing zeros.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'g', 4, 64), ".0")
}

// digits returns v with three digits that matter.
func digits(v float64) string {
	decimals := 2
	switch a := math.Abs(v); {
	case a >= 99.95:
		decimals = 0
	case a >= 9.995:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// latency returns a number of milliseconds as text, with three digits that matter and the
// unit that suits it.
func latency(ms float64) string {
	switch {
	case math.IsNaN(ms):
		return "-"
	case ms == 0:
		return "0 ms"
	case ms < 0.09995:
		return digits(ms*1000) + " µs"
	case ms < 999.5:
		return digits(ms) + " ms"
	case ms < 999_500:
		return digits(ms/1000) + " s"
	}
	return whole(int(ms/1000+0.5)) + " s"
}

// durationText returns d to four digits, in one unit where that is short.
func durationText(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		name   string
		below  time.Duration
	}{
		{time.Nanosecond, "ns", time.Microsecond}, {time.Microsecond, "µs", time.Millisecond},
		{time.Millisecond, "ms", time.Second}, {time.Second, "s", 10 * time.Minute},
	} {
		if d < u.below {
			return number(float64(d)/float64(u.length)) + " " + u.name
		}
	}
	switch {
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	case d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	}
	return d.String()
}

// percent returns a part of a whole: exactly 0 is told from nearly nothing.
func percent(part float64) string {
	p := 100 * part
	decimals := 1
	switch {
	case math.IsNaN(part):
		return "-"
	case p == 0 || p >= 99.995:
		decimals = 0
	case p < 0.001:
		return "<0.001 %"
	case p < 0.1:
		decimals = 3
	case p < 1, p > 99:
		decimals = 2
	}
	return strconv.FormatFloat(p, 'f', decimals, 64) + " %"
}

// shortPercent is percent of a part that somebody has chosen.
func shortPercent(part float64) string { return number(100*part) + " %" }

// whole returns n, which is not negative, with a comma before each three digits.
func whole(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// times returns a factor in words.
func times(v float64) string { return number(v) + " times" }

// ratio returns how many times as much, as short as a table wants it.
func ratio(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	if v >= 99.95 {
		return whole(int(v+0.5)) + "×"
	}
	if v >= 9.995 {
		return strconv.FormatFloat(v, 'f', 1, 64) + "×"
	}
	return strconv.FormatFloat(v, 'f', 2, 64) + "×"
}

// plural returns n with a noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return whole(n) + " " + noun
}

// runsText says what a figure of n runs is.
func runsText(n int) string {
	if n == 1 {
		return "one run"
	}
	return "means of " + plural(n, "run")
}

// wrap breaks text into lines of up to 78 characters.
func wrap(text string) string { return wrapTo(text, 78) }

func wrapTo(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range unbroken(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+length > width:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += length
	}
	b.WriteString("\n")
	return b.String()
}

// unbroken returns the words of a text, numbers together with their units.
func unbroken(text string) []string {
	units := []string{"ns", "µs", "ms", "s", "min", "h", "%"}
	var out []string
	for word := range strings.FieldsSeq(text) {
		unit := strings.TrimRight(word, ".,:;)")
		if n := len(out); n > 0 && slices.Contains(units, unit) && strings.ContainsAny(out[n-1][len(out[n-1])-1:], "0123456789") {
			out[n-1] += " " + word
			continue
		}
		out = append(out, word)
	}
	return out
}

// tied returns a text that breaks at no blank between a number and its unit.
func tied(text string) string {
	words := unbroken(text)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, " ", "\u00a0")
	}
	return strings.Join(words, " ")
}

func tiedAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = tied(t)
	}
	return out
}
