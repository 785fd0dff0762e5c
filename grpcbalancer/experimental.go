package grpcbalancer

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/evenkeel/evenkeel"
)

// This file alone touches the parts of gRPC that change two or three times a year.
// Elsewhere the package needs balancer, resolver and connectivity, and the stable
// parts: codes, metadata, status.

// loadBalancingConfig is any policy's parsed config.
type loadBalancingConfig = serviceconfig.LoadBalancingConfig

// lbConfig is a parsed config. It is immutable: several policies may share it.
type lbConfig struct {
	serviceconfig.LoadBalancingConfig `json:"-"` // only embedding it makes a config

	config evenkeel.Config // what is in force
	given  evenkeel.Config // what of it came as JSON
}

// newChild builds the policy that owns the connection of one endpoint: gRPC's own
// pick_first, so that happy eyeballs over several addresses, sticky failure and
// client-side health checks stay what gRPC makes of them.
func newChild(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return balancer.Get(pickfirst.Name).Build(cc, opts)
}

// childState is what a child is told about its endpoint. The health listener is
// always on: without it gRPC's health checks and its outlier detection do nothing
// here while their own metrics say otherwise. It costs nothing when both are off.
func childState(parent resolver.State, endpoint resolver.Endpoint) balancer.ClientConnState {
	return balancer.ClientConnState{ResolverState: pickfirst.EnableHealthListener(resolver.State{
		Endpoints:  []resolver.Endpoint{endpoint},
		Attributes: parent.Attributes,
	})}
}

// weightOf returns the weight that the resolver or the control plane gave an
// endpoint. gRPC has no explicit zero there: 0 is how an absent one reads.
func weightOf(endpoint resolver.Endpoint) evenkeel.Weight {
	if w := weight.FromEndpoint(endpoint).Weight; w > 0 {
		return evenkeel.WeightOf(float64(w))
	}
	return evenkeel.Weight{}
}
