package grpcbalancer

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/leastrequest" // a baseline
	_ "google.golang.org/grpc/balancer/roundrobin"   // a baseline
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// peers are the policies measured side by side, each with its config.
var peers = []struct{ name, policy, config string }{
	{"round_robin", "round_robin", `{}`},
	{"least_request", "least_request_experimental", `{}`},
	{"evenkeel", Name, `{}`},
	{"evenkeel-in_flight", Name, `{"policy": {"p2c": {"signal": "in_flight"}}}`},
	{"evenkeel-round_robin", Name, `{"policy": "round_robin"}`},
}

// builtUp returns the picker of a policy whose n endpoints are READY.
func builtUp(b *testing.B, name, config string, n int) balancer.Picker {
	b.Helper()
	builder := balancer.Get(name)
	var parsed loadBalancingConfig
	if parser, ok := builder.(balancer.ConfigParser); ok {
		var err error
		if parsed, err = parser.ParseConfig(json.RawMessage(config)); err != nil {
			b.Fatal(err)
		}
	}
	c := newFakeChannel()
	p := builder.Build(c, balancer.BuildOptions{})
	b.Cleanup(p.Close)
	list := make([]resolver.Endpoint, n)
	for i := range list {
		list[i] = at(fmt.Sprintf("10.0.%d.%d:80", i/256, i%256))
	}
	state := balancer.ClientConnState{ResolverState: resolver.State{Endpoints: list}, BalancerConfig: parsed}
	if err := p.UpdateClientConnState(state); err != nil {
		b.Fatal(err)
	}
	c.pump()
	if own, ok := p.(*policy); ok {
		own.windowOver() // rather than wait for it
	}
	if s := c.latest(); s.ConnectivityState != connectivity.Ready {
		b.Fatalf("state %v", s.ConnectivityState)
	}
	return c.latest().Picker
}

// BenchmarkPick is one pick and its Done. The context is an RPC's at its shortest; an
// RPC over loopback costs some 50 µs and 130 allocations beside it.
func BenchmarkPick(b *testing.B) {
	type key struct{}
	info := balancer.PickInfo{FullMethodName: "/s/m", Ctx: context.WithValue(context.Background(), key{}, 0)}
	for _, peer := range peers {
		for _, n := range []int{10, 100, 1000} {
			name := fmt.Sprintf("policy=%s/n=%d", peer.name, n)
			once := func(b *testing.B, p balancer.Picker) {
				result, err := p.Pick(info)
				if err != nil {
					b.Fatal(err)
				}
				if result.Done != nil {
					result.Done(succeeded)
				}
			}
			b.Run(name, func(b *testing.B) {
				p := builtUp(b, peer.policy, peer.config, n)
				b.ReportAllocs()
				for b.Loop() {
					once(b, p)
				}
			})
			b.Run(name+"/parallel", func(b *testing.B) {
				p := builtUp(b, peer.policy, peer.config, n)
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						once(b, p)
					}
				})
			})
		}
	}
}

// BenchmarkStart is the way of n endpoints from the first list until all are READY.
func BenchmarkStart(b *testing.B) {
	for _, peer := range peers[:3] {
		for _, n := range []int{100, 1000} {
			b.Run(fmt.Sprintf("policy=%s/n=%d", peer.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					builtUp(b, peer.policy, peer.config, n)
				}
			})
		}
	}
}
