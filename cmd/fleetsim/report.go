package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// report is everything that table and page show.
type report struct {
	*plan
	*outcome
	rows []row
}

// row is the figures of one policy, means over the seeds. Times are in milliseconds.
type row struct {
	contender
	tally *tally

	requests, errors, p50, p99, p999, goodP99, most, evenness float64
	overBound                                                 float64   // p99 over the bound's; NaN without one
	shares                                                    []float64 // of each focus in its window
}

func newReport(p *plan, o *outcome) *report {
	r := &report{plan: p, outcome: o}
	bound := math.NaN()
	if i := p.boundLine(); i >= 0 {
		bound = mean(o.tallies[i].whole.p99)
	}
	for i, c := range p.lines {
		t := o.tallies[i]
		w := &t.whole
		next := row{
			contender: c, tally: t,
			requests: mean(w.requests), errors: mean(w.errors),
			p50: mean(w.p50), p99: mean(w.p99), p999: mean(w.p999), goodP99: mean(w.goodP99),
			most: mean(w.most), evenness: mean(w.evenness),
		}
		next.overBound = next.p99 / bound
		for k, f := range p.focuses {
			next.shares = append(next.shares, t.span(f).share(k))
		}
		r.rows = append(r.rows, next)
	}
	return r
}

// span returns the figures of the time that a focus is about.
func (t *tally) span(f focus) *span {
	if f.window < 0 {
		return &t.whole
	}
	return &t.windows[f.window]
}

// description says what was simulated, in a few sentences without full stops.
func (p *plan) description() []string {
	fleet := plural(p.endpoints, "endpoint")
	switch {
	case p.concurrency == 0:
		fleet += ", each on any number of requests at once"
	case p.sharing:
		fleet += fmt.Sprintf(", each sharing %s among its requests", plural(p.concurrency, "worker"))
	case p.concurrency == 1:
		fleet += ", each on one request at a time"
	default:
		fleet += fmt.Sprintf(", each on up to %s at once", plural(p.concurrency, "request"))
	}
	if text := p.speedText(); text != "" {
		fleet += "; " + text
	}
	out := []string{fleet, "Work: " + lawText(p.service), p.loadText()}
	if p.streams > 0 {
		known := map[string]string{"stream": "known to clients", "unknown": "not known to clients", "unary": "taken for short by clients"}
		out = append(out, fmt.Sprintf("%s of the requests are held (%s), %s", shortPercent(p.streams), lawText(p.streamTime), known[p.value("stream-kind")]))
	}
	for _, c := range p.incidents {
		out = append(out, c.sentence(p.duration))
	}
	clients := plural(p.clients, "client")
	if p.delay > 0 {
		clients += fmt.Sprintf(", %s of network each way", durationText(p.delay))
	}
	if p.timeout > 0 {
		clients += fmt.Sprintf(", giving up after %s", durationText(p.timeout))
	}
	if p.refresh > 0 {
		clients += fmt.Sprintf(", a new list without changes every %s", durationText(p.refresh))
	}
	run := durationText(p.duration) + " of requests"
	if p.warmUp > 0 {
		run += fmt.Sprintf(", the first %s left out", durationText(p.warmUp))
	}
	return append(out, clients, run+", "+runsText(p.seeds))
}

// value returns what a flag has in the end.
func (s *settings) value(name string) string {
	for _, g := range s.given {
		if g.name == name {
			return g.value
		}
	}
	return ""
}

// speedText says whose speed is not 1.
func (p *plan) speedText() string {
	var parts []string
	for i := 0; i < len(p.speeds); {
		k := i
		for k < len(p.speeds) && p.speeds[k] == p.speeds[i] {
			k++
		}
		how := ""
		switch v := p.speeds[i]; {
		case v < 1:
			how = number(1/v) + "× slower"
		case v > 1:
			how = number(v) + "× faster"
		}
		switch {
		case how == "":
		case k == i+1:
			parts = append(parts, fmt.Sprintf("%s is %s", endpointNames(i, 1), how))
		default:
			parts = append(parts, fmt.Sprintf("%s are %s", endpointNames(i, k-i), how))
		}
		i = k
	}
	return strings.Join(parts, ", ")
}

func (p *plan) loadText() string {
	a := p.scenario.Arrivals
	if a.Kind == sim.Closed {
		text := "A closed loop of " + plural(a.Users, "user")
		if a.Think > 0 {
			text += fmt.Sprintf(" who think for %s", durationText(a.Think))
		}
		return text
	}
	text := fmt.Sprintf("%s requests a second", rateText(a.Rate))
	switch a.Kind {
	case sim.Even:
		text += ", evenly spaced"
	case sim.Bursts:
		text += fmt.Sprintf(" on average, in the first %s of every %s", durationText(a.On), durationText(a.Period))
	default:
		text += " at random"
	}
	if load := p.scenario.Load(); load > 0 {
		text += fmt.Sprintf(": load %s", digits(load))
	}
	return text
}

func rateText(v float64) string {
	if v >= 1000 {
		return whole(int(v + 0.5))
	}
	return number(v)
}

// notes are what a reader of the figures has to know.
func (r *report) notes() []string { return append(r.warnings(), r.remarks()...) }

// warnings are those notes without which the figures mislead.
func (r *report) warnings() []string {
	out := r.overloads()
	if i := r.boundLine(); i >= 0 && r.arrivals.Kind == sim.Closed {
		out = append(out, fmt.Sprintf("CLOSED LOOP: %s is no bound here. Users who are answered sooner ask more often, so that each policy "+
			"meets other requests, and more or fewer of them: one that lets users wait at slow endpoints may well have the lower percentiles. "+
			"Compare the numbers of requests too.", r.lines[i].Name))
	}
	return out
}

// remarks are the other notes.
func (r *report) remarks() []string {
	out := []string{"Latencies are of all requests: failed ones count with the time to the failure, those given up with the timeout."}
	for _, row := range r.rows {
		if text, ok := unclear[row.Name]; ok {
			out = append(out, row.Name+" is "+text+".")
		}
	}
	for _, row := range r.rows {
		if n := row.tally.unanswered; n > 0 {
			out = append(out, fmt.Sprintf("%s: %s never got an answer, as there is no -timeout: they count as errors and are in no percentile.",
				row.Name, plural(n, "request")))
		}
	}
	if i := r.boundLine(); i >= 0 {
		out = append(out, boundText(r.lines[i]))
	}
	for _, f := range r.focuses {
		who := f.who()
		out = append(out, fmt.Sprintf("%s%s would get %s%s %s.", strings.ToUpper(who[:1]), who[1:], percent(f.reference), f.during(), f.meaning))
	}
	return out
}

// overloads says where more arrives than the fleet can do.
func (r *report) overloads() []string {
	if load := r.scenario.Load(); load >= 1 {
		return []string{fmt.Sprintf("OVERLOAD: the load is %s. More arrives than the fleet can do, so queues grow as long as requests arrive: "+
			"latencies say how long that was, more than what a policy is worth.", digits(load))}
	}
	var out []string
	for i := range r.incidents {
		c := &r.incidents[i]
		switch load := r.loadDuring(c); {
		case math.IsInf(load, 1):
			out = append(out, fmt.Sprintf("OVERLOAD for a while: while %s %s nobody can serve.", c.who(), c.does()))
		case load >= 1:
			out = append(out, fmt.Sprintf("OVERLOAD for a while: while %s %s the load is %s, more than the fleet can do.", c.who(), c.does(), digits(load)))
		}
	}
	return out
}

// during says when a focus is looked at, with a blank before it.
func (f focus) during() string {
	if f.incident == nil || f.incident.from == 0 && f.incident.until == forever {
		return ""
	}
	if f.incident.until == forever {
		return " from " + durationText(f.incident.from) + " on"
	}
	return fmt.Sprintf(" from %s to %s", durationText(f.incident.from), durationText(f.incident.until))
}

// boundText says what the bound sees, and how far one can rely on it.
func boundText(c contender) string {
	sees := "true queue and speed and takes the shortest expected delay"
	if c.Name == "jsq" {
		sees = "true queue and takes the shortest"
	}
	text := fmt.Sprintf("The %s %s sees every server's %s: no client can know that.", c.role, c.Name, sees)
	if c.role != "bound" {
		return text
	}
	return text + " It does not see how long a request will take, so that it is near the best and no strict lower bound."
}
