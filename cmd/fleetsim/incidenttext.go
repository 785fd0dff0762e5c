package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// incidentKinds are the flags of incidents.
var incidentKinds = []string{"slow", "fail", "hang", "cold", "drain"}

// maxIncidents is how many parts of a run the simulator measures apart.
const maxIncidents = 12

// incidents reads all incidents of a kind. Those of a preset are stretched.
func (r *reader) incidents(kind string, s *settings, stretch float64) []incident {
	var out []incident
	v := r.values[kind]
	for _, text := range v.texts {
		if text == "none" || text == "" {
			continue
		}
		c, err := parseIncident(kind, text, s)
		if err != nil {
			r.refuseValue(kind, text, "%v", err)
			continue
		}
		if v.from == byPreset {
			c.from, c.until = scaled(c.from, stretch), scaled(c.until, stretch)
		}
		if c.from >= s.duration {
			r.refuseValue(kind, text, "an incident that begins before the end of -duration, %v", s.duration)
			continue
		}
		out = append(out, c)
	}
	if len(out) > maxIncidents-len(s.incidents) {
		r.refuse(kind, "at most %d incidents in all", maxIncidents)
		return nil
	}
	return out
}

// parseIncident reads one incident. The error says what is allowed.
func parseIncident(kind, text string, s *settings) (incident, error) {
	c := incident{
		kind: kind, from: s.duration / 3, until: s.duration / 3 * 2,
		first: s.endpoints - 1, count: 1,
		by: 10, after: time.Millisecond, share: 1, as: picker.Failure,
	}
	items := strings.Split(text, ",")
	if !strings.Contains(items[0], "=") {
		var err error
		if c.from, c.until, err = parseSpan(items[0]); err != nil {
			return c, err
		}
		items = items[1:]
	}
	placed := 0
	seen := map[string]bool{}
	for _, item := range items {
		key, value, _ := strings.Cut(item, "=")
		if seen[key] {
			return c, fmt.Errorf("%s= once", key)
		}
		seen[key] = true
		if !slices.Contains(keysOf(kind), key) {
			return c, fmt.Errorf("FROM-UNTIL with any of %s, not %q", strings.Join(keysOf(kind), "=, ")+"=", item)
		}
		if slices.Contains([]string{"first", "last", "at"}, key) {
			placed++
		}
		if err := c.set(key, value, s.endpoints); err != nil {
			return c, err
		}
	}
	if placed > 1 {
		return c, fmt.Errorf("one of first=, last= and at=")
	}
	return c, nil
}

// keysOf returns what may be said of a kind of incident.
func keysOf(kind string) []string {
	where := []string{"first", "last", "at"}
	switch kind {
	case "slow", "cold":
		return append([]string{"by", "to"}, where...)
	case "fail":
		return append([]string{"after", "share", "as"}, where...)
	}
	return where
}

// set takes over one parameter.
func (c *incident) set(key, value string, endpoints int) error {
	switch key {
	case "first", "last", "at":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > endpoints {
			return fmt.Errorf("%s=1 to %d, the number of endpoints", key, endpoints)
		}
		switch key {
		case "first":
			c.first, c.count = 0, n
		case "last":
			c.first, c.count = endpoints-n, n
		default:
			c.first, c.count = n-1, 1
		}
	case "by", "to":
		v, ok := part(value)
		if !ok || !(v >= 0.001 && v <= 1e6) {
			return fmt.Errorf("%s=0.001 to 1000000, a factor", key)
		}
		if key == "by" {
			c.by = v
		} else {
			c.to = v
		}
	case "share":
		v, ok := part(value)
		if !ok || !(v > 0 && v <= 1) {
			return fmt.Errorf("share= above 0, up to 1 or 100%%")
		}
		c.share = v
	case "after":
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 || d > time.Hour {
			return fmt.Errorf("after=0s to 1h")
		}
		c.after = d
	case "as":
		outcomes := []picker.Outcome{picker.Failure, picker.Unreached, picker.Overload}
		i := slices.IndexFunc(outcomes, func(o picker.Outcome) bool { return o.String() == value })
		if i < 0 {
			return fmt.Errorf("as=failure, unreached or overload")
		}
		c.as = outcomes[i]
	}
	return nil
}

// parseSpan reads FROM-UNTIL, where UNTIL may be left out.
func parseSpan(text string) (from, until time.Duration, err error) {
	before, after, found := strings.Cut(text, "-")
	from, err1 := time.ParseDuration(before)
	until = forever
	var err2 error
	if after != "" {
		until, err2 = time.ParseDuration(after)
	}
	if !found || err1 != nil || err2 != nil || from < 0 || until <= from || until > forever {
		return 0, 0, fmt.Errorf("FROM-UNTIL first, such as 20s-40s, or 20s- for the rest of the time, not %q", text)
	}
	return from, until, nil
}
