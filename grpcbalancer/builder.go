package grpcbalancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/config"
)

// Name is the policy's name in a service config.
const Name = "evenkeel"

// coalesceFor is how long the news that an endpoint became READY may wait for more
// of its kind: about as long as a connection takes anyway. A publication costs
// O(n), so that without it a fleet that comes up at once would cost O(n²).
const coalesceFor = 3 * time.Millisecond

// gRPC's registry is not safe for concurrent use: init is the one place for it.
func init() { balancer.Register(builder{name: Name}) }

// builder makes the policies of one name.
type builder struct {
	name string
	base evenkeel.Config // in force where a config in JSON says nothing

	// The tests' own.
	rand  func() uint64    // nil: math/rand/v2
	child childBuilderFunc // nil: newChild
}

type childBuilderFunc func(balancer.ClientConn, balancer.BuildOptions) balancer.Balancer

func (b builder) Name() string { return b.name }

// Build returns a policy without endpoints. It reports no state: the channel waits
// for the first list by itself.
func (b builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	p := &policy{cc: cc, opts: opts, name: b.name, base: b.base, random: b.rand, newChild: b.child}
	p.asksFor = p.outOfBandFor
	p.warnings.tell = func(text string) { p.emit(Warning, "", text) }
	p.meter.record = recorderOf(cc, p.target())
	if p.random == nil {
		p.random = rand.Uint64
	}
	if p.newChild == nil {
		p.newChild = newChild
	}
	live.add(p)
	return p
}

// ParseConfig implements balancer.ConfigParser. Nothing, null and {} are the
// defaults, since an empty config reaches a policy in all three forms.
func (b builder) ParseConfig(text json.RawMessage) (loadBalancingConfig, error) {
	given, report, err := config.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("grpcbalancer: %w", err)
	}
	if err := errors.Join(checkKeys(given.Keys), checkHealth(given.Health)); err != nil {
		return nil, err
	}
	c := override(b.base, given)
	if c.Subset != nil { // Validate has not looked its index up
		if _, err := evenkeel.NewPool[*endpoint](c, evenkeel.Options{}); err != nil {
			return nil, fmt.Errorf("grpcbalancer: %w", err)
		}
	}
	return &lbConfig{config: c, given: given, unknown: report.Unknown}, nil
}

// override returns base with what is not zero in given in its place.
func override(base, given evenkeel.Config) evenkeel.Config {
	if given.Policy != nil {
		base.Policy = given.Policy
	}
	if given.Keys != nil {
		base.Keys = given.Keys
	}
	if given.Outlier != nil {
		base.Outlier = given.Outlier
	}
	if given.Health != nil {
		base.Health = given.Health
	}
	if given.SlowStart != nil {
		base.SlowStart = given.SlowStart
	}
	if given.DrainTimeout != 0 {
		base.DrainTimeout = given.DrainTimeout
	}
	if given.Limit != (evenkeel.LimitConfig{}) {
		base.Limit = given.Limit
	}
	if given.Subset != nil {
		base.Subset = given.Subset
	}
	if given.Reports != nil {
		base.Reports = given.Reports
	}
	return base
}

// MarshalJSON returns a text that ParseConfig of the same name turns into an equal
// config. Parents such as random_subsetting hand a child's config on in that way. The
// base is not part of it: the name stands for that, and it may have no JSON form.
func (c *lbConfig) MarshalJSON() ([]byte, error) { return config.Marshal(c.given) }

// configOf unwraps what a parent hands over, which is valid if it came from
// ParseConfig; without any it is base.
func configOf(c loadBalancingConfig, base evenkeel.Config) (evenkeel.Config, error) {
	switch c := c.(type) {
	case nil:
		return base, nil
	case *lbConfig:
		return c.config, nil
	default:
		return evenkeel.Config{}, fmt.Errorf("grpcbalancer: BalancerConfig is a %T, want what ParseConfig returned", c)
	}
}
