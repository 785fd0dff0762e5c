package grpcbalancer

import (
	"context"

	"google.golang.org/grpc"

	"github.com/evenkeel/evenkeel/picker"
)

// kindKey is the context key of what kind of call it is.
type kindKey struct{}

// kindOf returns what an interceptor of this package said about the call. gRPC itself
// does not tell a policy.
func kindOf(ctx context.Context) picker.Kind {
	if ctx == nil {
		return picker.UnknownKind
	}
	if kind, ok := ctx.Value(kindKey{}).(picker.Kind); ok {
		return kind
	}
	return picker.UnknownKind
}

// UnaryInterceptor tells the policy that a call is unary: a call that takes longer
// than usual is then a sign of a hang at once, and its duration a latency however
// long it is. Install it together with [StreamInterceptor]:
//
//	grpc.WithChainUnaryInterceptor(grpcbalancer.UnaryInterceptor)
//
// It costs an allocation per call, changes nothing else, and does no harm on
// channels with another policy.
func UnaryInterceptor(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(context.WithValue(ctx, kindKey{}, picker.Unary), method, req, reply, cc, opts...)
}

// StreamInterceptor tells the policy that a call is a stream: it counts in flight
// until it ends, while its duration is neither a latency nor a sign of a hang.
// Without it a stream that ends well within ten seconds is taken for a slow call.
//
//	grpc.WithChainStreamInterceptor(grpcbalancer.StreamInterceptor)
//
// It costs an allocation per stream, changes nothing else, and does no harm on
// channels with another policy.
func StreamInterceptor(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return streamer(context.WithValue(ctx, kindKey{}, picker.Stream), desc, cc, method, opts...)
}
