package orcagrpc_test

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is a test service whose unary call and stream do what they are told.
type backend struct {
	testgrpc
	unary  func(context.Context) error
	stream func(grpc_testing.TestService_FullDuplexCallServer) error
}

type testgrpc = grpc_testing.UnimplementedTestServiceServer

func (b *backend) EmptyCall(ctx context.Context, _ *grpc_testing.Empty) (*grpc_testing.Empty, error) {
	if b.unary != nil {
		if err := b.unary(ctx); err != nil {
			return nil, err
		}
	}
	return &grpc_testing.Empty{}, nil
}

func (b *backend) FullDuplexCall(s grpc_testing.TestService_FullDuplexCallServer) error {
	return b.stream(s)
}

// listen starts a server on loopback and returns its address.
func listen(t *testing.T, register func(*grpc.Server), opts ...grpc.ServerOption) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(opts...)
	register(s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(lis)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return lis.Addr().String()
}

// dial returns a client of the addresses with a service config.
func dial(t *testing.T, config string, addrs ...string) *grpc.ClientConn {
	t.Helper()
	r := manual.NewBuilderWithScheme("orcagrpc-test")
	state := resolver.State{}
	for _, a := range addrs {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: a}) // for what knows no endpoints
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	r.InitialState(state)
	cc, err := grpc.NewClient(r.Scheme()+":///x", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// within is a context for what has to happen soon.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
