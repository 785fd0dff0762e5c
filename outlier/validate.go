package outlier

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c Config) Validate() error {
	var p problems
	if c.Mode > NoEjection {
		p.add("Config.Mode is %d, want 0 (Soft), 1 (Envoy), 2 (A50) or 3 (NoEjection)", c.Mode)
	}
	p.duration("Config.Interval", c.Interval)
	p.percent("Config.MaxEjectionPercent", c.MaxEjectionPercent)
	p.duration("Config.BaseEjectionTime", c.BaseEjectionTime)
	p.duration("Config.MaxEjectionTime", c.MaxEjectionTime)
	p.order("Config.MaxEjectionTime", c.MaxEjectionTime, "BaseEjectionTime", c.BaseEjectionTime, defaultBase)
	p.duration("Config.MaxEjectionJitter", c.MaxEjectionJitter)
	c.Soft.validate(&p)
	c.Envoy.validate(&p)
	if sr := c.A50.SuccessRate; sr != nil {
		sr.validate(&p, "A50Config.SuccessRate")
	}
	if fp := c.A50.FailurePercentage; fp != nil {
		fp.validate(&p, "A50Config.FailurePercentage")
	}
	if math.IsNaN(c.Ramp.Aggression) || math.IsInf(c.Ramp.Aggression, 0) || c.Ramp.Aggression < 0 {
		p.add("Ramp.Aggression is %v, want a finite number above 0, or 0 for 1", c.Ramp.Aggression)
	}
	p.percent("Ramp.Floor", c.Ramp.Floor)
	p.percent("Panic.Threshold", c.Panic.Threshold)
	p.percent("Panic.Leave", c.Panic.Leave)
	if leave, ok := c.Panic.Leave.Value(); ok && leave < c.Panic.Threshold.or(defaultPanic) {
		p.add("Panic.Leave is %v, want at least Panic.Threshold, %v", leave, c.Panic.Threshold.or(defaultPanic))
	}
	return errors.Join(p...)
}

func (c SoftConfig) validate(p *problems) {
	p.run("SoftConfig.ConsecutiveFailures", c.ConsecutiveFailures)
	p.number("SoftConfig.RequestVolume", c.RequestVolume)
	p.number("SoftConfig.MinHosts", c.MinHosts)
	p.duration("SoftConfig.MaxWindow", c.MaxWindow)
	p.duration("SoftConfig.ProbeBackoff", c.ProbeBackoff)
	p.duration("SoftConfig.MaxProbeBackoff", c.MaxProbeBackoff)
	p.order("SoftConfig.MaxProbeBackoff", c.MaxProbeBackoff, "ProbeBackoff", c.ProbeBackoff, defaultBackoff)
	if !(c.ProbeJitter >= 0 && c.ProbeJitter <= 1) {
		p.add("SoftConfig.ProbeJitter is %v, want above 0 to 1, or 0 for %v", c.ProbeJitter, defaultJitter)
	}
	p.duration("SoftConfig.ProbeTimeout", c.ProbeTimeout)
	p.number("SoftConfig.ProbeSuccesses", c.ProbeSuccesses)
	p.duration("SoftConfig.Remember", c.Remember)
}

func (c EnvoyConfig) validate(p *problems) {
	p.run("EnvoyConfig.Consecutive5xx", c.Consecutive5xx)
	p.percent("EnvoyConfig.EnforceConsecutive5xx", c.EnforceConsecutive5xx)
	p.run("EnvoyConfig.ConsecutiveGateway", c.ConsecutiveGateway)
	p.percent("EnvoyConfig.EnforceConsecutiveGateway", c.EnforceConsecutiveGateway)
	p.run("EnvoyConfig.ConsecutiveLocal", c.ConsecutiveLocal)
	p.percent("EnvoyConfig.EnforceConsecutiveLocal", c.EnforceConsecutiveLocal)
	c.SuccessRate.validate(p, "EnvoyConfig.SuccessRate")
	p.percent("EnvoyConfig.EnforceLocalSuccessRate", c.EnforceLocalSuccessRate)
	c.FailurePercentage.validate(p, "EnvoyConfig.FailurePercentage")
	p.percent("EnvoyConfig.EnforceLocalFailurePercentage", c.EnforceLocalFailurePercentage)
}

func (c SuccessRate) validate(p *problems, name string) {
	if !(c.StdevFactor >= 0) || math.IsInf(c.StdevFactor, 0) {
		p.add("%s.StdevFactor is %v, want a finite number above 0, or 0 for %v", name, c.StdevFactor, defaultStdevFactor)
	}
	p.percent(name+".Enforce", c.Enforce)
	p.number(name+".MinHosts", c.MinHosts)
	p.number(name+".RequestVolume", c.RequestVolume)
}

func (c FailurePercentage) validate(p *problems, name string) {
	p.percent(name+".Threshold", c.Threshold)
	p.percent(name+".Enforce", c.Enforce)
	p.number(name+".MinHosts", c.MinHosts)
	p.number(name+".RequestVolume", c.RequestVolume)
}

// problems collects what is wrong, so that a user sees all of it at once.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf("outlier: "+format, args...))
}

func (p *problems) percent(name string, v Percent) {
	if v.set && !(v.value >= 0 && v.value <= 100) { // so that NaN is refused
		p.add("%s is %v, want 0 to 100", name, v.value)
	}
}

func (p *problems) duration(name string, d time.Duration) {
	if d < 0 {
		p.add("%s is %v, want more than 0, or 0 for the default", name, d)
	}
}

// order refuses an explicit bound that is below what it bounds.
func (p *problems) order(name string, bound time.Duration, other string, least, absent time.Duration) {
	if least == 0 {
		least = absent
	}
	if bound > 0 && bound < least {
		p.add("%s is %v, want at least %s, %v", name, bound, other, least)
	}
}

func (p *problems) number(name string, n int) {
	if n < 0 || n > maxNumber {
		p.add("%s is %d, want 1 to %d, or 0 for the default", name, n, maxNumber)
	}
}

func (p *problems) run(name string, n int) {
	if n < Off || n > maxNumber {
		p.add("%s is %d, want 1 to %d, 0 for the default, or -1 for off", name, n, maxNumber)
	}
}
