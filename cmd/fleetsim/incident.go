package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/picker"
)

// forever is later than the end of any run.
const forever = 1000 * time.Hour

// incident is something that happens to some endpoints at once.
type incident struct {
	kind         string // the flag
	from, until  time.Duration
	first, count int     // the endpoints, the first of all being 0
	by, to       float64 // factors of the time of work; to is 0 where by holds until the end
	after        time.Duration
	share        float64
	as           picker.Outcome
}

// phases is what each of the endpoints goes through.
func (c incident) phases() []sim.Phase {
	p := sim.Phase{From: c.from, Until: c.until}
	switch c.kind {
	case "slow":
		p.Slow, p.SlowEnd = c.by, c.to
	case "cold":
		p.Slow, p.SlowEnd = c.by, c.to
		return []sim.Phase{{Until: c.from, Absent: true}, p}
	case "fail":
		p.Fail, p.FailAfter = c.as, c.after
		if c.share < 1 {
			p.FailShare = c.share
		}
	case "hang":
		p.Hang = true
	case "drain":
		p.Drained = true
	}
	return []sim.Phase{p}
}

// who names the endpoints, counted from 1.
func (c incident) who() string { return endpointNames(c.first, c.count) }

func endpointNames(first, count int) string {
	if count == 1 {
		return fmt.Sprintf("endpoint %d", first+1)
	}
	if count == 2 {
		return fmt.Sprintf("endpoints %d and %d", first+1, first+2)
	}
	return fmt.Sprintf("endpoints %d to %d", first+1, first+count)
}

// does says what happens, as the end of a sentence that begins with the endpoints.
func (c incident) does() string {
	verb := func(one, many string) string {
		if c.count == 1 {
			return one
		}
		return many
	}
	switch c.kind {
	case "slow":
		text := fmt.Sprintf("%s %s as long", verb("takes", "take"), times(c.by))
		if c.to != 0 {
			text += fmt.Sprintf(", changing to %s", number(c.to))
		}
		return text
	case "cold":
		text := fmt.Sprintf("%s and %s %s as long", verb("joins", "join"), verb("takes", "take"), times(c.by))
		if c.to != 0 {
			text += fmt.Sprintf(", changing to %s", number(c.to))
		}
		return text
	case "fail":
		text := verb("fails", "fail")
		if c.share < 1 {
			text += " " + shortPercent(c.share) + " of " + verb("its", "their") + " requests"
		}
		text += " in " + durationText(c.after)
		if c.as != picker.Failure {
			text += fmt.Sprintf(" (%v)", c.as)
		}
		return text
	case "hang":
		return verb("does", "do") + " not answer"
	}
	return verb("is", "are") + " drained"
}

// tag is a word or two for a chart.
func (c incident) tag() string {
	name := fmt.Sprintf("#%d", c.first+1)
	if c.count > 1 {
		name = fmt.Sprintf("#%d–%d", c.first+1, c.first+c.count)
	}
	switch c.kind {
	case "slow":
		return fmt.Sprintf("%s %s× slower", name, number(c.by))
	case "cold":
		return name + " cold"
	case "fail":
		if c.share < 1 {
			return fmt.Sprintf("%s fails %s", name, shortPercent(c.share))
		}
		return name + " failing"
	case "hang":
		return name + " hangs"
	}
	return name + " drained"
}

// when says when, as the end of a sentence.
func (c incident) when(end time.Duration) string {
	switch {
	case c.from == 0 && c.until >= end:
		return "all the time"
	case c.until >= end:
		return "from " + durationText(c.from) + " on"
	}
	return fmt.Sprintf("from %s to %s", durationText(c.from), durationText(c.until))
}

// sentence says all of it.
func (c incident) sentence(end time.Duration) string {
	who := c.who()
	return strings.ToUpper(who[:1]) + who[1:] + " " + c.does() + " " + c.when(end)
}

// serves returns the part of its usual capacity that an endpoint has during the incident.
func (c incident) serves() float64 {
	switch c.kind {
	case "slow", "cold":
		return 1 / c.by
	case "fail":
		return 1 - c.share
	}
	return 0
}
