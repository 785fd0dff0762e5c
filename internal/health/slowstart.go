package health

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Bounds of [SlowStartConfig].
const (
	MaxSlowStart  = time.Hour
	MinAggression = 0.1
	MaxAggression = 10
)

// SlowStartConfig says how an endpoint that joins or returns gets up to its share. The zero
// SlowStartConfig is the documented default.
type SlowStartConfig struct {
	// Window is how long it takes. 0 means 10 s; otherwise 1 ms to [MaxSlowStart].
	Window time.Duration
	// Aggression bends the way there: with 1, which is what 0 means, the share grows evenly,
	// above that faster at first, below slower. [MinAggression] to [MaxAggression].
	Aggression float64
	// Least is the share that it begins with. 0 means 0.1; otherwise above 0, at most 1.
	Least float64
}

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c SlowStartConfig) Validate() error {
	var problems []error
	if c.Window != 0 && (c.Window < time.Millisecond || c.Window > MaxSlowStart) {
		problems = append(problems, fmt.Errorf("health: SlowStartConfig.Window is %v, want 0 or %v to %v",
			c.Window, time.Millisecond, MaxSlowStart))
	}
	if c.Aggression != 0 && !(c.Aggression >= MinAggression && c.Aggression <= MaxAggression) { // nor a NaN
		problems = append(problems, fmt.Errorf("health: SlowStartConfig.Aggression is %v, want 0 or %v to %v",
			c.Aggression, MinAggression, MaxAggression))
	}
	if !(c.Least >= 0 && c.Least <= 1) {
		problems = append(problems, fmt.Errorf("health: SlowStartConfig.Least is %v, want 0 to 1", c.Least))
	}
	return errors.Join(problems...)
}

func (c SlowStartConfig) withDefaults() SlowStartConfig {
	if c.Window == 0 {
		c.Window = 10 * time.Second
	}
	if c.Aggression == 0 {
		c.Aggression = 1
	}
	if c.Least == 0 {
		c.Least = 0.1
	}
	return c
}

// tiniest keeps a factor from being none: a weight of 0 would mean drained.
const tiniest = 1e-6

// SlowStartFactor returns the factor of an endpoint's weight when elapsed nanoseconds of a
// window have passed: (elapsed/window)^(1/aggression), elapsed being at least 1 ms, and at
// least least; 1 from the window's end on. It is never 0 and never above 1. An
// aggression that is not positive counts as 1, a window that is not as over. Source: Envoy's slow
// start.
func SlowStartFactor(elapsed, window int64, aggression, least float64) float64 {
	if elapsed >= window || window <= 0 {
		return 1
	}
	if !(aggression > 0) {
		aggression = 1
	}
	f := math.Pow(float64(max(elapsed, int64(time.Millisecond)))/float64(window), 1/aggression)
	if least > f { // not max, which hands on a NaN
		f = least
	}
	return min(max(f, tiniest), 1)
}

// Ramp is the slow start of one endpoint. It is a value; the zero Ramp is that of an
// endpoint that has never been available.
type Ramp struct {
	from      int64
	available bool
	ramping   bool
}

// Fill notes that the endpoint is available from the pool's beginning on: there is no ramp, as
// nobody else would take what it leaves.
func (r *Ramp) Fill() { r.available, r.ramping = true, false }

// Turn notes at instant now whether the endpoint is available, by whatever makes it so:
// membership, checks, ejection. Becoming available begins a ramp; being so still, as
// after an update that lists it again, does not.
func (r *Ramp) Turn(available bool, now int64) {
	if available && !r.available {
		r.from, r.ramping = now, true
	}
	r.available = available
	r.ramping = r.ramping && available
}

// Ramping reports whether the endpoint is on its way up at instant now.
func (r *Ramp) Ramping(now int64, c SlowStartConfig) bool {
	return r.ramping && now-r.from < int64(c.withDefaults().Window)
}

// Factor returns the factor of the endpoint's weight at instant now, if the pool is not
// excused ([SkipSlowStart]).
func (r *Ramp) Factor(now int64, c SlowStartConfig) float64 {
	if !r.Ramping(now, c) {
		return 1
	}
	c = c.withDefaults()
	return SlowStartFactor(now-r.from, int64(c.Window), c.Aggression, c.Least)
}

// Ends returns when the endpoint's ramp ends; ok is false if it is not ramping at instant now.
func (r *Ramp) Ends(now int64, c SlowStartConfig) (at int64, ok bool) {
	return r.from + int64(c.withDefaults().Window), r.Ramping(now, c)
}

// SkipSlowStart reports whether nobody's ramp counts, as more than half of a pool's available
// endpoints are ramping: the few others would be flooded with what these do not get.
func SkipSlowStart(ramping, available int) bool { return 2*ramping > available }
