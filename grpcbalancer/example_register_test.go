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
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/grpcbalancer"
	"github.com/evenkeel/evenkeel/picker"
)

// primary is a policy of one's own: the first endpoint of the list gets all calls, and
// the others stand by for when it is not connected.
type primary struct{}

func (primary) Validate() error                                        { return nil }
func (primary) Needs() picker.Need                                     { return 0 }
func (primary) Pick(s *picker.Snapshot, _ picker.Request, _ int64) int { return s.At(0) }

func (p primary) Build(*picker.Members, picker.Picker) picker.Picker { return p }

func init() {
	if err := grpcbalancer.Register("primary", evenkeel.Config{Policy: primary{}}); err != nil {
		panic(err)
	}
}

// A policy that is written in Go has no JSON form: a name of its own stands for it.
func ExampleRegister() {
	var list resolver.State
	for range 2 {
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
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"primary": {}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithResolvers(names))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = cc.Close() }()

	// call makes a call and reports whether the first server answered.
	call := func() bool {
		var by peer.Peer
		client := grpc_health_v1.NewHealthClient(cc)
		if _, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{}, grpc.Peer(&by)); err != nil {
			log.Fatal(err)
		}
		return by.Addr.String() == list.Endpoints[0].Addresses[0].Addr
	}
	for !call() { // it connects last, maybe
	}
	first := 0
	for range 10 {
		if call() {
			first++
		}
	}
	fmt.Println(first, "of 10 calls went to the first server")
	// Output: 10 of 10 calls went to the first server
}
