package grpcresolver

import (
	"net/netip"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
)

// addresses returns the list that a state comes to. Endpoints without an address are left out, as gRPC's
// policies do; who comes twice counts once, with the sum of the weights, as some resolvers mean it.
func addresses(s resolver.State) []httpclient.Address {
	endpoints := s.Endpoints
	if len(endpoints) == 0 {
		endpoints = make([]resolver.Endpoint, len(s.Addresses))
		for i, a := range s.Addresses { // what a channel makes of them
			//lint:ignore SA1019 it is where old resolvers put the weight
			endpoints[i] = resolver.Endpoint{Addresses: []resolver.Address{a}, Attributes: a.BalancerAttributes}
		}
	}
	list := make([]httpclient.Address, 0, len(endpoints))
	places := make(map[string]int, len(endpoints))
	for _, e := range endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		a := httpclient.Address{Addr: e.Addresses[0].Addr, Weight: weightOf(e)}
		key := canonical(a.Addr)
		if i, dup := places[key]; dup {
			if sum := list[i].Weight; sum.IsSet() || a.Weight.IsSet() {
				list[i].Weight = evenkeel.WeightOf(sum.Value() + a.Weight.Value())
			}
			continue
		}
		places[key] = len(list)
		list = append(list, a)
	}
	return list
}

// canonical returns one text for all forms of an IP address with a port, and others as they are.
func canonical(addr string) string {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return addr
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()).String()
}

// weightOf returns the weight that the resolver gave an endpoint. gRPC has no explicit zero there: 0 is how an
// absent one reads.
func weightOf(e resolver.Endpoint) evenkeel.Weight {
	if w := weight.FromEndpoint(e).Weight; w > 0 {
		return evenkeel.WeightOf(float64(w))
	}
	return evenkeel.Weight{}
}
