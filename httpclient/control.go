package httpclient

import (
	"context"
	"slices"
)

// control is what a request's context says of how it is to be sent. It is immutable: whoever adds to
// it makes a copy.
type control struct {
	pin        wish   // the zero wish: any
	avoid      []wish // those that are addresses
	rules      *rules // nil: the Transport's
	rulesErr   error  // what is wrong with those that were given
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

// wish is an endpoint that the caller names.
type wish struct {
	text string // as the caller wrote it
	at   location
	id   string // "": it depends on the target's port
	err  error  // why it is none
}

func wishFor(addr string) (w wish) {
	if w.text = addr; addr == "" {
		return w
	}
	if w.at, w.err = parseAddr(addr); w.err == nil && w.at.port != 0 {
		w.id = w.at.String()
	}
	return w
}

// of returns the endpoint's ID in a target with that port.
func (w *wish) of(t Target) string {
	if w.id != "" {
		return w.id
	}
	l := w.at
	l.port = t.port()
	return l.String()
}

// WithEndpoint returns a context for requests to the endpoint at addr and to no other, written as in
// [Address]. Its retries go there too, and it is never hedged. "" takes back an earlier one.
//
// It goes there even if others would not be sent there: while the endpoint is ejected, fails its checks, or asks to be
// left alone. If it is not in the list or this client's subset, or is drained, the request fails with an
// [ErrNoEndpoints] that says so; limits of requests in flight hold as for any other.
//
//	for _, e := range tr.Snapshot()[0].Endpoints { // ask each of them
//		req, err := http.NewRequestWithContext(httpclient.WithEndpoint(ctx, e.ID), "GET", url, nil)
//		...
//	}
func WithEndpoint(ctx context.Context, addr string) context.Context {
	return withControl(ctx, func(c *control) { c.pin = wishFor(addr) })
}

// WithAvoid returns a context for requests that go to the endpoints at these addresses, written as in [Address],
// only if there are no others. It adds to those that ctx has already; what is no address, or not in
// the list, is nobody. It does not count beside WithEndpoint.
func WithAvoid(ctx context.Context, addrs ...string) context.Context {
	return withControl(ctx, func(c *control) {
		c.avoid = slices.Clone(c.avoid)
		for _, addr := range addrs {
			if w := wishFor(addr); w.err == nil && addr != "" {
				c.avoid = append(c.avoid, w)
			}
		}
	})
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
