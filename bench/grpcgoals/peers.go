package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/leastrequest"       // a peer
	_ "google.golang.org/grpc/balancer/roundrobin"         // a peer
	_ "google.golang.org/grpc/balancer/weightedroundrobin" // a peer
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/evenkeel/evenkeel/grpcbalancer"
)

// peer is one policy that is measured.
type peer struct{ name, policy, config string }

var roundRobin = peer{"round_robin", "round_robin", `{}`}

var evenkeel = peer{"evenkeel", grpcbalancer.Name, `{}`}

// peers are all of them. The first is what others are compared with.
var peers = []peer{
	roundRobin,
	{"least_request", "least_request_experimental", `{}`},
	{"weighted_round_robin", "weighted_round_robin", `{}`},
	evenkeel,
	{"evenkeel p2c in_flight", grpcbalancer.Name, `{"policy": {"p2c": {"signal": "in_flight"}}}`},
	{"evenkeel round_robin", grpcbalancer.Name, `{"policy": "round_robin"}`},
}

func (p peer) serviceConfig() string {
	return fmt.Sprintf(`{"loadBalancingConfig": [{%q: %s}]}`, p.policy, p.config)
}

// started returns the policy on a channel that is faked, and its first list is handed over.
func (p peer) started(list []resolver.Endpoint) (*fakeChannel, balancer.Balancer, error) {
	builder := balancer.Get(p.policy)
	var parsed serviceconfig.LoadBalancingConfig
	if parser, ok := builder.(balancer.ConfigParser); ok {
		var err error
		if parsed, err = parser.ParseConfig(json.RawMessage(p.config)); err != nil {
			return nil, nil, err
		}
	}
	c := newFakeChannel(parsed)
	b := builder.Build(c, balancer.BuildOptions{})
	return c, b, c.hand(b, list)
}

// addresses is a list of n endpoints.
func addresses(n int) []resolver.Endpoint {
	list := make([]resolver.Endpoint, n)
	for i := range list {
		list[i].Addresses = []resolver.Address{{Addr: fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255)}}
	}
	return list
}

// used is what a piece of work cost.
type used struct {
	cpu    time.Duration
	allocs uint64
	bytes  uint64
}

// measured does a piece of work.
func measured(work func()) used {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpu()
	work()
	spent := cpu() - start
	runtime.ReadMemStats(&after)
	return used{spent, after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc}
}

func least(list []float64) float64 { return slices.Min(list) }

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[n/2] + sorted[(n-1)/2]) / 2
}

// grpcVersion is that of the module in use.
func grpcVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == "google.golang.org/grpc" {
			return m.Version
		}
	}
	return "unknown"
}
