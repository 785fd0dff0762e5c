package interop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/randomsubsetting" // a parent
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/grpcbalancer"
)

// startSickly starts backends that fail calls while what is returned for them is set.
func startSickly(t *testing.T, n int) (list []*backend, sick []*atomic.Bool) {
	t.Helper()
	for range n {
		var s atomic.Bool
		sick = append(sick, &s)
		list = append(list, startBackend(t, nil, grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				if s.Load() {
					return nil, status.Error(codes.Unavailable, "sick")
				}
				return handler(ctx, req)
			})))
	}
	return list, sick
}

// noneFails waits until calls have ceased to fail, and checks that none of the next few hundred does.
func (l *traffic) noneFails(t *testing.T, what string) {
	t.Helper()
	eventually(t, what+": calls cease to fail", func() bool {
		failed, _ := l.failures(t, 100)
		return failed == 0
	})
	if failed, calls := l.failures(t, 400); failed != 0 {
		t.Errorf("%s: %d of %d calls failed, once one with: %v", what, failed, calls, *l.firstError.Load())
	}
}

// failures returns how many of the next calls, n or a few more, fail.
func (l *traffic) failures(t *testing.T, n int64) (failed, calls int64) {
	t.Helper()
	calls, failed = l.calls.Load(), l.failed.Load()
	eventually(t, "calls end", func() bool { return l.calls.Load() >= calls+n })
	return l.failed.Load() - failed, l.calls.Load() - calls
}

// For how long an endpoint is ejected: for the rest of the test, and until the next look.
const (
	forGood   = time.Hour
	forAWhile = 50 * time.Millisecond
)

// lookEach is the time between two looks at what calls have come to.
const lookEach = 100 * time.Millisecond

// detected is a channel whose policy is a child of gRPC's outlier detection.
type detected struct {
	resolver *manual.Resolver
	list     []resolver.Endpoint
	child    string // its config, of one policy
	client   testgrpc.TestServiceClient
}

func startDetected(t *testing.T, child string, backends []*backend) *detected {
	t.Helper()
	d := &detected{resolver: manual.NewBuilderWithScheme("detected"), child: child}
	for _, b := range backends {
		d.list = append(d.list, resolver.Endpoint{Addresses: []resolver.Address{{Addr: b.addr}}})
	}
	d.resolver.InitialState(resolver.State{Endpoints: d.list})
	cc, err := grpc.NewClient("detected:///orders", grpc.WithResolvers(d.resolver), grpc.WithDefaultServiceConfig(d.config(forGood)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	d.client = testgrpc.NewTestServiceClient(cc)
	return d
}

// config ejects who fails more than every other of its calls, for that long.
func (d *detected) config(ejection time.Duration) string {
	return fmt.Sprintf(`{"loadBalancingConfig": [{"outlier_detection_experimental": {"interval": "%[1]fs",
		"baseEjectionTime": "%[2]fs", "maxEjectionTime": "%[2]fs", "maxEjectionPercent": 50,
		"failurePercentageEjection": {"threshold": 50, "enforcementPercentage": 100, "minimumHosts": 2, "requestVolume": 5},
		"childPolicy": [%[3]s]}}]}`, lookEach.Seconds(), ejection.Seconds(), d.child)
}

// letBack has the resolver send a config by which ejections are over at the next look.
func (d *detected) letBack() {
	d.resolver.UpdateState(resolver.State{
		Endpoints:     d.list,
		ServiceConfig: d.resolver.CC().ParseServiceConfig(d.config(forAWhile)),
	})
}

// stats returns what is known of the channel, and of the endpoint b.
func (d *detected) stats(t *testing.T, b *backend) (all grpcbalancer.ChannelStats, of grpcbalancer.ConnectionStats, known evenkeel.EndpointStats) {
	t.Helper()
	list := slices.DeleteFunc(grpcbalancer.Stats(), func(s grpcbalancer.ChannelStats) bool { return s.Target != "detected:///orders" })
	if len(list) != 1 {
		t.Fatalf("%d policies", len(list))
	}
	connection := slices.IndexFunc(list[0].Connections, func(c grpcbalancer.ConnectionStats) bool { return strings.Contains(c.Endpoint, b.addr) })
	endpoint := slices.IndexFunc(list[0].Pool.Endpoints, func(e evenkeel.EndpointStats) bool { return strings.Contains(e.ID, b.addr) })
	if connection < 0 || endpoint < 0 {
		t.Fatalf("nothing is known of %s: %+v", b.addr, list[0])
	}
	return list[0], list[0].Connections[connection], list[0].Pool.Endpoints[endpoint]
}

// Whoever gRPC ejects gets no calls until it is let back, and then its part. It keeps its connection, and the policy
// what it knows of it: a call that was under way all the time stays counted.
func TestOutlierDetectionAsParentEjectsAndLetsBack(t *testing.T) {
	// Ours is off: nobody but gRPC ejects here. Failures do not count, or the sick one would be avoided.
	const ours = `{"evenkeel": {"policy": {"p2c": {"signal": {"peak_ewma": {"plain": true}}}},
		"outlier": {"mode": "off"}, "limit": {"disabled": true}}}`
	for name, child := range map[string]string{
		"child":      ours,
		"grandchild": `{"random_subsetting_experimental": {"subsetSize": 3, "childPolicy": [` + ours + `]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			backends, sick := startSickly(t, 3)
			b := backends[1]
			d := startDetected(t, child, backends)
			call := calling(d.client)
			reachAll(t, call, backends...)
			gate := make(chan struct{})
			b.held.Store(&gate)
			ended := occupy(t, func(ctx context.Context) error {
				_, err := d.client.EmptyCall(ctx, &testgrpc.Empty{}) // for as long as the test takes
				return err
			}, b)
			b.held.Store(nil)
			load := keepCalling(t, call)

			sick[1].Store(true)
			eventually(t, "the sick one is ejected", func() bool {
				_, connection, _ := d.stats(t, b)
				return connection.State == connectivity.TransientFailure
			})
			load.noneFails(t, "while one is ejected")
			before := d.ejectedOne(t, b)
			load.noneFails(t, "while one is ejected")
			if after := d.ejectedOne(t, b); after.Picks != before.Picks {
				t.Errorf("the ejected one got %d calls", after.Picks-before.Picks)
			}

			sick[1].Store(false)
			calls := b.calls.Load()
			d.letBack()
			eventually(t, "it is let back", func() bool { return b.calls.Load() > calls+50 })
			load.noneFails(t, "when it is back")
			if _, connection, known := d.stats(t, b); connection.State != connectivity.Ready || known.Picks <= before.Picks || known.InFlight < 1 {
				t.Errorf("it is back: %+v, %+v, before: %+v", connection, known, before)
			}
			close(gate)
			if err := <-ended; err != nil {
				t.Errorf("the call that was under way all the time: %v", err)
			}
			load.stop()
			for i, b := range backends {
				if n := b.conns.Load(); n != 1 {
					t.Errorf("endpoint %d has had %d connections", i, n)
				}
				if _, _, known := d.stats(t, b); known.InFlight != 0 {
					t.Errorf("endpoint %d is left with %d calls in flight", i, known.InFlight)
				}
			}
		})
	}
}

// ejectedOne checks the picture of a channel one of whose three endpoints is ejected with a call under way, and
// returns what is known of that one.
func (d *detected) ejectedOne(t *testing.T, b *backend) evenkeel.EndpointStats {
	t.Helper()
	all, connection, known := d.stats(t, b)
	if all.State != connectivity.Ready || all.Ready != 2 || all.Failing != 1 {
		t.Errorf("the channel: %v, %d ready, %d failing", all.State, all.Ready, all.Failing)
	}
	if connection.State != connectivity.TransientFailure || connection.Err == nil {
		t.Errorf("the connection: %v, %v", connection.State, connection.Err)
	}
	if known.Available || known.Latency <= 0 || known.InFlight != 1 {
		t.Errorf("what is known of the endpoint: %+v", known)
	}
	return known
}

// With both, whoever is sick gets hardly any calls, those by which ours finds out when it is well again.
func TestOutlierDetectionAsParentGoesWithOurs(t *testing.T) {
	for name, child := range map[string]string{
		"default":     `{"evenkeel": {}}`,
		"round robin": `{"evenkeel": {"policy": "round_robin", "outlier": {"mode": "a50", "interval": "0.1s"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			backends, sick := startSickly(t, 3)
			d := startDetected(t, child, backends)
			call := calling(d.client)
			reachAll(t, call, backends...)
			load := keepCalling(t, call)
			sick[2].Store(true)
			eventually(t, "one call in a hundred fails at most", func() bool {
				failed, calls := load.failures(t, 400)
				return failed*100 <= calls
			})
			sick[2].Store(false)
			calls := backends[2].calls.Load()
			d.letBack()
			eventually(t, "it gets calls again", func() bool { return backends[2].calls.Load() > calls+20 })
			load.noneFails(t, "all are well")
		})
	}
}

// detecting is how a control plane asks for it.
func detecting(ejection time.Duration) *cluster.OutlierDetection {
	return &cluster.OutlierDetection{
		Interval:                       durationpb.New(lookEach),
		BaseEjectionTime:               durationpb.New(ejection),
		MaxEjectionTime:                durationpb.New(ejection),
		MaxEjectionPercent:             wrapperspb.UInt32(100),
		EnforcingSuccessRate:           wrapperspb.UInt32(0),
		EnforcingFailurePercentage:     wrapperspb.UInt32(100),
		FailurePercentageThreshold:     wrapperspb.UInt32(50),
		FailurePercentageMinimumHosts:  wrapperspb.UInt32(1),
		FailurePercentageRequestVolume: wrapperspb.UInt32(5),
	}
}

// Under xDS outlier detection is a parent, and priority, which is its parent, has to be told when nobody is left.
func TestXDSOutlierDetectionEjectsEndpointsAndPriorities(t *testing.T) {
	const ours = `{"policy": "round_robin", "outlier": {"mode": "off"}}`
	policy := custom(t, "evenkeel", ours)
	for name, policy := range map[string]proto.Message{"alone": policy, "under wrr_locality": perLocality(t, policy)} {
		t.Run(name, func(t *testing.T) {
			backends, sick := startSickly(t, 4)
			first, second := zone("z", each(backends[:3], 1, 1, 1)...), zone("y", each(backends[3:], 1)...)
			second.priority = 1
			plane := startControlPlane(t, policy)
			plane.outlier = detecting(forGood)
			plane.set(t, first, second)
			client := plane.dial(t)
			// A priority that says that it is still connecting is given ten seconds, in which calls wait.
			var waited atomic.Int64
			load := keepCalling(t, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 9*time.Second)
				defer cancel()
				_, err := client.EmptyCall(ctx, &testgrpc.Empty{})
				if status.Code(err) == codes.DeadlineExceeded {
					waited.Add(1)
				}
				return err
			})
			settle(t, "all are well", 200, 0.05, []float64{1. / 3, 1. / 3, 1. / 3, 0}, backends...)

			sick[0].Store(true)
			load.noneFails(t, "one is ejected")
			settle(t, "one is ejected", 200, 0.05, []float64{0, 0.5, 0.5, 0}, backends...)
			sick[1].Store(true)
			sick[2].Store(true)
			load.noneFails(t, "all of the first priority are ejected")
			settle(t, "all of the first priority are ejected", 200, 0, []float64{0, 0, 0, 1}, backends...)

			for _, s := range sick {
				s.Store(false)
			}
			plane.outlier = detecting(forAWhile)
			plane.set(t, first, second)
			settle(t, "all are back", 200, 0.05, []float64{1. / 3, 1. / 3, 1. / 3, 0}, backends...)
			load.noneFails(t, "all are back")
			if n := waited.Load(); n != 0 {
				t.Errorf("%d calls waited", n)
			}
			for i, b := range backends {
				if n := b.conns.Load(); n != 1 {
					t.Errorf("endpoint %d has had %d connections", i, n)
				}
			}
		})
	}
}
