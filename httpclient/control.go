package httpclient

import (
	"context"
	"slices"
)

// control is what a request's context says of how it is to be sent. It is immutable: whoever adds to
// it makes a copy.
type control struct {
	endpoint   string   // as the caller wrote it; "": any
	avoid      []string // as the caller wrote them
	rules      *rules   // nil: the Transport's
	rulesErr   error    // what is wrong with those that were given
	once       bool
	idempotent *bool // nil: by the request itself
	trace      *Trace
}

type controlKey struct{}

// controlOf returns the control of ctx, nil if it has none.
func controlOf(ctx context.Context) *control {
	c, _ := ctx.Value(controlKey{}).(*control)
	return c
}

func withControl(ctx context.Context, change func(*control)) context.Context {
	var c control
	if old := controlOf(ctx); old != nil {
		c = *old
	}
	change(&c)
	return context.WithValue(ctx, controlKey{}, &c)
}

// WithEndpoint returns a context for requests to the endpoint at addr alone, written as in
// [Address]. Its retries go there too, and it is never hedged. While the endpoint may not be used (it is not in the list, ejected,
// draining), such requests fail with an [ErrNoEndpoints]. "" takes back an earlier one.
func WithEndpoint(ctx context.Context, addr string) context.Context {
	return withControl(ctx, func(c *control) { c.endpoint = addr })
}

// WithAvoid returns a context for requests that go to the endpoints at these addresses, written as in [Address],
// only if there are no others. It adds to those that ctx has already; what is no address, or not in
// the list, is nobody.
func WithAvoid(ctx context.Context, addrs ...string) context.Context {
	return withControl(ctx, func(c *control) { c.avoid = slices.Concat(c.avoid, addrs) })
}

// WithRetry returns a context for requests that are retried as c says instead of Transport.Retry, except
// for its Budget, which is ignored: that is the target's. A request with a c that is not valid fails.
func WithRetry(ctx context.Context, c RetryConfig) context.Context {
	rules, err := c.rules(), c.Validate()
	return withControl(ctx, func(ctl *control) { ctl.rules, ctl.rulesErr, ctl.once = rules, err, c.Disabled })
}

// WithoutRetry returns a context for requests that are sent once: not retried, and not hedged.
func WithoutRetry(ctx context.Context) context.Context {
	return WithRetry(ctx, RetryConfig{Disabled: true})
}

// WithIdempotent returns a context for requests that may be sent twice, or not, whatever their method
// and headers say.
func WithIdempotent(ctx context.Context, idempotent bool) context.Context {
	return withControl(ctx, func(c *control) { c.idempotent = &idempotent })
}

// WithTrace returns a context for requests whose tries t is told of, instead of any that ctx has already.
func WithTrace(ctx context.Context, t *Trace) context.Context {
	return withControl(ctx, func(c *control) { c.trace = t })
}
