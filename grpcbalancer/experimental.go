package grpcbalancer

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/experimental/stats"
	_ "google.golang.org/grpc/orca" // reads the reports of calls
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

	unknown []string // fields of that which mean nothing
}

// Metrics of the package in gRPC's registry, off unless a user adds them by name. A name that is taken, by
// another major version of this module in the same program, is left to who has it: gRPC ends the process
// over a name that is registered twice.
var (
	endpointsMetric *stats.Int64UpDownCountHandle
	refusedMetric   *stats.Int64CountHandle
)

// gRPC's registry is not safe for concurrent use: init is the one place for it.
func init() {
	endpoints := stats.MetricDescriptor{
		Name:        "evenkeel.endpoints",
		Description: "Endpoints whose connection is in a state (idle, connecting, ready, transient_failure), or that are ejected (ejected).",
		Unit:        "{endpoint}",
		Labels:      []string{"grpc.target", "evenkeel.state"},
	}
	if stats.DescriptorForMetric(endpoints.Name) == nil {
		endpointsMetric = stats.RegisterInt64UpDownCount(endpoints)
	}
	refused := stats.MetricDescriptor{
		Name:        "evenkeel.refused_calls",
		Description: "Calls that found no place within a limit.",
		Unit:        "{call}",
		Labels:      []string{"grpc.target"},
	}
	if stats.DescriptorForMetric(refused.Name) == nil {
		refusedMetric = stats.RegisterInt64Count(refused)
	}
}

// recorder records the metrics of one policy.
type recorder struct {
	to     stats.MetricsRecorder
	target string
}

// recorderOf returns what records the metrics of a policy on cc: nothing below a parent that embeds a nil.
func recorderOf(cc balancer.ClientConn, target string) *recorder {
	r := &recorder{target: target}
	offers(func() { r.to = cc.MetricsRecorder() })
	return r
}

// endpoints records that there are so many more endpoints in a state.
func (r *recorder) endpoints(more int64, state string) {
	if r.to != nil && endpointsMetric != nil {
		endpointsMetric.Record(r.to, more, r.target, state)
	}
}

// refused records that so many more calls were refused.
func (r *recorder) refused(more int64) {
	if r.to != nil && refusedMetric != nil {
		refusedMetric.Record(r.to, more, r.target)
	}
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

// streamer is a producer of gRPC's, whose calls go to one connection: it runs a function there,
// once. Its address tells it apart from others on that connection.
type streamer struct {
	run   func(context.Context, grpc.ClientConnInterface)
	began bool // written by Build, read by who made it
}

// Build implements balancer.ProducerBuilder. What it returns is called when the connection's state
// changes, or by onConnection's caller, and waits, as gRPC wants it.
func (s *streamer) Build(connection any) (balancer.Producer, func()) {
	cc, ok := connection.(grpc.ClientConnInterface)
	if !ok {
		return s, func() {}
	}
	s.began = true
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(ctx, cc)
	}()
	return s, func() {
		cancel()
		<-done
	}
}

// onConnection runs f in a goroutine of its own, with a connection that is READY for its calls. Its
// context ends when the connection is lost, or with end, which is to be called all the same; both wait
// for f to return. ok is false if the connection is one of a parent's that offers nothing like that.
func onConnection(sc balancer.SubConn, f func(context.Context, grpc.ClientConnInterface)) (end func(), ok bool) {
	s := &streamer{run: f}
	ok = offers(func() { _, end = sc.GetOrBuildProducer(s) })
	return end, ok && s.began
}

// offers reports whether ask, which asks a connection for something, comes back from that. A wrapper
// that implements a part of balancer.SubConn embeds it to be allowed to, and may have nothing there.
func offers(ask func()) (ok bool) {
	defer func() {
		if !ok {
			_ = recover()
		}
	}()
	ask()
	return true
}
