package grpcbalancer_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenkeel/evenkeel/grpcbalancer"
)

func ExampleShare() {
	grpcbalancer.Share(true) // before the first channel is made
	defer grpcbalancer.Share(false)

	// Several channels to one service, to get around a server's limit of streams for each connection.
	for range 3 {
		cc, err := grpc.NewClient("dns:///orders.example.com:443",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"evenkeel": {}}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = cc.Close() }()
	}
	fmt.Println("three channels that balance as one")
	// Output: three channels that balance as one
}
