package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// named are policies by the names that commands and tests use. See PolicyNames.
var named = []struct {
	name string
	make func(age time.Duration) Policy
}{
	{"default", func(time.Duration) Policy { return Policy{} }},
	{"random", of(picker.Random{})},
	{"round_robin", of(picker.RoundRobin{})},
	{"p2c", of(picker.P2C{Signal: picker.InFlight})},
	{"p2c_latency", of(picker.P2C{Signal: picker.Latency})},
	{"p2c_peak_hold", of(picker.P2C{Signal: picker.PeakHold})},
	{"p2c_log_mean", of(picker.P2C{Signal: picker.LogMean})},
	{"least", of(picker.Least{Signal: picker.InFlight})},
	{"least_latency", of(picker.Least{Signal: picker.Latency})},
	{"least_time", of(picker.Least{Signal: picker.LeastTime{}})},
	{"peak_ewma_finagle", of(picker.P2C{Signal: picker.PeakEWMA{Plain: true}})},
	{"peak_ewma_linkerd", of(picker.P2C{Signal: picker.PeakEWMA{Form: ewma.LinkerdForm, Plain: true}})},
	{"peak_ewma_1s", func(time.Duration) Policy { return PeakEWMAOfASecond() }},
	{"unguarded", of(nil)},
	{"ejection", guarded(nil, &outlier.Config{}, false)},
	{"ejection_and_limit", guarded(nil, &outlier.Config{}, true)},
	{"guarded_round_robin", guarded(picker.RoundRobin{}, nil, true)},
	{"guarded_p2c", guarded(picker.P2C{Signal: picker.InFlight}, nil, true)},
	{"envoy", envoy(outlier.Config{})},
	{"envoy_30", envoy(outlier.Config{MaxEjectionPercent: outlier.PercentOf(30)})},
	{"envoy_uncapped", envoy(outlier.Config{MaxEjectionPercent: outlier.PercentOf(100), Panic: outlier.Panic{Threshold: outlier.PercentOf(0)}})},
	{"jsq", func(time.Duration) Policy { return Policy{Bound: ShortestQueue{}} }},
	{"jsed", func(time.Duration) Policy { return Policy{Bound: ShortestDelay{}} }},
	// A queue of fleet A forgets in about a tenth of a second.
	{"seen@", func(age time.Duration) Policy {
		return Policy{Bound: Seen{Age: age, Usual: 2, Forget: 150 * time.Millisecond}}
	}},
	{"least_table@", func(age time.Duration) Policy {
		p := of(nil)(0)
		p.TableAge, p.Table = age, func(t *picker.LoadTable) evenkeel.Policy { return picker.Least{Signal: t} }
		return p
	}},
	{"p2c_table@", func(age time.Duration) Policy {
		p := of(nil)(0)
		p.TableAge, p.Table = age, func(t *picker.LoadTable) evenkeel.Policy { return picker.P2C{Signal: t} }
		return p
	}},
}

// bare ejects nobody.
var bare = &outlier.Config{Mode: outlier.NoEjection}

// of is a policy by itself, the default's if it is nil: without ejection and limit.
func of(p evenkeel.Policy) func(time.Duration) Policy { return guarded(p, bare, false) }

// guarded is a policy with rules of ejection, and with or without a limit.
func guarded(p evenkeel.Policy, rules *outlier.Config, limit bool) func(time.Duration) Policy {
	return func(time.Duration) Policy {
		return Policy{Config: evenkeel.Config{Policy: p, Outlier: rules, Limit: evenkeel.LimitConfig{Disabled: !limit}}}
	}
}

// envoy is two choices by requests in flight with Envoy's detector beside them, which ejects 10 % at most
// and panics below 50 % unless rules say otherwise, and nothing that limits requests.
func envoy(rules outlier.Config) func(time.Duration) Policy {
	rules.Mode = outlier.Envoy
	return guarded(picker.P2C{Signal: picker.InFlight}, &rules, false)
}

// PeakEWMAOfASecond is two choices by a peak EWMA that moves by 0.3, fades with a time
// constant of one second and starts at 10 ms, as a published fleet simulation has it.
func PeakEWMAOfASecond() Policy {
	signal := picker.PeakEWMA{Form: ewma.AlphaForm, Tau: time.Second, Alpha: 0.3, Plain: true}
	p := of(picker.P2C{Signal: signal})(0)
	p.Name, p.Prime = "peak_ewma_1s", 10*time.Millisecond
	return p
}

// PolicyNames returns the names that [PolicyNamed] knows. "default" is a pool's zero Config; others are
// the rule by itself, without ejection and limit, as everybody else has it, unless their names say
// otherwise; "unguarded" is the default's, and "envoy" p2c with Envoy's outlier detection: as it is, with a cap of 30 %, and
// without cap and panic. Those that end in "@" want the
// age of their table, or of what they see, after it, such as "p2c_table@100ms".
func PolicyNames() []string {
	names := make([]string, len(named))
	for i, n := range named {
		names[i] = n.name
	}
	return names
}

// PolicyNamed returns the policy of that name. The error lists the names.
func PolicyNamed(name string) (Policy, error) {
	base, after, aged := strings.Cut(name, "@")
	if aged {
		base += "@"
	}
	i := slices.Index(PolicyNames(), base)
	if i < 0 {
		return Policy{}, fmt.Errorf("sim: policy is %q, want one of %s", name, strings.Join(PolicyNames(), ", "))
	}
	age := time.Duration(0)
	if aged {
		var err error
		if age, err = time.ParseDuration(after); err != nil || age != 0 && age < time.Microsecond || age > maxDuration {
			return Policy{}, fmt.Errorf("sim: age of policy %q is %q, want 0s, or 1µs to %v", base, after, maxDuration)
		}
	}
	p := named[i].make(age)
	p.Name = name
	return p, nil
}
