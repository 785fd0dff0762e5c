package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The service, by hand: protoc-gen-connect-go would write these.
const (
	greetProcedure = "/example.v1.Greeter/Greet" // has no side effects, so that it may be called twice
	orderProcedure = "/example.v1.Greeter/Order" // may not
	watchProcedure = "/example.v1.Greeter/Watch" // streams so many answers
)

// healthPath is where clients ask whether to send calls.
const healthPath = "/healthz"

// text is what all messages are; an answer's is the name of who answers.
type text = wrapperspb.StringValue

// What the service takes.
const (
	work    = 3 * time.Millisecond  // a call
	watched = 10                    // messages of a stream
	between = 10 * time.Millisecond // two of them
)

// backend is one server. It is started anew at the address that it had.
type backend struct {
	name    string
	addr    string
	leaving atomic.Bool // its checks fail
	server  *http.Server
	served  chan error
}

func newBackend(name string) *backend { return &backend{name: name, addr: "127.0.0.1:0"} }

// start serves until stop is called.
func (b *backend) start() error {
	l, err := net.Listen("tcp", b.addr)
	if err != nil {
		return err
	}
	b.addr = l.Addr().String()
	b.leaving.Store(false)
	mux := http.NewServeMux()
	mux.HandleFunc(healthPath, func(w http.ResponseWriter, _ *http.Request) {
		if b.leaving.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.Handle(greetProcedure, connect.NewUnaryHandlerSimple(greetProcedure, b.answer,
		connect.WithIdempotency(connect.IdempotencyNoSideEffects)))
	mux.Handle(orderProcedure, connect.NewUnaryHandlerSimple(orderProcedure, b.answer))
	mux.Handle(watchProcedure, connect.NewServerStreamHandlerSimple(watchProcedure, b.stream))
	b.server, b.served = &http.Server{Handler: mux, Protocols: unencryptedHTTP2(), ReadHeaderTimeout: 5 * time.Second}, make(chan error, 1)
	go func(s *http.Server, served chan error) { served <- s.Serve(l) }(b.server, b.served)
	return nil
}

func unencryptedHTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// stop tells clients to go elsewhere, and waits for calls that are under way. It may be called again.
func (b *backend) stop() error {
	if b.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := b.server.Shutdown(ctx)
	if e := <-b.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	b.server = nil
	if err != nil {
		err = fmt.Errorf("%s: %w", b.name, err)
	}
	return err
}

func (b *backend) answer(_ context.Context, _ *text) (*text, error) {
	time.Sleep(work)
	return wrapperspb.String(b.name), nil
}

func (b *backend) stream(_ context.Context, _ *text, to *connect.ServerStream[text]) error {
	for range watched {
		if err := to.Send(wrapperspb.String(b.name)); err != nil {
			return err
		}
		time.Sleep(between)
	}
	return nil
}
