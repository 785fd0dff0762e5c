package orcagrpc

import (
	"sync"
	"time"

	v3orcaservicepb "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/orca"
)

// ServiceConfig is the configuration of a [Service]. Tracker is required.
type ServiceConfig struct {
	// Tracker has what is reported.
	Tracker *orca.Tracker

	// MinInterval is the shortest interval that a client gets, and the one of those that ask for
	// none. 0 or less means 1 s. gRPC's own service never reports more often than each 30 s, which is
	// longer than what its clients ask for.
	MinInterval time.Duration
}

var errClosed = status.Error(codes.Unavailable, "orcagrpc: the service is closed")

// Service is the out-of-band service, xds.service.orca.v3.OpenRcaService: it sends each client that
// asks a report at once, and one after each interval. Make one with [NewService].
type Service struct {
	v3orcaservicepb.UnimplementedOpenRcaServiceServer
	config ServiceConfig

	once   sync.Once
	closed chan struct{}
}

// NewService returns a service by a configuration.
func NewService(c ServiceConfig) *Service {
	if c.MinInterval <= 0 {
		c.MinInterval = time.Second
	}
	return &Service{config: c, closed: make(chan struct{})}
}

// Register registers the service with a server, before that serves.
func (s *Service) Register(registrar grpc.ServiceRegistrar) {
	v3orcaservicepb.RegisterOpenRcaServiceServer(registrar, s)
}

// Close ends all streams, and those that begin later, with UNAVAILABLE and without a report: clients ask again,
// ever more seldom, or elsewhere. A server's GracefulStop waits for streams, and these have no end of their
// own, so that Close belongs before it. It may be called more than once.
func (s *Service) Close() { s.once.Do(func() { close(s.closed) }) }

// StreamCoreMetrics implements the service. It is called by gRPC.
func (s *Service) StreamCoreMetrics(req *v3orcaservicepb.OrcaLoadReportRequest, stream v3orcaservicepb.OpenRcaService_StreamCoreMetricsServer) error {
	interval := s.config.MinInterval
	if asked := req.GetReportInterval(); asked.IsValid() {
		interval = max(interval, asked.AsDuration())
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var r orca.Report
	for {
		// Before the first report, too: after a stream that had one, gRPC's clients begin the next at once, without
		// backing off.
		select {
		case <-s.closed:
			return errClosed
		default:
		}
		s.config.Tracker.Report(&r, s.config.Tracker.Now())
		// A message may still be in use after Send: each has maps of its own.
		if err := stream.Send(ToProto(&r)); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-s.closed:
			return errClosed
		case <-ticker.C:
		}
	}
}
