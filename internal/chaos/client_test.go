//go:build unix

package chaos

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// deadline is how long each request may take.
const deadline = time.Second

// client sends requests through an adapter.
type client struct {
	adapter string // "http", "http2" or "grpc"
	contender
	// call sends one request, and says to which address, if it is known, and what failed: ""
	// if nothing did.
	call func(ctx context.Context) (addr, failure string)
	// open begins a long answer, which comes in pieces until ctx is done.
	open func(ctx context.Context, every time.Duration) (*stream, error)
	// find replaces the list of servers.
	find func([]*server)
}

// stream is a long answer that has begun.
type stream struct {
	addr string
	next func() error // waits for the next piece
}

// adapters are the ways that requests go: httpclient.Transport over HTTP/1.1 and over HTTP/2
// without TLS, and a gRPC channel.
var adapters = map[string]func(*testing.T, contender, []*server) *client{
	"http": newHTTP1, "http2": newHTTP2, "grpc": newGRPC,
}

// addr is a server's address for this client.
func (c *client) addr(s *server) string {
	if c.adapter == "grpc" {
		return s.grpc
	}
	return s.http
}

// thin returns n clients, at least one, that are measured as one: each sends one of n requests.
func thin(t *testing.T, adapter string, c contender, fleet []*server, n int) *client {
	t.Helper()
	all := []*client{adapters[adapter](t, c, fleet)}
	for len(all) < n {
		all = append(all, adapters[adapter](t, c, fleet))
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
