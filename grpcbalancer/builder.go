package grpcbalancer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/config"
)

// Name is the policy's name in a service config.
const Name = "evenkeel"

const (
	// coalesceFor is how long the news that an endpoint became READY may wait for more
	// of its kind: about as long as a connection takes anyway. A publication costs
	// O(n), so that without it a fleet that comes up at once would cost O(n²).
	coalesceFor = 3 * time.Millisecond
	// sweepEvery is the rhythm of the pool's housekeeping.
	sweepEvery = time.Second
)

// gRPC's registry is not safe for concurrent use: init is the one place for it.
func init() { balancer.Register(builder{}) }

// builder makes policies. Its fields are replaced by tests alone.
type builder struct {
	rand  func() uint64    // nil: math/rand/v2
	child childBuilderFunc // nil: newChild
}

type childBuilderFunc func(balancer.ClientConn, balancer.BuildOptions) balancer.Balancer

func (builder) Name() string { return Name }

// Build returns a policy without endpoints. It reports no state: the channel waits
// for the first list by itself.
func (b builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	p := &policy{cc: cc, opts: opts, random: b.rand, newChild: b.child}
	if p.random == nil {
		p.random = rand.Uint64
	}
	if p.newChild == nil {
		p.newChild = newChild
	}
	return p
}

// ParseConfig implements balancer.ConfigParser. Nothing, null and {} are the
// defaults, since an empty config reaches a policy in all three forms.
func (builder) ParseConfig(text json.RawMessage) (loadBalancingConfig, error) {
	c, _, err := config.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("grpcbalancer: %w", err)
	}
	return &lbConfig{config: c}, nil
}

// MarshalJSON returns a text that ParseConfig turns into an equal config. Parents
// such as random_subsetting hand a child's config on in that way.
func (c *lbConfig) MarshalJSON() ([]byte, error) { return config.Marshal(c.config) }

// configOf unwraps what a parent hands over, which is valid if it came from
// ParseConfig; without any it is the default one.
func configOf(c loadBalancingConfig) (evenkeel.Config, error) {
	switch c := c.(type) {
	case nil:
		return evenkeel.Config{}, nil
	case *lbConfig:
		return c.config, nil
	default:
		return evenkeel.Config{}, fmt.Errorf("grpcbalancer: BalancerConfig is a %T, want what ParseConfig returned", c)
	}
}
