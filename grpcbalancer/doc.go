// Package grpcbalancer is the gRPC load-balancing policy "evenkeel". Importing it
// registers the policy; a service config chooses it:
//
//	import _ "github.com/evenkeel/evenkeel/grpcbalancer"
//
//	grpc.NewClient("dns:///orders.example.com:443",
//		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"evenkeel": {}}]}`), ...)
//
// Each call then goes to the endpoint that this client has most reason to expect a
// quick, good answer from: by its own calls in flight, the latencies that it
// measured and the failures that it saw. The braces take a config, such as
// {"policy": "round_robin"}; unknown fields in it are ignored, as gRPC asks, and
// wrong values refused. Use the list form shown here: the older
// "loadBalancingPolicy" turns into pick_first where the import is missing.
//
// # Behaviour
//
// An endpoint, with all its addresses, is what the resolver calls one. Each has a
// pick_first child of gRPC's own, so that dual-stack dialling, back-off, client-side
// health checks and gRPC's outlier detection work as elsewhere. What was learnt
// belongs to the endpoint's set of addresses: it outlasts resolver updates,
// reconnections and changes of config, and a stream stays counted where it was sent
// until it ends. gRPC drops a policy, and what it learnt, when the channel goes idle
// (after 30 minutes; grpc.WithIdleTimeout changes that) or names another policy.
//
// Without a list, and while connections are being made, calls wait; when all have
// failed, they fail with the errors of the endpoints in turn, unless they wait for
// ready. Weights come from the resolver (gRPC's weight attribute, xDS).
//
// A retry is an attempt of its own, picked and judged by itself. gRPC does not tell a
// policy whether a call is a stream; [UnaryInterceptor] and [StreamInterceptor] do.
// Without them every call counts in flight until it ends, and its duration is a
// latency unless it exceeds ten seconds: a shorter stream looks like a slow call.
//
// # Cost
//
// A pick and its end take no lock and allocate once. A change of one connection costs
// O(1), and is published at once when calls may be waiting for it, within a few
// milliseconds otherwise. A policy at rest has two timers and no goroutine.
package grpcbalancer
