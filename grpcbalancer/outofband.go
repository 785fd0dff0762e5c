package grpcbalancer

import (
	"context"
	"math/rand/v2"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservicepb "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/evenkeel/evenkeel/internal/health"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcagrpc"
)

// outOfBand has each endpoint's connection report the endpoint's load in a stream beside the calls, as gRFC
// A51 has it: for who sends so few calls to each, or so long ones, that reports with the answers
// come too seldom.
type outOfBand struct {
	every time.Duration // an endpoint may report less often, and gRPC's own service does, each 30 s
	// take is told what an endpoint reports. It is called one at a time for an endpoint, must not wait,
	// and does not keep the report.
	take func(key string, r *orca.Report)
	// bad is told what is wrong with a report that take is not told of.
	bad func(key string, err error)
	// mute is told of an endpoint whose connection cannot be asked.
	mute func(key string)
	// without is told of an endpoint that does not have the service.
	without func(key string)
}

// onReady implements follower.
func (o *outOfBand) onReady(c *seat, sc balancer.SubConn) (onLost func()) {
	key := c.endpoint.key
	end, ok := onConnection(sc, func(ctx context.Context, cc grpc.ClientConnInterface) { o.run(ctx, cc, key) })
	if !ok {
		o.mute(key)
		return nil
	}
	return end
}

// run asks an endpoint for reports until ctx is done, at the pace of a health Watch. gRPC's own listener begins the next
// stream at once after one that had a report: a server whose streams all end after the first one, as it shuts
// down or means harm, gets thousands a second from each client.
func (o *outOfBand) run(ctx context.Context, cc grpc.ClientConnInterface, key string) {
	var report orca.Report // its slices are used again
	var watch health.Watch // for its pace alone
	client := v3orcaservicepb.NewOpenRcaServiceClient(cc)
	for {
		began := time.Now()
		err := o.stream(ctx, client, func(m *v3orcapb.OrcaLoadReport) {
			watch.Next(health.WatchServing, 0)
			// What is wrong with a report spoils all of it: it is foreign, and the next one is on its way.
			if err := orcagrpc.FromProto(&report, m); err != nil {
				o.bad(key, err)
			} else {
				o.take(key, &report)
			}
		})
		switch {
		case ctx.Err() != nil:
			return
		case status.Code(err) == codes.Unimplemented:
			o.without(key)
			return
		}
		if a := watch.Next(health.WatchBroken, rand.Uint64()); !sleep(ctx, max(a.RetryAfter, watchEvery-time.Since(began))) {
			return
		}
	}
}

// stream hands on the reports of one stream, until it ends.
func (o *outOfBand) stream(ctx context.Context, client v3orcaservicepb.OpenRcaServiceClient, tell func(*v3orcapb.OrcaLoadReport)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := &v3orcaservicepb.OrcaLoadReportRequest{ReportInterval: durationpb.New(o.every)}
	stream, err := client.StreamCoreMetrics(ctx, request)
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		tell(m)
		// One that sends more than it was asked for has to wait until it is read.
		if !sleep(ctx, min(o.every/2, time.Second)) {
			return ctx.Err()
		}
	}
}
