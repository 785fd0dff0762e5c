package orcagrpc_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v3orcaservicepb "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	_ "google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	grpcorca "google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcagrpc"
)

// fleet starts servers that report through a Tracker, each with a capacity: its utilization is its
// rate over that.
func fleet(t *testing.T, capacities []float64) (addrs []string, served []atomic.Int64) {
	t.Helper()
	served = make([]atomic.Int64, len(capacities))
	for i, capacity := range capacities {
		reporter := &orcagrpc.Server{Tracker: orca.NewTracker(orca.TrackerConfig{
			Add: func(r *orca.Report) { r.Application = r.QPS / capacity },
		})}
		service := orcagrpc.NewService(orcagrpc.ServiceConfig{Tracker: reporter.Tracker, MinInterval: 50 * time.Millisecond})
		addrs = append(addrs, listen(t, func(s *grpc.Server) {
			grpc_testing.RegisterTestServiceServer(s, &backend{unary: func(context.Context) error {
				served[i].Add(1)
				return nil
			}})
			service.Register(s)
		}, reporter.Options()...))
		t.Cleanup(service.Close)
	}
	return addrs, served
}

// gRPC's own weighted round robin sends three of our servers their share by what they report, on the
// trailers as well as out of band.
func TestGRPCWeightedRoundRobinBalancesByOurReports(t *testing.T) {
	capacities := []float64{100, 200, 400}
	for _, oob := range []bool{false, true} {
		t.Run(fmt.Sprintf("oob=%v", oob), func(t *testing.T) {
			addrs, served := fleet(t, capacities)
			cc := dial(t, fmt.Sprintf(`{"loadBalancingConfig":[{"weighted_round_robin":{"blackoutPeriod":"0s",
				"weightUpdatePeriod":"0.1s","enableOobLoadReport":%v,"oobReportingPeriod":"0.1s"}}]}`, oob), addrs...)
			client := grpc_testing.NewTestServiceClient(cc)
			ctx := within(t)
			shares := func(calls int) [3]float64 {
				var before, share [3]float64
				for i := range served {
					before[i] = float64(served[i].Load())
				}
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						for range calls / 4 {
							if _, err := client.EmptyCall(ctx, &grpc_testing.Empty{}, grpc.WaitForReady(true)); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				for i := range served {
					share[i] = (float64(served[i].Load()) - before[i]) / float64(calls)
				}
				return share
			}
			near := func(share [3]float64) bool {
				for i, c := range capacities {
					if math.Abs(share[i]-c/700) > 0.04 {
						return false
					}
				}
				return true
			}
			// The first requests go round; the weights follow once all have reported.
			var share [3]float64
			for ctx.Err() == nil && !near(share) {
				share = shares(400)
			}
			if share = shares(2000); !near(share) {
				t.Errorf("shares %.3f, want those of %v", share, capacities)
			}
		})
	}
}

// recorded is what gRPC's own recorder sends in the tests below.
func recorded(r *orca.Report) error {
	rif, _ := r.Named.Get("rif")
	cost, _ := r.Costs.Get("tokens")
	disk, _ := r.Utilizations.Get("disk")
	if r.CPU != 0.5 || r.QPS != 100 || r.EPS != 2 || r.Application != 1.25 || r.Memory != 0.25 || rif != 4 || cost != 12 || disk != 0.75 {
		return fmt.Errorf("report %+v", *r)
	}
	return nil
}

func record(ctx context.Context) error {
	m := grpcorca.CallMetricsRecorderFromContext(ctx)
	m.SetCPUUtilization(0.5)
	m.SetQPS(100)
	m.SetEPS(2)
	m.SetApplicationUtilization(1.25)
	m.SetMemoryUtilization(0.25)
	m.SetNamedMetric("rif", 4)
	m.SetRequestCost("tokens", 12)
	m.SetNamedUtilization("disk", 0.75)
	return nil
}

// loads takes the reports of calls as a policy does.
var loads = make(chan any, 16)

func init() {
	balancer.Register(base.NewBalancerBuilder("orcagrpc_test_loads", loadPickers{}, base.Config{}))
}

type loadPickers struct{}

func (loadPickers) Build(info base.PickerBuildInfo) balancer.Picker {
	for sc := range info.ReadySCs {
		return loadPicker{sc}
	}
	return base.NewErrPicker(balancer.ErrNoSubConnAvailable)
}

type loadPicker struct{ sc balancer.SubConn }

func (p loadPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{SubConn: p.sc, Done: func(d balancer.DoneInfo) { loads <- d.ServerLoad }}, nil
}

func TestReportsOfGRPCsOwnServerAreRead(t *testing.T) {
	quiet := false
	addr := listen(t, func(s *grpc.Server) {
		grpc_testing.RegisterTestServiceServer(s, &backend{unary: func(ctx context.Context) error {
			if quiet {
				return nil
			}
			return record(ctx)
		}})
	}, grpcorca.CallMetricsServerOption(nil))
	client := grpc_testing.NewTestServiceClient(dial(t, `{"loadBalancingConfig":[{"orcagrpc_test_loads":{}}]}`, addr))
	call := func() (trailer metadata.MD, load any) {
		t.Helper()
		if _, err := client.EmptyCall(within(t), &grpc_testing.Empty{}, grpc.WaitForReady(true), grpc.Trailer(&trailer)); err != nil {
			t.Fatal(err)
		}
		return trailer, <-loads
	}
	var r orca.Report
	trailer, load := call()
	if found, err := orcagrpc.ParseTrailer(&r, trailer); !found || err != nil || recorded(&r) != nil {
		t.Errorf("in the trailer: %v, %v, %v", found, err, recorded(&r))
	}
	if found, err := orcagrpc.FromServerLoad(&r, load); !found || err != nil || recorded(&r) != nil {
		t.Errorf("as the server's load: %v, %v, %v", found, err, recorded(&r))
	}
	quiet = true
	trailer, load = call()
	if found, err := orcagrpc.ParseTrailer(&r, trailer); found || err != nil || !r.Empty() {
		t.Errorf("a call without a report has one in its trailer: %v, %+v", err, r)
	}
	if found, err := orcagrpc.FromServerLoad(&r, load); found || err != nil || !r.Empty() || load == nil {
		t.Errorf("a call without a report has one: %v, %+v (%T)", err, r, load)
	}
}

func TestOutOfBandReportsOfGRPCsOwnServiceAreRead(t *testing.T) {
	metrics := grpcorca.NewServerMetricsRecorder()
	metrics.SetCPUUtilization(0.5)
	metrics.SetQPS(100)
	addr := listen(t, func(s *grpc.Server) {
		if err := grpcorca.Register(s, grpcorca.ServiceOptions{ServerMetricsProvider: metrics}); err != nil {
			t.Error(err)
		}
	})
	cc := dial(t, `{}`, addr)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	stream, err := v3orcaservicepb.NewOpenRcaServiceClient(cc).StreamCoreMetrics(ctx, &v3orcaservicepb.OrcaLoadReportRequest{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var r orca.Report
	if err := orcagrpc.FromProto(&r, m); err != nil || r.CPU != 0.5 || r.QPS != 100 || r.Has(orca.EPS) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestServiceReportsAtOnceAndEachInterval(t *testing.T) {
	tr := orca.NewTracker(orca.TrackerConfig{})
	service := orcagrpc.NewService(orcagrpc.ServiceConfig{Tracker: tr, MinInterval: 20 * time.Millisecond})
	addr := listen(t, func(s *grpc.Server) { service.Register(s) })
	client := v3orcaservicepb.NewOpenRcaServiceClient(dial(t, `{}`, addr))
	open := func(interval *durationpb.Duration) v3orcaservicepb.OpenRcaService_StreamCoreMetricsClient {
		t.Helper()
		s, err := client.StreamCoreMetrics(within(t), &v3orcaservicepb.OrcaLoadReportRequest{ReportInterval: interval})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, interval := range []*durationpb.Duration{nil, durationpb.New(-1), durationpb.New(1), {Nanos: -1, Seconds: 1}} {
		start := time.Now()
		s := open(interval)
		var r orca.Report
		for range 4 {
			m, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if err := orcagrpc.FromProto(&r, m); err != nil {
				t.Fatal(err)
			}
			if _, ok := r.Named.Get(orca.InFlightMetric); !ok {
				t.Errorf("%+v", r)
			}
		}
		if took := time.Since(start); took < 3*20*time.Millisecond {
			t.Errorf("four reports in %v, more often than allowed", took)
		}
	}
	slow := open(durationpb.New(time.Hour))
	if _, err := slow.Recv(); err != nil {
		t.Fatal(err)
	}
	service.Close()
	service.Close()
	if m, err := slow.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("after Close: %v, %v", m, err)
	}
	// With a report in it, gRPC's clients would begin the next stream at once, thousands of times a second.
	if m, err := open(nil).Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a stream that began after Close: %v, %v", m, err)
	}
}
