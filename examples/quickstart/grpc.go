package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	_ "github.com/evenkeel/evenkeel/grpcbalancer" // registers the policy "evenkeel"
)

// All that differs between the two gRPC clients.
const (
	roundRobinConfig = `{"loadBalancingConfig": [{"round_robin": {}}]}`
	evenkeelConfig   = `{"loadBalancingConfig": [{"evenkeel": {}}]}`
)

// grpcClient returns a function that makes a client with that service config.
func grpcClient(serviceConfig string) connectFunc {
	return func(ctx context.Context, addrs []string) (callFunc, func() error, error) {
		// Stands for DNS: a list of endpoints with one address each.
		r := manual.NewBuilderWithScheme("fleet")
		var list resolver.State
		for _, addr := range addrs {
			list.Endpoints = append(list.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}})
		}
		r.InitialState(list)
		conn, err := grpc.NewClient("fleet:///orders",
			grpc.WithResolvers(r),
			grpc.WithDefaultServiceConfig(serviceConfig),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithNoProxy())
		if err != nil {
			return nil, nil, err
		}
		if err := connected(ctx, conn); err != nil {
			return nil, nil, errors.Join(err, conn.Close())
		}
		call := func(ctx context.Context, work time.Duration) error {
			return conn.Invoke(ctx, workMethod, durationpb.New(work), new(emptypb.Empty))
		}
		return call, conn.Close, nil
	}
}

// connected waits for the first connection, so that requests do not wait for it.
func connected(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn.Connect()
	for s := conn.GetState(); s != connectivity.Ready; s = conn.GetState() {
		if !conn.WaitForStateChange(ctx, s) {
			return fmt.Errorf("no connection, the channel is %v: %w", s, ctx.Err())
		}
	}
	return nil
}

// The service, by hand: one method, from how long to work to nothing.
const workMethod = "/quickstart.Orders/Work"

var ordersService = grpc.ServiceDesc{
	ServiceName: "quickstart.Orders",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Work", Handler: grpcWork}},
}

func grpcWork(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var work durationpb.Duration
	if err := decode(&work); err != nil {
		return nil, err
	}
	switch err := srv.(*backend).handle(ctx, work.AsDuration()); {
	case errors.Is(err, errBroken):
		return nil, status.Error(codes.Unavailable, err.Error())
	case err != nil:
		return nil, status.FromContextError(err).Err()
	}
	return &emptypb.Empty{}, nil
}

// serveGRPC is a serveFunc.
func serveGRPC(l net.Listener, b *backend) (stop func() error) {
	// Stop waits for the handlers: the last of them may still be working.
	s := grpc.NewServer(grpc.WaitForHandlers(true))
	s.RegisterService(&ordersService, b)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return func() error {
		s.Stop()
		if err := <-served; !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
		return nil
	}
}
