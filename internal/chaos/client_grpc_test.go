//go:build unix

package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/grpcbalancer"
)

// newGRPC returns a client over a gRPC channel, which is closed with the test.
func newGRPC(t *testing.T, c contender, fleet []*server) *client {
	t.Helper()
	stateOf := func(fleet []*server) resolver.State {
		var s resolver.State
		for _, srv := range fleet {
			s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: srv.grpc}}})
		}
		return s
	}
	names := manual.NewBuilderWithScheme("chaos")
	names.InitialState(stateOf(fleet))
	cc, err := grpc.NewClient("chaos:///fleet",
		grpc.WithResolvers(names),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig": [{%q: {}}]}`, c.grpcName())),
		grpc.WithChainUnaryInterceptor(grpcbalancer.UnaryInterceptor),
		grpc.WithChainStreamInterceptor(grpcbalancer.StreamInterceptor))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	service := testgrpc.NewTestServiceClient(cc)
	call := func(ctx context.Context) (addr, failure string) {
		var p peer.Peer
		_, err := service.EmptyCall(ctx, &testgrpc.Empty{}, grpc.Peer(&p))
		if p.Addr != nil {
			addr = p.Addr.String()
		}
		return addr, failureOfCall(err)
	}
	open := func(ctx context.Context, every time.Duration) (*stream, error) {
		answer, err := service.StreamingOutputCall(ctx, &testgrpc.StreamingOutputCallRequest{
			ResponseParameters: []*testgrpc.ResponseParameters{{IntervalUs: int32(every.Microseconds())}}})
		if err != nil {
			return nil, err
		}
		if _, err := answer.Header(); err != nil {
			return nil, err
		}
		s := &stream{next: func() error { _, err := answer.Recv(); return err }}
		if p, ok := peer.FromContext(answer.Context()); ok {
			s.addr = p.Addr.String()
		}
		return s, nil
	}
	find := func(fleet []*server) { names.UpdateState(stateOf(fleet)) }
	return &client{adapter: "grpc", contender: c, call: call, open: open, find: find}
}

// failureOfCall is an error in few words, "" for none.
func failureOfCall(err error) string {
	switch code := status.Code(err); {
	case err == nil:
		return ""
	case code == codes.DeadlineExceeded:
		return late
	case code == codes.Unavailable && strings.Contains(err.Error(), evenkeel.ErrOverloaded.Error()):
		return "over the limit"
	default:
		return code.String()
	}
}
