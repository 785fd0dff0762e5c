package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	cswrr "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/orca"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ours "github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcagrpc"
)

// Backends that are a seventh, two and four sevenths of their fleet.
var (
	capacities     = []float64{100, 200, 400}
	capacityShares = []float64{1. / 7, 2. / 7, 4. / 7}
)

// startReporting starts backends with Evenkeel's reports, each utilized by its rate over its capacity.
func startReporting(t *testing.T) []*backend {
	t.Helper()
	var list []*backend
	for _, capacity := range capacities {
		reporter := &orcagrpc.Server{Tracker: ours.NewTracker(ours.TrackerConfig{
			Add: func(r *ours.Report) { r.Application = r.QPS / capacity },
		})}
		service := orcagrpc.NewService(orcagrpc.ServiceConfig{Tracker: reporter.Tracker, MinInterval: 50 * time.Millisecond})
		list = append(list, startBackend(t, func(s *grpc.Server) { service.Register(s) }, reporter.Options()...))
		t.Cleanup(service.Close)
	}
	return list
}

// startGRPCReporting starts backends with gRPC's own reports: each says that it serves 100 calls a second, at
// the utilization that this is of its capacity. Of the two ways it has one.
func startGRPCReporting(t *testing.T, outOfBand bool) []*backend {
	t.Helper()
	var list []*backend
	for _, capacity := range capacities {
		if outOfBand {
			metrics := orca.NewServerMetricsRecorder()
			metrics.SetQPS(100)
			metrics.SetApplicationUtilization(100 / capacity / 2)
			list = append(list, startBackend(t, func(s *grpc.Server) {
				if err := orca.Register(s, orca.ServiceOptions{ServerMetricsProvider: metrics}); err != nil {
					t.Error(err)
				}
			}))
			continue
		}
		list = append(list, startBackend(t, nil, orca.CallMetricsServerOption(nil), grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				metrics := orca.CallMetricsRecorderFromContext(ctx)
				metrics.SetQPS(100)
				metrics.SetApplicationUtilization(100 / capacity / 2)
				return handler(ctx, req)
			})))
	}
	return list
}

// balances checks that a client that the control plane gives this policy shares calls by capacity.
func balances(t *testing.T, policy proto.Message, backends []*backend) {
	t.Helper()
	plane := startControlPlane(t, policy)
	plane.set(t, zone("z", each(backends, 1, 1, 1)...))
	load := keepCalling(t, calling(plane.dial(t)))
	settle(t, "by capacity", 700, 0.04, capacityShares, backends...)
	load.stop()
	load.check(t)
}

// gRPC's own weighted round robin, chosen by a control plane, takes Evenkeel's reports as it takes its own.
func TestORCAReportsOfOursBalanceGRPCsWeightedRoundRobin(t *testing.T) {
	for _, outOfBand := range []bool{false, true} {
		t.Run(fmt.Sprintf("out of band=%v", outOfBand), func(t *testing.T) {
			balances(t, &cswrr.ClientSideWeightedRoundRobin{
				EnableOobLoadReport: wrapperspb.Bool(outOfBand),
				OobReportingPeriod:  durationpb.New(100 * time.Millisecond),
				BlackoutPeriod:      durationpb.New(time.Millisecond), // 0 would be the default
				WeightUpdatePeriod:  durationpb.New(100 * time.Millisecond),
			}, startReporting(t))
		})
	}
}

// The policy takes reports of gRPC's own servers, and of Evenkeel's.
func TestORCAReportsBalanceOurWeights(t *testing.T) {
	const config = `{"policy": "weighted", "reports": {"weights": "reported", %s
		"weight": {"blackout": "-1s", "period": "0.1s", "least": 0.05}}}`
	inline := custom(t, "evenkeel", fmt.Sprintf(config, ""))
	outOfBand := custom(t, "evenkeel", fmt.Sprintf(config, `"out_of_band": "0.1s",`))
	for name, c := range map[string]struct {
		policy   proto.Message
		backends func(*testing.T) []*backend
	}{
		"gRPC's, on responses":      {inline, func(t *testing.T) []*backend { return startGRPCReporting(t, false) }},
		"gRPC's, out of band":       {outOfBand, func(t *testing.T) []*backend { return startGRPCReporting(t, true) }},
		"ours, on responses":        {inline, startReporting},
		"ours, out of band":         {outOfBand, startReporting},
		"ours, by locality as well": {perLocality(t, inline), startReporting},
	} {
		t.Run(name, func(t *testing.T) { balances(t, c.policy, c.backends(t)) })
	}
}
