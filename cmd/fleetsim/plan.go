package main

import (
	"math"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// plan is what to run, worked out from the flags.
type plan struct {
	*settings
	scenario sim.Scenario
	lines    []contender // the policies in order, and the bound last
	focuses  []focus
	sweeps   []sweep
	// sweepRuns is how many runs each point of a sweep is the mean of.
	sweepRuns int
}

// contender is a policy with its place in charts.
type contender struct {
	sim.Policy
	class string // of CSS: c0 is the default policy's
	bound bool
	role  string // of the bound: what to call it
}

// focus is a group of endpoints that differ from the others, for as long as they do.
type focus struct {
	first, count int
	incident     *incident // nil: they always differ
	window       int       // of the result; -1 is the whole run
	// reference is a share to compare theirs with, and meaning says which.
	reference float64
	meaning   string
}

// who names the endpoints.
func (f focus) who() string { return endpointNames(f.first, f.count) }

// newPlan works out what s asks for.
func newPlan(s *settings) *plan {
	p := &plan{settings: s, scenario: s.fleet()}
	p.addContenders()
	p.addFocuses()
	p.scenario.Bucket = s.step
	if s.step == 0 {
		p.scenario.Bucket = p.autoStep()
	}
	if s.html != "" && s.sweeps {
		p.sweeps = []sweep{p.loadSweep(), p.clientSweep()}
		p.sweepRuns = p.sweepRunsFor()
	}
	return p
}

func (p *plan) addContenders() {
	classes := []string{"c1", "c2", "c3", "c4", "c5", "c0"}
	has := slices.ContainsFunc(p.policies, func(q sim.Policy) bool { return isDefault(q) })
	next := 0
	for _, q := range p.policies {
		c := contender{Policy: q, class: "c0"}
		if !isDefault(q) || !has {
			c.class = classes[next]
			next++
		} else {
			has = false // a second one gets a colour of its own
		}
		p.lines = append(p.lines, c)
	}
	if p.settings.bound != nil {
		p.lines = append(p.lines, contender{Policy: *p.settings.bound, class: "cb", bound: true, role: p.boundRole()})
	}
}

// boundRole returns what the bound is called: where users wait for their answers it bounds
// nothing.
func (p *plan) boundRole() string {
	if p.arrivals.Kind == sim.Closed {
		return "reference"
	}
	return "bound"
}

// isDefault reports whether a policy is the library's default, by whatever name.
func isDefault(q sim.Policy) bool {
	return q.Bound == nil && q.Table == nil && (q.Config.Policy == nil || q.Name == "adaptive")
}

// boundLine returns the index of the bound in lines, -1 without one.
func (p *plan) boundLine() int {
	return slices.IndexFunc(p.lines, func(c contender) bool { return c.bound })
}

// addFocuses finds out which endpoints are of interest: those of incidents, or else the
// slowest ones.
func (p *plan) addFocuses() {
	for i := range p.incidents {
		c := &p.incidents[i]
		p.scenario.Windows = append(p.scenario.Windows, sim.Span{
			Name: c.tag(), From: c.from, Until: min(c.until, p.duration),
		})
		f := focus{first: c.first, count: c.count, incident: c, window: i}
		f.reference, f.meaning = p.partOf(c.first, c.count, nil), "if nobody noticed"
		switch c.kind {
		case "slow", "cold":
			f.reference, f.meaning = p.partOf(c.first, c.count, c), "in proportion to speed"
		case "drain":
			f.meaning = "otherwise"
		}
		p.focuses = append(p.focuses, f)
	}
	least := slices.Min(p.speeds)
	if len(p.focuses) > 0 || least == slices.Max(p.speeds) {
		return
	}
	f := focus{first: slices.Index(p.speeds, least), window: -1, meaning: "in proportion to speed"}
	for i := f.first; i < len(p.speeds) && p.speeds[i] == least; i++ {
		f.count++
	}
	f.reference = p.partOf(f.first, f.count, nil)
	p.focuses = append(p.focuses, f)
}

// partOf returns the part that count endpoints from first on have in the capacity of all,
// during an incident if there is one.
func (p *plan) partOf(first, count int, during *incident) float64 {
	own, all := 0.0, 0.0
	for i, v := range p.speeds {
		if during != nil && i >= during.first && i < during.first+during.count {
			v *= during.serves()
		}
		all += v
		if i >= first && i < first+count {
			own += v
		}
	}
	return own / all
}

// loadDuring returns the load while an incident lasts, infinity if nobody can serve, 0 where
// it means nothing.
func (p *plan) loadDuring(c *incident) float64 {
	if c.kind == "drain" && c.count == p.endpoints {
		return p.scenario.Load() // where all are drained, all are taken as equal
	}
	return p.scenario.Load() / (1 - p.partOf(c.first, c.count, nil)*(1-c.serves()))
}

// autoStep returns a step of the charts over time that gives about 60 points, each of
// them from enough requests for a p99 that does not only show chance.
func (p *plan) autoStep() time.Duration {
	const points, fewest, requests = 60, 12, 400
	step := p.duration.Seconds() / points
	if rate := p.scenario.Arrivals.Rate; rate > 0 {
		step = min(max(step, requests/(rate*float64(p.seeds))), p.duration.Seconds()/fewest)
	}
	power := math.Pow10(int(math.Floor(math.Log10(step))))
	for _, m := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if m*power >= step*0.999 {
			return min(time.Duration(m*power*1e9+0.5), p.duration)
		}
	}
	return p.duration
}
