package config

import (
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

func TestOutlierAndLimitAreRead(t *testing.T) {
	for text, want := range map[string]evenkeel.Config{
		`{"outlier": {}}`:                                {Outlier: &outlier.Config{}},
		`{"outlier": {"mode": "off"}}`:                   {Outlier: &outlier.Config{Mode: outlier.NoEjection}},
		`{"outlier": null, "limit": {"disabled": true}}`: {Limit: evenkeel.LimitConfig{Disabled: true}},
		`{"limit": {"floor": 5, "ceiling": 10}}`:         {Limit: evenkeel.LimitConfig{Floor: 5, Ceiling: 10}},
		`{"limit": {"per_endpoint": 7}}`:                 {Limit: evenkeel.LimitConfig{PerEndpoint: 7}},
		`{"limit": {"per_endpoint": 0}}`:                 {},
		`{"outlier": {"panic": {"threshold": 0}, "soft": {"consecutive_failures": -1, "probe_backoff": "1s"}}}`: {
			Outlier: &outlier.Config{Panic: outlier.Panic{Threshold: outlier.PercentOf(0)},
				Soft: outlier.SoftConfig{ConsecutiveFailures: outlier.Off, ProbeBackoff: time.Second}}},
		`{"outlier": {"mode": "a50", "a50": {"failure_percentage": {}}}}`: {
			Outlier: &outlier.Config{Mode: outlier.A50, A50: outlier.A50Config{FailurePercentage: &outlier.FailurePercentage{}}}},
	} {
		c, report, err := Parse([]byte(text))
		same := c.Limit == want.Limit && (c.Outlier == nil) == (want.Outlier == nil) &&
			(c.Outlier == nil || c.Outlier.Equal(*want.Outlier))
		if err != nil || !same || len(report.Unknown) != 0 {
			t.Errorf("Parse(%s) = %+v, %v, %v", text, c, report, err)
		}
	}
}

// A 0 that would be taken for a default is refused, and where 0 is a value of its own it is taken.
func TestAZeroThatMeansADefaultIsRefused(t *testing.T) {
	for _, member := range []string{
		`"interval": "0s"`, `"base_ejection_time": "0s"`, `"ramp": {"window": "0s"}`, `"ramp": {"aggression": 0}`,
		`"soft": {"consecutive_failures": 0}`, `"soft": {"probe_jitter": 0}`, `"soft": {"remember": "0ms"}`,
		`"envoy": {"consecutive_5xx": 0}`, `"envoy": {"success_rate": {"stdev_factor": 0.0}}`, `"mode": "hard"`,
		`"max_ejection_percent": "10"`, `"max_ejection_percent": 101`, `"panic": 50`,
	} {
		if c, _, err := Parse([]byte(`{"outlier": {` + member + `}}`)); err == nil {
			t.Errorf("%s was taken: %+v", member, c.Outlier)
		} else if name, _, _ := strings.Cut(strings.Trim(member, `"`), `"`); !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "MaxEjection") {
			t.Errorf("%s: the error does not name it: %v", member, err)
		}
	}
	for _, member := range []string{`"max_ejection_jitter": "0s"`, `"max_ejection_percent": 0`, `"ramp": {"window": "-1s"}`, `"ramp": {"floor": 0}`} {
		if _, _, err := Parse([]byte(`{"outlier": {` + member + `}}`)); err != nil {
			t.Errorf("%s: %v", member, err)
		}
	}
	if _, _, err := Parse([]byte(`{"limit": {"floor": 0}}`)); err == nil {
		t.Error("a floor of 0 was taken")
	}
}
