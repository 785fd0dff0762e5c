package grpcbalancer_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/evenkeel/evenkeel/grpcbalancer"
)

// A channel balances over three servers. A program would name them with a resolver,
// such as "dns:///orders.example.com:443"; here the addresses are given.
func Example() {
	var list resolver.State
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		server := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(server, health.NewServer())
		go func() { _ = server.Serve(listener) }()
		defer server.Stop()
		address := resolver.Address{Addr: listener.Addr().String()}
		list.Endpoints = append(list.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{address}})
	}
	names := manual.NewBuilderWithScheme("example")
	names.InitialState(list)

	cc, err := grpc.NewClient("example:///servers",
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"evenkeel": {}}]}`),
		// Optional: tells the policy which calls are streams.
		grpc.WithChainUnaryInterceptor(grpcbalancer.UnaryInterceptor),
		grpc.WithChainStreamInterceptor(grpcbalancer.StreamInterceptor),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithResolvers(names))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = cc.Close() }()

	reply, err := grpc_health_v1.NewHealthClient(cc).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.GetStatus())
	// Output: SERVING
}
