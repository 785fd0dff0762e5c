package orcagrpc

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/orca"
)

// Server counts the calls of a gRPC server and reports in the trailer of each. It must not be
// changed once it is in use.
//
//	reporter := orcagrpc.Server{Tracker: orca.NewTracker(orca.TrackerConfig{})}
//	s := grpc.NewServer(reporter.Options()...)
//
// A call is in flight until its handler has returned. A panic counts as a failure and goes on.
// Streams count in flight and give no latency.
type Server struct {
	// Tracker counts. It is required. Several servers, and orcahttp's handler, may share one.
	Tracker *orca.Tracker

	// Failed says which errors of handlers count for EPS. nil: those whose code is UNKNOWN, INTERNAL,
	// UNAVAILABLE, DATA_LOSS or DEADLINE_EXCEEDED.
	Failed func(error) bool
}

// Options returns the interceptors as options for grpc.NewServer, before which others may be chained.
func (s *Server) Options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(s.Unary), grpc.ChainStreamInterceptor(s.Stream)}
}

// Unary is a grpc.UnaryServerInterceptor.
func (s *Server) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	call := s.Tracker.Begin(s.Tracker.Now())
	kind := orca.Failed // unless handler returns
	defer func() {
		s.Tracker.End(call, s.Tracker.Now(), kind)
		if md := s.trailer(); md != nil {
			// The error says that this is no call of a server's, or that it is over.
			_ = grpc.SetTrailer(ctx, md)
		}
	}()
	resp, err := handler(ctx, req)
	if !s.failed(err) {
		kind = orca.Served
	}
	return resp, err
}

// Stream is a grpc.StreamServerInterceptor.
func (s *Server) Stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	call := s.Tracker.Begin(s.Tracker.Now())
	kind := orca.Failed // unless handler returns
	defer func() {
		s.Tracker.End(call, s.Tracker.Now(), kind)
		if md := s.trailer(); md != nil {
			ss.SetTrailer(md)
		}
	}()
	err := handler(srv, ss)
	if !s.failed(err) {
		kind = orca.Streamed
	}
	return err
}

func (s *Server) failed(err error) bool {
	switch {
	case err == nil:
		return false
	case s.Failed != nil:
		return s.Failed(err)
	}
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err) // as grpc's server does; UNKNOWN for others
	}
	switch st.Code() {
	case codes.Unknown, codes.Internal, codes.Unavailable, codes.DataLoss, codes.DeadlineExceeded:
		return true
	}
	return false
}

// reports are used again: one for each call would be two allocations.
var reports = sync.Pool{New: func() any { return new(orca.Report) }}

// trailer returns the metadata with the report of now.
func (s *Server) trailer() metadata.MD {
	r := reports.Get().(*orca.Report)
	defer reports.Put(r)
	s.Tracker.Report(r, s.Tracker.Now())
	var stack [512]byte
	message, err := r.AppendBinary(stack[:0])
	if err != nil {
		return nil
	}
	return metadata.MD{TrailerKey: {string(message)}}
}
