package grpcbalancer

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// maxTried is how many attempts of a call are remembered: gRPC makes five at most unless it is told
// otherwise.
const maxTried = 6

// callContext is the context of a call that an interceptor of this package saw: what gRPC does not tell a
// policy. gRPC's attempts have contexts derived from it. It is one allocation, as a value in a context would be.
type callContext struct {
	context.Context
	kind picker.Kind

	// Where the attempts went. They come one after the other, but a context may be used for anything.
	count atomic.Int32
	tried [maxTried]atomic.Pointer[evenkeel.Record]
}

// callKey is the key by which a derived context finds it.
type callKey struct{}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns the call of a context, nil if no interceptor saw it.
func callOf(ctx context.Context) *callContext {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(callKey{}).(*callContext)
	return c
}

// describe says what is known of the call. Where it was tried already, it is to go elsewhere, if there is anybody
// else. It fills in r where it lies: a copy at once would wait for what was just written.
func (c *callContext) describe(r *evenkeel.Request) {
	if c == nil {
		r.Kind = picker.UnknownKind
		return
	}
	r.Kind = c.kind
	for i := range min(int(c.count.Load()), maxTried) {
		if record := c.tried[i].Load(); record != nil {
			r.Avoid = append(r.Avoid, record)
		}
	}
}

// goes notes where an attempt goes.
func (c *callContext) goes(to *evenkeel.Record) {
	if c == nil || c.count.Load() >= maxTried {
		return
	}
	if i := int(c.count.Add(1)) - 1; i < maxTried {
		c.tried[i].Store(to)
	}
}

// UnaryInterceptor tells the policy that a call is unary: a call that takes longer
// than usual is then a sign of a hang at once, and its duration a latency however
// long it is. And it lets the policy recognise the call: a retry of gRPC's own goes to an
// endpoint that the call was not sent to before, if there is one. Install it together with [StreamInterceptor]:
//
//	grpc.WithChainUnaryInterceptor(grpcbalancer.UnaryInterceptor)
//
// An interceptor that makes calls again itself comes before it to have each picked afresh, and after it to
// have them go elsewhere. It costs an allocation per call, changes nothing else, and does no harm on
// channels with another policy.
func UnaryInterceptor(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(&callContext{Context: ctx, kind: picker.Unary}, method, req, reply, cc, opts...)
}

// StreamInterceptor tells the policy that a call is a stream: it counts in flight
// until it ends, while its duration is neither a latency nor a sign of a hang.
// Without it a stream that ends well within ten seconds is taken for a slow call. Its retries are
// recognised as those of unary calls are.
//
//	grpc.WithChainStreamInterceptor(grpcbalancer.StreamInterceptor)
//
// It costs an allocation per stream, changes nothing else, and does no harm on
// channels with another policy.
func StreamInterceptor(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return streamer(&callContext{Context: ctx, kind: picker.Stream}, desc, cc, method, opts...)
}
