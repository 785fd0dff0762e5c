package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel/internal/sim"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// pageData is what the template shows.
type pageData struct {
	Style                        template.CSS
	Title, Lead, Eyebrow         string
	Facts                        []fact
	Findings, Notes              []string
	Warnings                     []string
	Legend                       []legendItem
	Summary                      htmlTable
	During                       []htmlTable
	Glance                       template.HTML
	OverTime, Shares, Queues     []picture
	Sweeps                       []picture
	SweepText, EndpointText      string
	SweepTables                  []htmlTable
	OverTimeTable, EndpointTable htmlTable
	Command, Requests            string
	Settings                     []settingRow
}

// fact is a word and what it is here.
type fact struct{ Name, Value string }

// picture is a drawing, or the drawings of one chart in its sizes.
type picture struct {
	Title string
	Wide  bool // takes the width of the page
	SVG   template.HTML
}

// legendItem is a policy with a sample of its line.
type legendItem struct {
	Name, Class string
	Sample      template.HTML
}

type settingRow struct{ Name, Value, From string }

// page returns the page as HTML that is XML too.
func page(r *report) ([]byte, error) {
	d := pageData{
		Style: template.CSS(pageStyle), Title: tied(r.title()), Lead: r.lead(), Eyebrow: r.eyebrow(), Facts: r.facts(),
		Findings: tiedAll(r.findings()), Warnings: tiedAll(r.warnings()), Notes: tiedAll(r.remarks()), Summary: r.summary(), Glance: bothSizes(r.rangeChart().draw),
		OverTimeTable: r.overTimeTable(), EndpointTable: r.endpointTable(), EndpointText: r.endpointText(),
		Command: r.command(), Requests: whole(r.requests),
	}
	for _, c := range r.lines {
		d.Legend = append(d.Legend, legendItem{c.label(), c.class, template.HTML(sample(c.class))})
	}
	for i, f := range r.focuses {
		if f.incident != nil {
			d.During = append(d.During, r.duringIncident(i))
		}
	}
	if i, ok := r.outage(); ok {
		d.During = append(d.During, r.aftermathTable(i))
	}
	d.OverTime = append(d.OverTime, pictureOf(r.latencyOverTime("p99", "p99", 0.99)), pictureOf(r.latencyOverTime("p50", "p50", 0.5)))
	if c := r.errorsOverTime(); c != nil {
		d.OverTime = append(d.OverTime, pictureOf(c))
	}
	if c := r.ejectedOverTime(); c != nil {
		d.OverTime = append(d.OverTime, pictureOf(c))
	}
	d.Shares, d.Queues = drawn(r.panels(panelFigures[0])), drawn(r.panels(panelFigures[1]))
	for k := range r.plan.sweeps {
		d.Sweeps = append(d.Sweeps, pictureOf(r.sweepChart(k)))
		d.SweepTables = append(d.SweepTables, r.sweepTable(k))
	}
	d.SweepText = r.sweepText()
	names := map[origin]string{byDefault: "default", byPreset: "preset", byUser: "command"}
	for _, g := range r.given {
		d.Settings = append(d.Settings, settingRow{"-" + g.name, g.shown(), names[g.from]})
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, d)
	return b.Bytes(), err
}

// bothSizes draws for wide and for narrow screens; the style shows one of the two.
func bothSizes(draw func(size) string) template.HTML {
	return template.HTML(draw(wide) + draw(narrow))
}

func pictureOf(c *chart) picture { return picture{Title: c.title, SVG: bothSizes(c.draw)} }

func drawn(panels []*panel) []picture {
	out := make([]picture, len(panels))
	for i, p := range panels {
		out[i] = picture{Title: p.title, SVG: template.HTML(p.draw())}
	}
	return out
}

// facts are what the description says, by headings.
func (p *plan) facts() []fact {
	names := []string{"Fleet", "Work", "Load"}
	lines := p.description()
	var out []fact
	for i, line := range lines {
		line = tied(line)
		switch {
		case i < len(names):
			out = append(out, fact{names[i], strings.TrimPrefix(line, "Work: ")})
		case i == len(lines)-2:
			out = append(out, fact{"Clients", line})
		case i == len(lines)-1:
			out = append(out, fact{"Runs", line})
		case p.streams > 0 && i == len(names):
			out = append(out, fact{"Streams", line})
		default:
			out = append(out, fact{"Incident", line})
		}
	}
	return out
}

func (r *report) endpointText() string {
	const each = "One panel for each policy, on the same axes. "
	n := r.specials()
	many := r.endpoints-n > maxThreads
	switch {
	case n == 0 && many:
		return each + "The range of all endpoints, and their median."
	case n == 0:
		return each + "A line for each endpoint."
	}
	text := each + "In colour: " + r.specialNames() + "."
	if n > maxSpecial {
		text = each + "In colour: the range of " + r.specialNames() + ", and their median."
	}
	switch {
	case n == r.endpoints:
		return text
	case many:
		return text + " In grey: the range of the others, and their median."
	}
	return text + " In grey: each of the others."
}

// specials returns how many endpoints something happens to.
func (r *report) specials() int {
	n := 0
	for i := range r.endpoints {
		if r.isSpecial(i) {
			n++
		}
	}
	return n
}

// specialNames names them, each once.
func (r *report) specialNames() string {
	var names []string
	for _, f := range r.focuses {
		if !slices.Contains(names, f.who()) {
			names = append(names, f.who())
		}
	}
	return joined(names)
}

func (r *report) sweepText() string {
	text := fmt.Sprintf("The same fleet and incidents with one thing changed, %s.", runsText(r.sweepRuns))
	if r.boundLine() >= 0 {
		text += fmt.Sprintf(" The %s does not depend on the number of clients", r.boundRole())
		if r.arrivals.Kind == sim.Closed {
			text += ", and others may get below it"
		}
		text += "."
	}
	return text
}

// shown is the value as a reader should see it: files without the folders of a machine.
func (g setting) shown() string {
	if g.name == "html" {
		return filepath.Base(g.value)
	}
	return g.value
}

// command returns what makes the same page again, without the folder of its file.
func (s *settings) command() string {
	words := []string{"go", "run", "./cmd/fleetsim"}
	for _, g := range s.given {
		if g.from != byUser {
			continue
		}
		value := g.shown()
		if value == "true" || value == "false" || value == "" {
			words = append(words, "-"+g.name+"="+value)
			continue
		}
		words = append(words, "-"+g.name, quoted(value))
	}
	return strings.Join(words, " ")
}

// quoted returns a word as a shell takes it.
func quoted(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_=,.:/@%+", c)
	}
	if strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
