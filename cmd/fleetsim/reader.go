package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is what a flag was set to, and by whom.
type value struct {
	texts []string // several only of a repeated flag
	from  origin
}

// reader reads flags and collects what is wrong with them. After a problem, a reader's
// method returns a value in range, so that reading can go on.
type reader struct {
	values   map[string]value
	preset   *preset
	problems []error
}

// text returns the last value of a flag.
func (r *reader) text(name string) string {
	v := r.values[name]
	if len(v.texts) == 0 {
		return ""
	}
	return v.texts[len(v.texts)-1]
}

func (r *reader) from(name string) origin { return r.values[name].from }

// refuse adds a problem of the flag's last value.
func (r *reader) refuse(name, want string, a ...any) { r.refuseValue(name, r.text(name), want, a...) }

// refuseValue adds a problem: the flag is text, and want says what is allowed.
func (r *reader) refuseValue(name, text, want string, a ...any) {
	by := ""
	switch r.from(name) {
	case byPreset:
		by = " by the preset " + r.preset.name
	case byDefault:
		by = " by default"
	}
	r.problems = append(r.problems, fmt.Errorf("fleetsim: -%s is %s%s, want %s", name, quotedValue(text), by, fmt.Sprintf(want, a...)))
}

// maxQuoted is how much of a value a message repeats.
const maxQuoted = 200

// quotedValue quotes JSON such that it can still be read.
func quotedValue(text string) string {
	if len(text) > maxQuoted {
		return strconv.Quote(strings.ToValidUTF8(text[:maxQuoted], "")) + "…"
	}
	if strings.ContainsRune(text, '"') && strconv.CanBackquote(text) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

func (r *reader) integer(name string, low, high int) int {
	n, err := strconv.Atoi(r.text(name))
	if err != nil || n < low || n > high {
		r.refuse(name, "a whole number from %d to %d", low, high)
		return low
	}
	return n
}

func (r *reader) number(name string, low, high float64) float64 {
	v, ok := part(r.text(name))
	if !ok || !(v >= low && v <= high) {
		r.refuse(name, "a number from %s to %s", number(low), number(high))
		return low
	}
	return v
}

// part reads a number, which may be in percent or a fraction.
func part(text string) (v float64, ok bool) {
	scale := 1.0
	if before, found := strings.CutSuffix(text, "%"); found {
		text, scale = strings.TrimSpace(before), 100
	} else if above, below, found := strings.Cut(text, "/"); found {
		divisor, err := strconv.ParseFloat(below, 64)
		if err != nil || divisor == 0 {
			return 0, false
		}
		text, scale = above, divisor
	}
	v, err := strconv.ParseFloat(text, 64)
	return v / scale, err == nil && !math.IsNaN(v/scale)
}

func (r *reader) duration(name string, low, high time.Duration) time.Duration {
	d, err := time.ParseDuration(r.text(name))
	if err != nil || d < low || d > high {
		r.refuse(name, "a time from %v to %v, such as %s", low, high, "20ms")
		return low
	}
	return d
}

func (r *reader) boolean(name string) bool {
	b, err := strconv.ParseBool(r.text(name))
	if err != nil {
		r.refuse(name, "true or false")
	}
	return b
}

func (r *reader) oneOf(name string, options ...string) string {
	if !slices.Contains(options, r.text(name)) {
		r.refuse(name, "%s", listed(options))
		return options[0]
	}
	return r.text(name)
}

// listed returns words as in "a, b or c".
func listed(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
