//go:build unix

package chaos

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// bodySize is the length of an HTTP answer.
const bodySize = 4096

// pieceSize is the length of a piece of a long HTTP answer.
const pieceSize = 16

// checkPath is where HTTP servers are asked whether they are healthy, and checkEvery how often.
const (
	checkPath  = "/healthy"
	checkEvery = 200 * time.Millisecond
)

// speakHTTP serves HTTP/1.1 and, without TLS, HTTP/2.
func (b *behaviour) speakHTTP(l *listener) (stop func(time.Duration)) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		m, err := b.act(r.Context(), &b.http)
		if err != nil {
			return
		}
		switch m {
		case fail:
			w.WriteHeader(http.StatusInternalServerError)
		case overload:
			w.Header().Set("Retry-After", strconv.Itoa(int(comeAgain/time.Second)))
			w.WriteHeader(http.StatusTooManyRequests)
		case reset:
			w.Header().Set("Content-Length", strconv.Itoa(bodySize))
			_, _ = w.Write(make([]byte, bodySize/2))
			_ = http.NewResponseController(w).Flush()
			_ = pass(r.Context(), time.Millisecond) // the client has seen the headers by then
			l.reset(r.RemoteAddr)
		default:
			_, _ = w.Write(make([]byte, bodySize))
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", answer)
	mux.HandleFunc(checkPath, func(http.ResponseWriter, *http.Request) { b.checks.Add(1) }) // whatever the mode
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		every, err := time.ParseDuration(r.FormValue("every"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = b.stream(r.Context(), every, func() error {
			if _, err := w.Write(make([]byte, pieceSize)); err != nil {
				return err
			}
			return http.NewResponseController(w).Flush()
		})
	})
	s := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(l) }()
	return func(wait time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		if wait == 0 || s.Shutdown(ctx) != nil {
			_ = s.Close()
			l.resetAll() // it no longer knows those that speak HTTP/2
		}
	}
}

// rpc is the gRPC side of a server.
type rpc struct {
	testgrpc.UnimplementedTestServiceServer
	*behaviour
	listener *listener
}

// speakGRPC serves gRPC.
func (b *behaviour) speakGRPC(l *listener) (stop func(time.Duration)) {
	s := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(s, &rpc{behaviour: b, listener: l})
	healthpb.RegisterHealthServer(s, &healthy{checks: &b.checks})
	go func() { _ = s.Serve(l) }()
	return func(wait time.Duration) {
		if wait > 0 {
			defer time.AfterFunc(wait, s.Stop).Stop()
			s.GracefulStop()
		}
		s.Stop()
	}
}

// healthy is a health service to which the server is well, whatever the mode.
type healthy struct {
	healthpb.UnimplementedHealthServer
	checks *atomic.Int32
}

// Check implements the service.
func (h *healthy) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	h.checks.Add(1)
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// StreamingOutputCall implements the service: pieces at the interval of the first of the parameters.
func (s *rpc) StreamingOutputCall(req *testgrpc.StreamingOutputCallRequest, to grpc.ServerStreamingServer[testgrpc.StreamingOutputCallResponse]) error {
	if len(req.GetResponseParameters()) == 0 {
		return status.Error(codes.InvalidArgument, "no interval")
	}
	every := time.Duration(req.GetResponseParameters()[0].GetIntervalUs()) * time.Microsecond
	return s.stream(to.Context(), every, func() error { return to.Send(&testgrpc.StreamingOutputCallResponse{}) })
}

// EmptyCall implements the service.
func (s *rpc) EmptyCall(ctx context.Context, _ *testgrpc.Empty) (*testgrpc.Empty, error) {
	m, err := s.act(ctx, &s.grpc)
	if err != nil {
		return nil, err
	}
	switch m {
	case fail:
		return nil, status.Error(codes.Unavailable, "told to fail")
	case overload:
		_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", strconv.FormatInt(comeAgain.Milliseconds(), 10)))
		return nil, status.Error(codes.ResourceExhausted, "told to be full")
	case reset:
		_ = grpc.SendHeader(ctx, nil)
		_ = pass(ctx, time.Millisecond)
		if p, ok := peer.FromContext(ctx); ok {
			s.listener.reset(p.Addr.String())
		}
	}
	return &testgrpc.Empty{}, nil
}
