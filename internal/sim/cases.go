package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Case is a scenario with the figures that are read off its results.
type Case struct {
	// Name is the scenario's.
	Name     string
	Scenario Scenario
	Figures  []Figure
	// Against is the policy whose figures are the measure of the relative ones.
	Against Policy
}

// Figure is one number of a result.
type Figure struct {
	// Name and Unit are for reports.
	Name, Unit string
	// Of reads it.
	Of func(*Result) float64
	// Relative divides it by the same figure of the case's Against, both as means over the
	// same seeds.
	Relative bool
}

// Measured is a figure of one policy.
type Measured struct {
	Figure
	Stat
}

// Measure runs the case with a policy for each seed, workers at a time, and its Against
// too if a figure wants it.
func (c Case) Measure(p Policy, seeds []uint64, workers int) ([]Measured, error) {
	jobs := make([]Job, 0, 2*len(seeds))
	for _, seed := range seeds {
		jobs = append(jobs, Job{c.Scenario, p, seed})
	}
	if slices.ContainsFunc(c.Figures, func(f Figure) bool { return f.Relative }) {
		for _, seed := range seeds {
			jobs = append(jobs, Job{c.Scenario, c.Against, seed})
		}
	}
	results, err := RunAll(jobs, workers, nil)
	if err != nil {
		return nil, err
	}
	own, against := results[:len(seeds)], results[len(seeds):]
	out := make([]Measured, len(c.Figures))
	for i, f := range c.Figures {
		out[i] = Measured{f, Over(own, f.Of)}
		if f.Relative {
			base := Over(against, f.Of).Mean
			out[i].Mean /= base
			out[i].SD /= base
		}
	}
	return out, nil
}

// Scale returns the case in slow motion: see [Scenario.Scale].
func (c Case) Scale(f float64) Case {
	c.Scenario = c.Scenario.Scale(f)
	c.Name = fmt.Sprintf("%s*%g", c.Name, f)
	c.Scenario.Name = c.Name
	return c
}

// Cases returns all named cases: fleet A and its variations, the scenarios S1 to S13, the
// fleets of published simulations, and the cases that all of these leave out.
func Cases() []Case {
	return slices.Concat(FleetACases(), SCases(), PublishedCases(), RobustCases(), ReportedCases())
}

// CasesNamed returns the cases whose names begin with one of the given prefixes, or with
// one of them before "*", which scales the case by the number after it ("S3*100").
// The error names the prefixes that fit none.
func CasesNamed(prefixes ...string) ([]Case, error) {
	all := Cases()
	var out []Case
	for _, prefix := range prefixes {
		name, factor := prefix, 1.0
		if before, after, scaled := strings.Cut(prefix, "*"); scaled {
			name = before
			if _, err := fmt.Sscanf(after, "%g", &factor); err != nil || !(factor >= 1e-3 && factor <= 1e3) {
				return nil, fmt.Errorf("sim: factor of case %q is %q, want 0.001 to 1000", name, after)
			}
		}
		found := false
		for _, c := range all {
			if c.Name != name && !strings.HasPrefix(c.Name, name+"/") {
				continue
			}
			found = true
			if factor != 1 {
				c = c.Scale(factor)
			}
			out = append(out, c)
		}
		if !found {
			var names []string // without what tells the cases of one kind apart
			for _, c := range all {
				if kind, _, _ := strings.Cut(c.Name, "/"); !slices.Contains(names, kind) {
					names = append(names, kind)
				}
			}
			return nil, fmt.Errorf("sim: case is %q, want one of %s, or one of their cases by its whole name", prefix, strings.Join(names, ", "))
		}
	}
	return out, nil
}
