package grpcbalancer

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/test/bufconn"
)

// piped is a real channel with real servers that live in a bubble: their connections are pipes.
type piped struct {
	*client
	servers []*backend

	mu    sync.Mutex
	conns map[string]net.Conn // the latest to each server, by address
}

// newPiped returns a channel whose n servers are connected.
func newPiped(t *testing.T, n int, options ...grpc.DialOption) *piped {
	t.Helper()
	return newPipedOf(t, `{}`, n, nil, options...)
}

// newPipedOf is newPiped with a config, and servers with options.
func newPipedOf(t *testing.T, config string, n int, of []grpc.ServerOption, options ...grpc.DialOption) *piped {
	t.Helper()
	p := &piped{conns: map[string]net.Conn{}}
	listeners := map[string]*bufconn.Listener{}
	var list resolver.State
	for i := range n {
		l := bufconn.Listen(1 << 16)
		b := &backend{server: grpc.NewServer(of...)}
		p.servers = append(p.servers, b)
		testgrpc.RegisterTestServiceServer(b.server, b)
		served := make(chan struct{})
		b.served = served
		go func() {
			defer close(served)
			_ = b.server.Serve(l)
		}()
		t.Cleanup(b.stop)
		listeners[addrOf(i)] = l
		list.Endpoints = append(list.Endpoints, at(addrOf(i)))
	}
	p.client = dial(t, lbConfigOf(config), append(options, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := listeners[addr].DialContext(ctx)
		if err == nil {
			p.mu.Lock()
			p.conns[addr] = conn
			p.mu.Unlock()
		}
		return conn, err
	}))...)
	p.resolver.InitialState(list)
	p.cc.Connect()
	p.waitReady(n)
	return p
}

func addrOf(i int) string { return fmt.Sprint("pipe-", i) }

// lose breaks a server's connection, and waits until the channel knows.
func (p *piped) lose(i int) {
	p.mu.Lock()
	conn := p.conns[addrOf(i)]
	p.mu.Unlock()
	_ = conn.Close()
	synctest.Wait()
}
