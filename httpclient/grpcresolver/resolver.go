package grpcresolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/evenkeel/evenkeel/httpclient"
)

// Resolver is an httpclient.Resolver that asks one of gRPC's. It must not be changed while it is in use.
//
// The list that gRPC's resolver reports last is in force, also an empty one, and also while it reports errors; those
// show in Snapshot. It is asked to look again when connections fail, at most once in 5 s. If it cannot be built, that is tried again
// after 1 to 32 seconds.
type Resolver struct {
	// Builder makes a resolver for each target. Registered ones are found with resolver.Get, gRPC's own
	// (dns, passthrough) if google.golang.org/grpc is imported. Build, ResolveNow and Close
	// are called as gRPC does, but two targets' resolvers at the same time, where a channel has one.
	Builder resolver.Builder
	// Target is what to resolve, in gRPC's form: "kubernetes:///orders.shop:http". It then serves every target, as
	// httpclient.Static does. Empty means "scheme:///host:port" with the Builder's scheme, and host and port of the target.
	Target string
	// Options are passed to the Builder, with DisableServiceConfig set. The zero value will do for most. An empty Authority
	// becomes the target's host and port.
	Options resolver.BuildOptions
}

// resolveNowEvery is the least time between two hints to look again.
const resolveNowEvery = 5 * time.Second

// Validate reports whether there is a Builder that can be used here, Target is a URL with its scheme, and r is not nil.
func (r *Resolver) Validate() error {
	if r == nil {
		return errors.New("grpcresolver: Resolver is nil, want one with a Builder")
	}
	if r.Builder == nil {
		return errors.New("grpcresolver: Builder is nil, want one of gRPC's; resolver.Get returns nil for schemes that are not registered")
	}
	scheme := r.Builder.Scheme()
	if scheme == "xds" {
		return errors.New("grpcresolver: Builder has the scheme xds, want one that reports endpoints: gRPC hands those of xDS to its own policies alone")
	}
	if r.Target == "" {
		return nil
	}
	if u, err := url.Parse(r.Target); err != nil || !strings.EqualFold(u.Scheme, scheme) {
		return fmt.Errorf("grpcresolver: Target is %.200q, want a URL with the Builder's scheme %q", r.Target, scheme)
	}
	return nil
}

// Watch builds a resolver and tells sink what it reports until ctx is done, and then closes it.
func (r *Resolver) Watch(ctx context.Context, target httpclient.Target, sink httpclient.Sink) error {
	if err := r.Validate(); err != nil {
		return err
	}
	hostPort := net.JoinHostPort(target.Host, target.Port)
	asked := &url.URL{Scheme: r.Builder.Scheme(), Path: "/" + hostPort}
	if r.Target != "" {
		var err error
		if asked, err = url.Parse(r.Target); err != nil {
			return err // Validate has seen that it can be parsed
		}
	}
	options := r.Options
	options.DisableServiceConfig = true
	if options.Authority == "" {
		options.Authority = hostPort
	}
	c := &channel{sink: sink}
	defer c.close() // before the resolver is: what it still says then is not heard
	built, err := r.Builder.Build(resolver.Target{URL: *asked}, c, options)
	if err != nil {
		return fmt.Errorf("grpcresolver: %w", err)
	}
	if built == nil {
		return errors.New("grpcresolver: Builder returned neither a resolver nor an error")
	}
	defer built.Close()
	defer c.close()
	hint(ctx, sink.Refresh(), func() { built.ResolveNow(resolver.ResolveNowOptions{}) })
	return ctx.Err()
}

// hint calls f for hints, though not often, until ctx is done.
func hint(ctx context.Context, hints <-chan struct{}, f func()) {
	timer := time.NewTimer(0) // runs out when the next call may be made
	defer timer.Stop()
	for wanted, free := false, false; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			free = true
		case _, ok := <-hints:
			if wanted = ok; !ok {
				hints = nil
			}
		}
		if wanted && free {
			wanted, free = false, false
			timer.Reset(resolveNowEvery)
			f()
		}
	}
}

// channel is what a resolver of gRPC's takes for a channel.
type channel struct {
	resolver.ClientConn // nil: for methods to come, as gRPC asks

	sink httpclient.Sink

	// mu is held while the sink is told, so that nothing is told after close.
	mu     sync.Mutex
	closed bool
}

var errClosed = errors.New("grpcresolver: the resolver was closed")

// UpdateState passes the endpoints on. An error says that they were refused, and why.
func (c *channel) UpdateState(s resolver.State) error {
	list := addresses(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	return c.sink.Update(list)
}

// ReportError passes an error on.
func (c *channel) ReportError(err error) {
	if err == nil {
		err = errors.New("grpcresolver: the resolver reported an error without saying which")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.sink.Error(err)
	}
}

// NewAddress is UpdateState's old form.
func (c *channel) NewAddress(list []resolver.Address) {
	_ = c.UpdateState(resolver.State{Addresses: list}) // it has no way to say that they were refused; the sink shows it
}

// ParseServiceConfig returns a result, never nil, since resolvers look into it.
func (c *channel) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{Err: errors.New("grpcresolver: there are no service configurations for HTTP")}
}

func (c *channel) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}
