package config

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

// modes are the names of the rules of ejection; "soft" is the zero value.
var modes = []named[outlier.Mode]{
	{outlier.Soft.String(), outlier.Soft},
	{outlier.Envoy.String(), outlier.Envoy},
	{outlier.A50.String(), outlier.A50},
	{outlier.NoEjection.String(), outlier.NoEjection},
}

// outlierFields are the members of the object "outlier".
var outlierFields = []field[outlier.Config]{
	enum("mode", func(c *outlier.Config) *outlier.Mode { return &c.Mode }, modes),
	span("interval", func(c *outlier.Config) *time.Duration { return &c.Interval }),
	percent("max_ejection_percent", func(c *outlier.Config) *outlier.Percent { return &c.MaxEjectionPercent }),
	boolean("at_least_one", func(c *outlier.Config) *bool { return &c.AtLeastOne }),
	span("base_ejection_time", func(c *outlier.Config) *time.Duration { return &c.BaseEjectionTime }),
	span("max_ejection_time", func(c *outlier.Config) *time.Duration { return &c.MaxEjectionTime }),
	duration("max_ejection_jitter", func(c *outlier.Config) *time.Duration { return &c.MaxEjectionJitter }),
	part("soft", func(c *outlier.Config) *outlier.SoftConfig { return &c.Soft }, softFields),
	part("envoy", func(c *outlier.Config) *outlier.EnvoyConfig { return &c.Envoy }, envoyFields),
	part("a50", func(c *outlier.Config) *outlier.A50Config { return &c.A50 }, a50Fields),
	part("ramp", func(c *outlier.Config) *outlier.Ramp { return &c.Ramp }, rampFields),
	part("panic", func(c *outlier.Config) *outlier.Panic { return &c.Panic }, panicFields),
}

var softFields = []field[outlier.SoftConfig]{
	count("consecutive_failures", func(c *outlier.SoftConfig) *int { return &c.ConsecutiveFailures }),
	boolean("no_rate", func(c *outlier.SoftConfig) *bool { return &c.NoRate }),
	count("request_volume", func(c *outlier.SoftConfig) *int { return &c.RequestVolume }),
	count("min_hosts", func(c *outlier.SoftConfig) *int { return &c.MinHosts }),
	span("max_window", func(c *outlier.SoftConfig) *time.Duration { return &c.MaxWindow }),
	span("probe_backoff", func(c *outlier.SoftConfig) *time.Duration { return &c.ProbeBackoff }),
	span("max_probe_backoff", func(c *outlier.SoftConfig) *time.Duration { return &c.MaxProbeBackoff }),
	factor("probe_jitter", func(c *outlier.SoftConfig) *float64 { return &c.ProbeJitter }),
	span("probe_timeout", func(c *outlier.SoftConfig) *time.Duration { return &c.ProbeTimeout }),
	count("probe_successes", func(c *outlier.SoftConfig) *int { return &c.ProbeSuccesses }),
	boolean("checks_return", func(c *outlier.SoftConfig) *bool { return &c.ChecksReturn }),
	span("remember", func(c *outlier.SoftConfig) *time.Duration { return &c.Remember }),
}

var envoyFields = []field[outlier.EnvoyConfig]{
	count("consecutive_5xx", func(c *outlier.EnvoyConfig) *int { return &c.Consecutive5xx }),
	percent("enforce_consecutive_5xx", func(c *outlier.EnvoyConfig) *outlier.Percent { return &c.EnforceConsecutive5xx }),
	count("consecutive_gateway", func(c *outlier.EnvoyConfig) *int { return &c.ConsecutiveGateway }),
	percent("enforce_consecutive_gateway", func(c *outlier.EnvoyConfig) *outlier.Percent { return &c.EnforceConsecutiveGateway }),
	boolean("split_local_origin", func(c *outlier.EnvoyConfig) *bool { return &c.SplitLocalOrigin }),
	count("consecutive_local", func(c *outlier.EnvoyConfig) *int { return &c.ConsecutiveLocal }),
	percent("enforce_consecutive_local", func(c *outlier.EnvoyConfig) *outlier.Percent { return &c.EnforceConsecutiveLocal }),
	part("success_rate", func(c *outlier.EnvoyConfig) *outlier.SuccessRate { return &c.SuccessRate }, rateFields),
	percent("enforce_local_success_rate", func(c *outlier.EnvoyConfig) *outlier.Percent { return &c.EnforceLocalSuccessRate }),
	part("failure_percentage", func(c *outlier.EnvoyConfig) *outlier.FailurePercentage { return &c.FailurePercentage }, percentageFields),
	percent("enforce_local_failure_percentage", func(c *outlier.EnvoyConfig) *outlier.Percent { return &c.EnforceLocalFailurePercentage }),
	boolean("ignore_checks", func(c *outlier.EnvoyConfig) *bool { return &c.IgnoreChecks }),
}

var a50Fields = []field[outlier.A50Config]{
	switched("success_rate", func(c *outlier.A50Config) **outlier.SuccessRate { return &c.SuccessRate }, rateFields),
	switched("failure_percentage", func(c *outlier.A50Config) **outlier.FailurePercentage { return &c.FailurePercentage }, percentageFields),
}

var rateFields = []field[outlier.SuccessRate]{
	factor("stdev_factor", func(c *outlier.SuccessRate) *float64 { return &c.StdevFactor }),
	percent("enforce", func(c *outlier.SuccessRate) *outlier.Percent { return &c.Enforce }),
	count("min_hosts", func(c *outlier.SuccessRate) *int { return &c.MinHosts }),
	count("request_volume", func(c *outlier.SuccessRate) *int { return &c.RequestVolume }),
}

var percentageFields = []field[outlier.FailurePercentage]{
	percent("threshold", func(c *outlier.FailurePercentage) *outlier.Percent { return &c.Threshold }),
	percent("enforce", func(c *outlier.FailurePercentage) *outlier.Percent { return &c.Enforce }),
	count("min_hosts", func(c *outlier.FailurePercentage) *int { return &c.MinHosts }),
	count("request_volume", func(c *outlier.FailurePercentage) *int { return &c.RequestVolume }),
}

var rampFields = []field[outlier.Ramp]{
	span("window", func(c *outlier.Ramp) *time.Duration { return &c.Window }),
	factor("aggression", func(c *outlier.Ramp) *float64 { return &c.Aggression }),
	percent("floor", func(c *outlier.Ramp) *outlier.Percent { return &c.Floor }),
}

var panicFields = []field[outlier.Panic]{
	percent("threshold", func(c *outlier.Panic) *outlier.Percent { return &c.Threshold }),
	percent("leave", func(c *outlier.Panic) *outlier.Percent { return &c.Leave }),
	boolean("fail_fast", func(c *outlier.Panic) *bool { return &c.FailFast }),
}

var limitFields = []field[evenkeel.LimitConfig]{
	boolean("disabled", func(c *evenkeel.LimitConfig) *bool { return &c.Disabled }),
	count("floor", func(c *evenkeel.LimitConfig) *int { return &c.Floor }),
	integer("ceiling", func(c *evenkeel.LimitConfig) *int { return &c.Ceiling }),
	integer("per_endpoint", func(c *evenkeel.LimitConfig) *int { return &c.PerEndpoint }),
}

// count, span and factor are fields in which the zero value stands for a default that is not 0. Who
// writes a 0 means something else by it, so that it is refused.
func count[T any](name string, of func(*T) *int) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (int, bool) {
		n, err := strconv.ParseFloat(string(raw), 64)
		return int(n), err == nil && n == math.Trunc(n) && math.Abs(n) <= 1<<53 && float64(int(n)) == n && n != 0
	}, "a whole number that is not 0; leave it out for the default", func(n int) any { return n })
}

func span[T any](name string, of func(*T) *time.Duration) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (time.Duration, bool) {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return 0, false
		}
		d, err := time.ParseDuration(text)
		return d, err == nil && d != 0
	}, `a duration such as "10s" that is not 0; leave it out for the default`, func(d time.Duration) any { return d.String() })
}

func factor[T any](name string, of func(*T) *float64) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (float64, bool) {
		n, err := strconv.ParseFloat(string(raw), 64)
		return n, err == nil && n != 0
	}, "a number that is not 0; leave it out for the default", func(n float64) any { return n })
}

// percent is a field in which 0 and absent differ.
func percent[T any](name string, of func(*T) *outlier.Percent) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (outlier.Percent, bool) {
		n, err := strconv.ParseFloat(string(raw), 64)
		return outlier.PercentOf(n), err == nil
	}, "a number from 0 to 100", func(p outlier.Percent) any {
		v, _ := p.Value()
		return v
	})
}

// part is an object whose members are fields of a struct within.
func part[T, V any](name string, of func(*T) *V, fields []field[V]) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			readObject(d, at, raw, fields, of(into))
		},
		write: func(from *T) (any, error) {
			members, err := writeObject(fields, of(from))
			if err != nil || len(members) == 0 {
				return nil, err
			}
			return members, nil
		},
	}
}

// switched is an object that switches something on, even without members.
func switched[T, V any](name string, of func(*T) **V, fields []field[V]) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			v := new(V)
			before := len(d.problems)
			readObject(d, at, raw, fields, v)
			if len(d.problems) == before { // else Validate would find what follows from it
				*of(into) = v
			}
		},
		write: func(from *T) (any, error) {
			v := *of(from)
			if v == nil {
				return nil, nil
			}
			return writeObject(fields, v)
		},
	}
}
