package main

import (
	"fmt"
	"slices"
	"strings"
)

// aboutRuns are the flags that leave a preset's fleet as it is.
var aboutRuns = []string{
	"preset", "policies", "bound", "seeds", "seed", "duration", "warmup", "html", "sweeps", "sweep-seeds", "step",
}

// changes are the flags with which the user made another fleet of the preset's.
func (s *settings) changes() []string {
	var out []string
	for _, g := range s.given {
		if g.from == byUser && !slices.Contains(aboutRuns, g.name) {
			out = append(out, "-"+g.name+" "+g.value)
		}
	}
	return out
}

// title is a line about the whole.
func (p *plan) title() string {
	if p.preset != nil && len(p.changes()) == 0 {
		return strings.ToUpper(p.preset.line[:1]) + p.preset.line[1:]
	}
	text := "A fleet of " + plural(p.endpoints, "endpoint")
	if load := p.scenario.Load(); load > 0 {
		text += " at load " + digits(load)
	}
	return text
}

// eyebrow stands above the title.
func (p *plan) eyebrow() string {
	if p.preset != nil {
		return "Evenkeel fleetsim, preset " + p.preset.name
	}
	return "Evenkeel fleetsim"
}

// lead is the sentence below the title.
func (p *plan) lead() string {
	var names []string
	for _, c := range p.lines {
		if !c.bound {
			names = append(names, c.Name)
		}
	}
	text := "How " + joined(names) + " compare."
	if len(names) == 1 {
		text = "How " + names[0] + " does."
	}
	if changes := p.changes(); p.preset != nil && len(changes) > 0 {
		text = fmt.Sprintf("The preset %s with %s. %s", p.preset.name, strings.Join(changes, " "), text)
	}
	return text
}
