package grpcbalancer

import (
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc/balancer"

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
}

// onReady implements follower.
func (o *outOfBand) onReady(c *seat, sc balancer.SubConn) (onLost func()) {
	var report orca.Report // its slices are used again
	end, ok := reportsOf(sc, o.every, func(m *v3orcapb.OrcaLoadReport) {
		// What is wrong with a report spoils all of it: it is foreign, and the next one is on its way.
		if err := orcagrpc.FromProto(&report, m); err != nil {
			o.bad(c.endpoint.key, err)
		} else {
			o.take(c.endpoint.key, &report)
		}
	})
	if !ok {
		o.mute(c.endpoint.key)
		return nil
	}
	return end
}
