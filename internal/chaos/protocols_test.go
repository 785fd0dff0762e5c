//go:build unix

package chaos

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// bodySize is the length of an HTTP answer.
const bodySize = 4096

// speakHTTP serves HTTP/1.1.
func (b *behaviour) speakHTTP(l *listener) (stop func()) {
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, err := b.act(r.Context())
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
	})}
	go func() { _ = s.Serve(l) }()
	return func() { _ = s.Close() }
}

// rpc is the gRPC side of a server.
type rpc struct {
	testgrpc.UnimplementedTestServiceServer
	*behaviour
	listener *listener
}

// speakGRPC serves gRPC.
func (b *behaviour) speakGRPC(l *listener) (stop func()) {
	s := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(s, &rpc{behaviour: b, listener: l})
	go func() { _ = s.Serve(l) }()
	return s.Stop
}

// EmptyCall implements the service.
func (s *rpc) EmptyCall(ctx context.Context, _ *testgrpc.Empty) (*testgrpc.Empty, error) {
	m, err := s.act(ctx)
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
