package limit

import (
	"errors"
	"fmt"
)

// MaxLimit is the largest value of [Config].Floor and [Config].Ceiling.
const MaxLimit = 1 << 30

// Config says how a [Limiter] behaves. The zero Config is the documented default.
type Config struct {
	// Disabled turns the limit off: nothing is ever refused and nothing is counted.
	Disabled bool
	// Floor is what the limit never falls below. 0 means 1, which a hundred clients of a
	// small pool need; at most [MaxLimit].
	Floor int
	// Ceiling is what the limit never rises above once it exists, and not a limit of its own
	// without distress. 0 means none; otherwise at least Floor and at most [MaxLimit].
	Ceiling int
	// PerEndpoint is what one endpoint never has more of in flight, 0 for no bound, at most [MaxLimit].
	// It is for the owner, who has a [Cap] for each endpoint: a [Limiter] does nothing with it.
	PerEndpoint int
}

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c Config) Validate() error { return c.ValidateAs("limit: Config") }

// ValidateAs is Validate for whoever calls the configuration by another name.
func (c Config) ValidateAs(name string) error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(name+format, args...)) }
	if c.Floor < 0 || c.Floor > MaxLimit {
		add(".Floor is %d, want 0 to %d", c.Floor, MaxLimit)
	}
	switch {
	case c.Ceiling < 0 || c.Ceiling > MaxLimit:
		add(".Ceiling is %d, want 0 to %d", c.Ceiling, MaxLimit)
	case c.Ceiling != 0 && c.Ceiling < c.Floor:
		add(".Ceiling is %d, want 0 or at least Floor, which is %d", c.Ceiling, c.Floor)
	}
	if c.PerEndpoint < 0 || c.PerEndpoint > MaxLimit {
		add(".PerEndpoint is %d, want 0 to %d", c.PerEndpoint, MaxLimit)
	}
	return errors.Join(problems...)
}

// bounds returns floor and ceiling with the defaults filled in.
func (c Config) bounds() (floor, ceiling float64) {
	floor, ceiling = max(float64(c.Floor), 1), MaxLimit
	if c.Ceiling > 0 {
		ceiling = float64(c.Ceiling)
	}
	return floor, max(ceiling, floor)
}
