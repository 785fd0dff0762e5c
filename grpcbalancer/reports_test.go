package grpcbalancer

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/metadata"
	grpcorca "google.golang.org/grpc/orca"
	"google.golang.org/protobuf/proto"

	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/orca/orcagrpc"
)

// byReports goes by reports as soon as there are any. Weights are looked at each 50 ms.
const byReports = `{"policy": "weighted", "reports": {"weights": "reported",
	"weight": {"blackout": "1ms", "period": "50ms", "hysteresis": -1}}}`

// reportingCalls starts a server that reports with the end of each call, by grpc-go's own
// interceptor, that it is this busy at that many calls a second.
func reportingCalls(t *testing.T, qps, utilization float64) *backend {
	t.Helper()
	b := start(t, "", grpcorca.CallMetricsServerOption(nil))
	b.answers(func(ctx context.Context) error {
		r := grpcorca.CallMetricsRecorderFromContext(ctx)
		r.SetQPS(qps)
		r.SetApplicationUtilization(utilization)
		return nil
	})
	return b
}

// weights returns the weights in force as multiples of the first backend's.
func (c *client) weights(backends []*backend) (of []float64) {
	stats := statsOf(c.policy())
	for _, b := range backends {
		of = append(of, stats[b.addr].Weight/stats[backends[0].addr].Weight)
	}
	return of
}

// callUntilWeights makes calls until the weights are these, as multiples of the first.
func (c *client) callUntilWeights(backends []*backend, want ...float64) {
	c.t.Helper()
	var got []float64
	defer func() {
		if c.t.Failed() {
			c.t.Logf("weights %v, want %v", got, want)
		}
	}()
	eventually(c.t, "weights as reported", func() bool {
		c.calls(10)
		got = c.weights(backends)
		for i, w := range want {
			if !(math.Abs(got[i]-w) <= 0.01*w) {
				return false
			}
		}
		return true
	})
}

func TestWeightsAndSharesAreThoseThatCallsReport(t *testing.T) {
	// Capacities of 100, 200 and 500 calls a second.
	servers := []*backend{reportingCalls(t, 50, 0.5), reportingCalls(t, 50, 0.25), reportingCalls(t, 400, 0.8)}
	c := connect(t, lbConfigOf(byReports), servers)
	c.callUntilWeights(servers, 1, 2, 5)
	var before [3]int64
	for i, s := range servers {
		before[i] = s.calls.Load()
	}
	c.calls(800)
	for i, want := range []int64{100, 200, 500} {
		if got := servers[i].calls.Load() - before[i]; got < want-4 || got > want+4 {
			t.Errorf("server %d got %d of 800 calls, want %d", i, got, want)
		}
	}
	if s := c.policy().pool.Stats(); s.BadReports != 0 {
		t.Errorf("%d bad reports: %v", s.BadReports, s.BadReport)
	}
}

// gRPC's own weighted_round_robin gives such a server 99 % of the calls, with ten servers.
func TestEndpointReportingUtilization0_001StaysWithinTheClamp(t *testing.T) {
	servers := []*backend{reportingCalls(t, 100, 0.5), reportingCalls(t, 100, 0.5), reportingCalls(t, 100, 0.5), reportingCalls(t, 100, 0.001)}
	c := connect(t, lbConfigOf(byReports), servers)
	c.callUntilWeights(servers, 1, 1, 1, 10) // not 500
	before := servers[3].calls.Load()
	c.calls(520)
	if got := servers[3].calls.Load() - before; got > 404 {
		t.Errorf("%d of 520 calls went there, want ten of thirteen", got)
	}
}

func TestHostileReportsStayWithinTheClamp(t *testing.T) {
	var turn atomic.Int64
	lies := []struct{ qps, utilization float64 }{
		{math.NaN(), 0.5}, {-5, 0.5}, {1e300, 1e-300}, {math.Inf(1), 0.5}, {100, math.NaN()}, {1e-300, 1e300}, {100, -1},
	}
	liar := start(t, "")
	liar.answers(func(ctx context.Context) error {
		l := lies[int(turn.Add(1))%len(lies)]
		text, err := proto.Marshal(&v3orcapb.OrcaLoadReport{RpsFractional: l.qps, ApplicationUtilization: l.utilization})
		if err != nil {
			return err
		}
		return grpc.SetTrailer(ctx, metadata.Pairs(orcagrpc.TrailerKey, string(text)))
	})
	servers := []*backend{reportingCalls(t, 100, 0.5), reportingCalls(t, 100, 0.5), liar}
	c := connect(t, lbConfigOf(byReports), servers)
	for range 20 {
		c.callUntilWeights(servers, 1, 1)
		if w := c.weights(servers)[2]; !(w >= 0.0999 && w <= 10.001) {
			t.Fatalf("the liar has weight %v, want 0.1 to 10", w)
		}
	}
	eventually(t, "bad reports are counted", func() bool {
		c.calls(10)
		s := c.policy().pool.Stats()
		return s.BadReports > 0 && s.BadReport != nil
	})
}

func TestReportThatCannotBeReadIsCounted(t *testing.T) {
	broken := start(t, "")
	broken.answers(func(ctx context.Context) error {
		return grpc.SetTrailer(ctx, metadata.Pairs(orcagrpc.TrailerKey, "\xff\xff\xff"))
	})
	c := connect(t, lbConfigOf(byReports), []*backend{broken})
	c.calls(3)
	c.waitAtRest()
	if s := c.policy().pool.Stats(); s.BadReports != 3 || s.BadReport == nil {
		t.Errorf("%d bad reports, %v, want 3", s.BadReports, s.BadReport)
	}
	eventually(t, "the endpoint is no worse for it", func() bool { return statsOf(c.policy())[broken.addr].Success == 1 })
}

// Who does not go by reports does not even look at them.
func TestReportsAreNotReadWithoutNeed(t *testing.T) {
	broken := start(t, "")
	broken.answers(func(ctx context.Context) error {
		return grpc.SetTrailer(ctx, metadata.Pairs(orcagrpc.TrailerKey, "\xff\xff\xff"))
	})
	c := connect(t, lbConfigOf(`{"policy": "round_robin", "reports": {}}`), []*backend{broken})
	c.calls(3)
	c.waitAtRest()
	if s := c.policy().pool.Stats(); s.BadReports != 0 {
		t.Errorf("%d bad reports, want nobody to read them", s.BadReports)
	}
	state := endpointsOf(broken)
	state.ServiceConfig = c.resolver.CC().ParseServiceConfig(lbConfigOf(byReports))
	c.resolver.UpdateState(state)
	eventually(t, "the new config reads them", func() bool {
		c.calls(1)
		return c.policy().pool.Stats().BadReports > 0
	})
	state.ServiceConfig = c.resolver.CC().ParseServiceConfig(lbConfigOf(`{"policy": "round_robin"}`))
	c.resolver.UpdateState(state)
	eventually(t, "the config is in force", func() bool { return !c.policy().reads.Load() })
	c.waitAtRest()
	n := c.policy().pool.Stats().BadReports
	c.calls(3)
	c.waitAtRest()
	if now := c.policy().pool.Stats().BadReports; now != n {
		t.Errorf("%d bad reports, want the %d from before", now, n)
	}
}

// Weights from streams alone: no call reports anything.
func TestWeightsFollowReportsOutOfBand(t *testing.T) {
	const config = `{"policy": "weighted", "reports": {"weights": "reported", "out_of_band": %q,
		"weight": {"blackout": "1ms", "period": "50ms", "hysteresis": -1}}}`
	servers, all := make([]*backend, 3), make([]*streams, 3)
	for i, utilization := range []float64{0.8, 0.4, 0.2} {
		m, s := grpcorca.NewServerMetricsRecorder(), &streams{}
		m.SetQPS(100)
		m.SetApplicationUtilization(utilization)
		servers[i], all[i] = startWith(t, "", func(b *backend) {
			if err := grpcorca.Register(b.server, grpcorca.ServiceOptions{ServerMetricsProvider: m}); err != nil {
				t.Fatal(err)
			}
		}, s.option()), s
	}
	// Ours, for the interval: grpc-go's service sends one report at once, and the next after 30 s. An
	// endpoint is known from a report that comes after its blackout.
	c := connect(t, lbConfigOf(fmt.Sprintf(config, "100ms")), servers)
	eventually(t, "each is asked", func() bool {
		for _, s := range all {
			if s.open.Load() != 1 {
				return false
			}
		}
		return true
	})
	list := endpointsOf(servers...)
	changeTo := func(config string) {
		list.ServiceConfig = c.resolver.CC().ParseServiceConfig(lbConfigOf(config))
		c.resolver.UpdateState(list)
	}
	changeTo(fmt.Sprintf(config, "200ms")) // asks anew: the second report of each
	c.callUntilWeights(servers, 1, 2, 4)
	for _, s := range all {
		if s.open.Load() != 1 || s.begun.Load() != 2 {
			t.Errorf("%d streams are open of %d, want one of two", s.open.Load(), s.begun.Load())
		}
	}
	changeTo(fmt.Sprintf(config, "200ms")) // the same wish
	changeTo(`{"policy": "weighted"}`)
	for _, s := range all {
		eventually(t, "nobody asks any more", func() bool { return s.open.Load() == 0 })
		if s.begun.Load() != 2 {
			t.Errorf("%d streams were begun, want two", s.begun.Load())
		}
	}
	c.callUntilWeights(servers, 1, 1, 1)
}

// An endpoint that leaves the subset is not asked any more.
func TestLeaversOfASubsetAreNotAskedForReports(t *testing.T) {
	servers, all := make([]*backend, 4), make([]*streams, 4)
	for i := range servers {
		servers[i], _, all[i] = reporting(t, 0.5)
	}
	c := dial(t, lbConfigOf(`{"subset": {"size": 2}, "policy": "weighted", "reports": {"weights": "reported", "out_of_band": "1s"}}`))
	c.resolver.InitialState(endpointsOf(servers...))
	c.cc.Connect()
	c.waitReady(2)
	open := func() (n int64) {
		for _, s := range all {
			n += s.open.Load()
		}
		return n
	}
	eventually(t, "those selected are asked", func() bool { return open() == 2 })
	var left []*backend
	for i, s := range all {
		if s.open.Load() == 0 {
			left = append(left, servers[i])
		}
	}
	c.resolver.UpdateState(endpointsOf(left...))
	eventually(t, "the others are asked", func() bool {
		for i, s := range all {
			if asked := servers[i] == left[0] || servers[i] == left[1]; (s.open.Load() == 1) != asked {
				return false
			}
		}
		return true
	})
}

// A parent whose connections offer no streams: there is a warning, once.
func TestConnectionsThatCannotBeAskedAreAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": "weighted", "reports": {"weights": "reported", "out_of_band": "1s"}}`)
		r.up(each("a", "b")...)
		list := r.policy.warnings.list()
		if len(list) != 1 || !strings.Contains(list[0], "is not asked for load reports") {
			t.Errorf("warnings %q", list)
		}
		r.wantServing("all the same", "a", "b")
	})
}

// The default takes what a server says of its load: here that it fails others, though not this client.
func TestDefaultTurnsAwayFromWhoReportsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b")...)
		got := map[string]int{}
		for range 500 {
			addr, done := r.picked()
			got[addr]++
			time.Sleep(2 * time.Millisecond)
			info := succeeded
			info.ServerLoad = &v3orcapb.OrcaLoadReport{RpsFractional: 100, Eps: map[string]float64{"a": 50, "b": 0}[addr]}
			done(info)
		}
		if got["a"] > 100 {
			t.Errorf("the one that fails half of its calls got %d of 500", got["a"])
		}
	})
}

// Nobody is asked for reports that nothing is made of.
func TestReportsWithoutUseAreNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"reports": {"out_of_band": "1s"}}`)
		r.up(each("a", "b")...)
		if r.policy.reports != nil || len(r.policy.warnings.list()) != 0 {
			t.Error("somebody is asked")
		}
	})
}

// doneWith is the end of an attempt of a policy by reports with this load in it.
func doneWith(t testing.TB, config string, info balancer.DoneInfo) (once func()) {
	c := newFakeChannel()
	p := builder{}.Build(c, balancer.BuildOptions{}).(*policy)
	t.Cleanup(p.Close)
	state := stateOf(each("a", "b"))
	state.BalancerConfig = parse(t, config)
	if err := p.UpdateClientConnState(state); err != nil {
		t.Fatal(err)
	}
	c.pump()
	pick := balancer.PickInfo{FullMethodName: "/s/m", Ctx: context.Background()}
	return func() {
		result, err := c.latest().Picker.Pick(pick)
		if err != nil {
			t.Fatal(err)
		}
		result.Done(info)
	}
}

var loadReport = &v3orcapb.OrcaLoadReport{ApplicationUtilization: 0.5, RpsFractional: 100}

// What gRPC's parser has allocated is gRPC's own; taking the report over allocates nothing more.
func TestReportsAllocateNothing(t *testing.T) {
	if testcost.Race {
		t.Skip("the race detector makes pools forget")
	}
	for name, load := range map[string]any{"none": (*v3orcapb.OrcaLoadReport)(nil), "nil": nil, "one": loadReport} {
		info := succeeded
		info.ServerLoad = load
		if n := testing.AllocsPerRun(1000, doneWith(t, byReports, info)); n > 1 {
			t.Errorf("%s: %v allocations, want 1", name, n)
		}
	}
}

// BenchmarkDone is a pick and its end, by what came with that.
func BenchmarkDone(b *testing.B) {
	for _, c := range []struct {
		name, config string
		load         any
	}{
		{"reports=unused", `{"policy": "weighted"}`, (*v3orcapb.OrcaLoadReport)(nil)},
		{"reports=absent", byReports, (*v3orcapb.OrcaLoadReport)(nil)},
		{"reports=one", byReports, loadReport},
	} {
		b.Run(c.name, func(b *testing.B) {
			info := succeeded
			info.ServerLoad = c.load
			info.Trailer = metadata.Pairs("x-one", "1", "x-two", "2")
			once := doneWith(b, c.config, info)
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
		})
	}
}
