//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/evenkeel/evenkeel/grpcbalancer"
	"github.com/evenkeel/evenkeel/httpclient"
)

// deadline is how long each request may take.
const deadline = time.Second

// client sends requests through an adapter.
type client struct {
	adapter string // "http" or "grpc"
	contender
	// call sends one request, and says to which address, if it is known, and what failed: ""
	// if nothing did.
	call func(ctx context.Context) (addr, failure string)
	// find replaces the list of servers.
	find func([]*server)
}

// addr is a server's address for this client.
func (c *client) addr(s *server) string {
	if c.adapter == "http" {
		return s.http
	}
	return s.grpc
}

// thin returns n clients, at least one, that are measured as one: each sends one of n requests.
func thin(t *testing.T, make func(*testing.T, contender, []*server) *client, c contender, fleet []*server, n int) *client {
	t.Helper()
	all := []*client{make(t, c, fleet)}
	for len(all) < n {
		all = append(all, make(t, c, fleet))
	}
	together := *all[0]
	var next atomic.Uint64
	together.call = func(ctx context.Context) (addr, failure string) {
		return all[next.Add(1)%uint64(len(all))].call(ctx)
	}
	together.find = func(fleet []*server) {
		for _, c := range all {
			c.find(fleet)
		}
	}
	return &together
}

// newHTTP returns a client over an httpclient.Transport, which is closed with the test.
func newHTTP(t *testing.T, c contender, fleet []*server) *client {
	t.Helper()
	names := &told{lists: make(chan []httpclient.Address, 1)}
	tr := &httpclient.Transport{Resolver: names, Config: c.config}
	t.Cleanup(tr.Close)
	user := &http.Client{Transport: tr}
	find := func(fleet []*server) {
		list := make([]httpclient.Address, len(fleet))
		for i, s := range fleet {
			list[i].Addr = s.http
		}
		names.lists <- list
	}
	find(fleet)
	call := func(ctx context.Context) (string, string) {
		var addr atomic.Pointer[string] // a dial may go on when the request is over
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			ConnectStart: func(_, to string) { addr.Store(&to) },
			GotConn: func(info httptrace.GotConnInfo) {
				to := info.Conn.RemoteAddr().String()
				addr.Store(&to)
			},
		})
		failure := get(ctx, user, "http://chaos.invalid/")
		if to := addr.Load(); to != nil {
			return *to, failure
		}
		return "", failure
	}
	return &client{adapter: "http", contender: c, call: call, find: find}
}

// get sends a GET and reads the answer.
func get(ctx context.Context, user *http.Client, url string) (failure string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := user.Do(req)
	if err != nil {
		return failureOf(err)
	}
	defer resp.Body.Close()
	switch _, err = io.Copy(io.Discard, resp.Body); {
	case err != nil:
		return "body: " + failureOf(err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Sprint("status ", resp.StatusCode)
	}
	return ""
}

// failureOf is an error in few words.
func failureOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "EOF"
	}
	return err.Error()
}

// told is a resolver that says what it is told.
type told struct{ lists chan []httpclient.Address }

// Watch implements httpclient.Resolver.
func (r *told) Watch(ctx context.Context, _ httpclient.Target, sink httpclient.Sink) error {
	for {
		select {
		case list := <-r.lists:
			if err := sink.Update(list); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

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
		grpc.WithChainUnaryInterceptor(grpcbalancer.UnaryInterceptor))
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
		if err != nil {
			failure = status.Code(err).String()
		}
		return addr, failure
	}
	find := func(fleet []*server) { names.UpdateState(stateOf(fleet)) }
	return &client{adapter: "grpc", contender: c, call: call, find: find}
}
