//go:build unix

package chaos

import (
	"os"
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
	// limits says that the config limits requests in flight.
	limits bool
}

// contenders are measured side by side, on the same servers at the same time. All of them have
// to hold the bars of a scenario. A new part of the Config gets its line here.
var contenders = []contender{
	{name: "default", limits: true},
}

// reference is what the others are compared with: it sees nothing, and shows how much harm a
// trouble does to those who do not see it. Over gRPC it is gRPC's own.
var reference = contender{name: "round_robin", config: evenkeel.Config{Policy: picker.RoundRobin{},
	Outlier: &outlier.Config{Mode: outlier.NoEjection}, Limit: evenkeel.LimitConfig{Disabled: true}}}

// grpcName is the name that gRPC knows a contender by.
func (c contender) grpcName() string {
	if c.name == reference.name {
		return "round_robin"
	}
	return "chaos_" + c.name
}

func init() {
	for _, c := range contenders {
		if err := grpcbalancer.Register(c.grpcName(), c.config); err != nil {
			panic(err)
		}
	}
}

// TestMain runs the tests, or in a process that one of them has started, a server.
func TestMain(m *testing.M) {
	if ports := os.Getenv(serverEnv); ports != "" {
		os.Exit(beServer(ports))
	}
	goleak.VerifyTestMain(m)
}
