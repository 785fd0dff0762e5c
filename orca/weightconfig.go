package orca

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// WeightConfig says how reports become weights. The zero WeightConfig is the documented default.
type WeightConfig struct {
	// Utilization lists where the utilization is taken from, by key as in text: the first of
	// them that a report has, and that is not 0. Neighbours that begin with "named_metrics."
	// or "utilization." are one place, the greatest of them. nil means
	// application_utilization, then cpu_utilization; at most 32. It has to be one that follows the
	// requests: of memory in use, or of anything else that stays as it is when fewer come, a backend
	// with fewer has less rate by the same utilization, and so loses weight, to Least of the median, and
	// the busiest gains, to Most.
	Utilization []string

	// ErrorPenalty is how much utilization a request that fails counts for: the part of
	// requests that fail times this is added to the utilization, so that a backend that fails
	// fast does not look like one with room. 0 means 1, NoErrorPenalty none.
	ErrorPenalty float64

	// Blackout is how long an endpoint has to report before its weight is used: its first
	// reports are of a start. 0 means 10 s, negative none.
	Blackout time.Duration

	// Expiry is how long a report counts without another. Then the endpoint is unknown, and
	// Blackout begins again with its next report. 0 means 3 min. At least 1 ms.
	Expiry time.Duration

	// Period is the least time between two recomputations. 0 means 1 s. At least 1 ms.
	Period time.Duration

	// Least and Most bound a weight, as multiples of the median of the believed ones: see
	// [Weights.Update]. 0 means 0.1 and 10. Least from 1e-6 to 1, Most from 1 to 1e6.
	Least, Most float64

	// Hysteresis is how much a weight has to change, as a part of itself, before any is
	// changed. 0 means 0.02, -1 none; below 1.
	Hysteresis float64

	// MeanForUnknown gives unknown endpoints the mean of the known, as gRPC does, not their
	// median.
	MeanForUnknown bool
}

// NoErrorPenalty as [WeightConfig].ErrorPenalty leaves failures out of the weight.
const NoErrorPenalty = -1

// minLeast is the least weight that a list of endpoints can have.
const minLeast = 1e-6

// maxSources is how many keys a WeightConfig may list: they are looked for at the end of each
// request.
const maxSources = 32

var defaultUtilization = []string{ApplicationName, CPUName}

// withDefaults returns c with its zero values replaced.
func (c WeightConfig) withDefaults() WeightConfig {
	if c.Utilization == nil {
		c.Utilization = defaultUtilization
	}
	c.ErrorPenalty = orDefault(c.ErrorPenalty, 1)
	c.Blackout = orDefault(c.Blackout, 10*time.Second)
	c.Expiry = orDefault(c.Expiry, 3*time.Minute)
	c.Period = orDefault(c.Period, time.Second)
	c.Least = orDefault(c.Least, 0.1)
	c.Most = orDefault(c.Most, 10)
	c.Hysteresis = orDefault(c.Hysteresis, 0.02)
	return c
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c WeightConfig) Validate() error {
	d := c.withDefaults()
	var problems []error
	bad := func(field string, value any, want string) {
		problems = append(problems, fmt.Errorf("orca: WeightConfig.%s is %v, want %s", field, value, want))
	}
	if n := len(d.Utilization); n == 0 || n > maxSources {
		bad("Utilization", fmt.Sprintf("a list of %d", n), fmt.Sprintf("1 to %d keys", maxSources))
	}
	for i, key := range d.Utilization {
		if _, ok := sourceOf(key); !ok {
			bad(fmt.Sprintf("Utilization[%d]", i), fmt.Sprintf("%q", key), "a key such as \"cpu_utilization\" or \"named_metrics.x\"")
		} else if slices.Contains(d.Utilization[:i], key) {
			bad(fmt.Sprintf("Utilization[%d]", i), fmt.Sprintf("%q", key), "each key once")
		}
	}
	if p := d.ErrorPenalty; !(p == NoErrorPenalty || p >= 0 && p <= 1e6) {
		bad("ErrorPenalty", p, "NoErrorPenalty or up to 1e6")
	}
	if d.Expiry < time.Millisecond {
		bad("Expiry", d.Expiry, "at least 1ms")
	}
	if d.Period < time.Millisecond {
		bad("Period", d.Period, "at least 1ms")
	}
	if !(d.Least >= minLeast && d.Least <= 1) {
		bad("Least", d.Least, "1e-6 to 1")
	}
	if !(d.Most >= 1 && d.Most <= 1e6) {
		bad("Most", d.Most, "1 to 1e6")
	}
	if h := d.Hysteresis; !(h == -1 || h >= 0 && h < 1) {
		bad("Hysteresis", h, "0 or more, below 1, or -1 for none")
	}
	return errors.Join(problems...)
}

// source is one place of a report that has a utilization.
type source struct {
	scalar Fields // 0: one of the names
	named  bool   // of Named, not of Utilizations
	name   string
}

func sourceOf(key string) (source, bool) {
	if name, ok := strings.CutPrefix(key, NamedPrefix); ok {
		return source{named: true, name: name}, name != ""
	}
	if name, ok := strings.CutPrefix(key, UtilizationPrefix); ok {
		return source{name: name}, name != ""
	}
	switch key {
	case CPUName:
		return source{scalar: CPU}, true
	case MemoryName:
		return source{scalar: Memory}, true
	case ApplicationName:
		return source{scalar: Application}, true
	}
	return source{}, false
}

// utilization returns the utilization that a report has by the first source that has one, 0 if
// none has. ok is false if what would be used is no number a utilization can be.
func utilization(r *Report, sources []source) (u float64, ok bool) {
	for i := range sources {
		s := &sources[i]
		last := i == len(sources)-1 || sources[i+1].scalar != 0
		switch {
		case s.scalar == CPU:
			u = r.CPU
		case s.scalar == Memory:
			u = r.Memory
		case s.scalar == Application:
			u = r.Application
		case s.named:
			u = max(u, positive(r.Named, s.name))
		default:
			u = max(u, positive(r.Utilizations, s.name))
		}
		if s.scalar == 0 && !last {
			continue // the next is of the same place
		}
		if u != 0 {
			// NaN ends here too.
			return u, u > 0 && u <= math.MaxFloat64
		}
	}
	return 0, true
}

// positive returns a metric, 0 if it cannot be a utilization: other metrics of the same place may.
func positive(m Metrics, name string) float64 {
	if v, ok := m.Get(name); ok && v > 0 && v <= math.MaxFloat64 {
		return v
	}
	return 0
}
