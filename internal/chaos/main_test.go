//go:build unix

package chaos

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/grpcbalancer"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// contender is a way of balancing that takes part in every scenario.
type contender struct {
	name   string
	config evenkeel.Config
	// guarded says that the policy itself sees no failures: ejection does, after five in a row.
	guarded bool
	// part is how many of a setting's requests it sends. Those who are known to need fewer to show
	// what they do leave the machine to others.
	part float64
	// checks adds active health checks to the config.
	checks bool
}

// settings are the contender's config over an adapter.
func (c contender) settings(adapter string) evenkeel.Config {
	if !c.checks {
		return c.config
	}
	config := c.config
	config.Health = &evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP, Path: checkPath, Interval: checkEvery}
	if adapter == "grpc" {
		config.Health = &evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC, Interval: checkEvery}
	}
	return config
}

// contenders are measured side by side, on the same servers at the same time. All of them have
// to hold the bars of a scenario. A new part of the Config gets its line here.
var contenders = []contender{
	{name: "default", part: 1},
	{name: "round robin, guarded", part: 0.5, guarded: true, config: evenkeel.Config{Policy: picker.RoundRobin{}}},
	{name: "p2c, guarded", part: 0.5, guarded: true, config: evenkeel.Config{Policy: picker.P2C{Signal: picker.InFlight}}},
}

// checked are the same with checks. They take part where checks matter.
func checked() []contender {
	all := slices.Clone(contenders)
	for i := range all {
		all[i].name, all[i].checks = all[i].name+", checks", true
	}
	return all
}

// reference is what the others are compared with: it sees nothing, and shows how much harm a
// trouble does to those who do not see it. Over gRPC it is gRPC's own.
var reference = contender{name: "round robin", part: 0.5, config: evenkeel.Config{Policy: picker.RoundRobin{},
	Outlier: &outlier.Config{Mode: outlier.NoEjection}, Limit: evenkeel.LimitConfig{Disabled: true}}}

// grpcName is the name that gRPC knows a contender by.
func (c contender) grpcName() string {
	if c.name == reference.name {
		return "round_robin"
	}
	return "chaos: " + c.name
}

func init() {
	for _, c := range append(checked(), contenders...) {
		if err := grpcbalancer.Register(c.grpcName(), c.settings("grpc")); err != nil {
			panic(err)
		}
	}
}

// TestMain runs the tests, or in a process that one of them has started, a server. In the end, also
// when a test has failed, there is nothing left of them.
func TestMain(m *testing.M) {
	if ports := os.Getenv(serverEnv); ports != "" {
		if settings := os.Getenv(restartedEnv); settings != "" {
			os.Exit(beRestarted(ports, settings))
		}
		os.Exit(beServer(ports))
	}
	if os.Getenv(parentEnv) != "" {
		os.Exit(beParent())
	}
	// Scenarios wait more than they work: see setting.atOnce.
	_ = flag.Set("test.parallel", "16")
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		code = max(code, 1)
	}
	alive.Range(func(s, _ any) bool {
		fmt.Fprintln(os.Stderr, "a server is left:", s.(*server).http)
		s.(*server).kill()
		code = max(code, 1)
		return true
	})
	os.Exit(code)
}
