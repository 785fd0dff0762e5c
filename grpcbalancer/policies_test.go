package grpcbalancer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/experimental/balancer/weight"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

const (
	// inTurn is how many calls are made one after the other.
	inTurn = 400
	// byChance is 4.5 standard deviations of the binomial with a quarter of those.
	byChance = 39
	anyShare = inTurn
)

// everyPolicy is each policy of the config with what the second of two endpoints, of
// weights 1 and 3, gets of calls that are made one after the other.
var everyPolicy = []struct {
	policy string
	heavy  float64
	within float64
}{
	{`"round_robin"`, 200, 1},
	{`"random"`, 200, 45},
	{`"weighted_round_robin"`, 300, 2},
	{`"weighted"`, 300, 2}, // another name of it
	{`"smooth_weighted_round_robin"`, 300, 1},
	{`"edf"`, 300, 2},
	{`"weighted_random"`, 300, byChance},
	{`"weighted_least_request"`, 300, 2},
	{`{"weighted_least_request": {"active_request_bias": 0}}`, 300, 2},
	{`"adaptive"`, 0, anyShare},
	{`"p2c"`, 0, anyShare},
	{`{"p2c": {"signal": "in_flight"}}`, 300, byChance}, // all are idle: the draw alone
	{`{"p2c": {"signal": "latency"}}`, 0, anyShare},
	{`{"p2c": {"signal": "peak_hold"}}`, 0, anyShare},
	{`{"p2c": {"signal": "log_mean"}}`, 0, anyShare},
	{`{"p2c": {"signal": "least_time"}}`, 0, anyShare},
	{`{"p2c": {"signal": "peak_ewma"}}`, 0, anyShare},
	{`{"p2c": {"signal": {"peak_ewma": {"form": "linkerd", "tau": "1s"}}}}`, 0, anyShare},
	{`{"p2c": {"choices": 4}}`, 0, anyShare},
	{`"least"`, inTurn, 0}, // it costs a third, while both are idle
	{`{"least": {"signal": "latency"}}`, 0, anyShare},
	{`"maglev"`, 0, anyShare}, // without keys: the fallback
	{`{"ring_hash": {"fallback": "round_robin"}}`, 200, 1},
	{`{"rendezvous": {"fallback": "weighted_round_robin", "unbounded": true}}`, 300, 2},
}

// seededName is the spied policy with a fixed source of randomness for each channel.
const seededName = "evenkeel_seeded"

type seededBuilder struct{ spiedBuilder }

func init() { balancer.Register(seededBuilder{}) }

func (seededBuilder) Name() string { return seededName }

func (seededBuilder) Build(cc balancer.ClientConn, o balancer.BuildOptions) balancer.Balancer {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(26, 26))
	return spiedBuilder{builder{rand: func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Uint64()
	}}}.Build(cc, o)
}

func TestEveryPolicyServesOverRealConnections(t *testing.T) {
	for _, name := range append(policyNames(t), signalNames(t)...) {
		covered := false
		for _, c := range everyPolicy {
			covered = covered || strings.Contains(c.policy, `"`+name+`"`)
		}
		if !covered {
			t.Errorf("the table has no %s", name)
		}
	}
	for _, c := range everyPolicy {
		t.Run(c.policy, func(t *testing.T) {
			servers := fleet(t, 2)
			cl := dial(t, fmt.Sprintf(`{"loadBalancingConfig": [{%q: {"policy": %s}}]}`, seededName, c.policy))
			list := endpointsOf(servers...)
			for i, w := range []uint32{1, 3} {
				list.Endpoints[i] = weight.Set(list.Endpoints[i], weight.EndpointInfo{Weight: w})
			}
			cl.resolver.InitialState(list)
			cl.cc.Connect()
			cl.waitReady(2)
			cl.calls(inTurn)
			if got := float64(servers[1].calls.Load()); math.Abs(got-c.heavy) > c.within {
				t.Errorf("the heavy one got %v of %d, want %v ± %v", got, inTurn, c.heavy, c.within)
			}
			cl.openEightAtATime(80)
			cl.waitAtRest()
			for i, s := range servers {
				e := statsOf(cl.policy())[s.addr]
				if s.calls.Load() == 0 || e.Picks != uint64(s.calls.Load()) || e.Success != 1 || e.Weight != float64(1+2*i) {
					t.Errorf("%d calls and %+v", s.calls.Load(), e)
				}
			}
		})
	}
}

// openEightAtATime opens n streams, of which eight are always open.
func (c *client) openEightAtATime(n int) {
	c.t.Helper()
	var open [8]testgrpc.TestService_FullDuplexCallClient
	for i := range n + len(open) {
		if s := open[i%len(open)]; s != nil {
			_ = s.CloseSend() // an error would show in what follows
			if _, err := s.Recv(); err == nil {
				c.t.Error("a stream goes on after its end")
			}
		}
		if i < n {
			open[i%len(open)] = c.open(context.Background())
		}
	}
}
