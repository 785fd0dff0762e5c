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
// measured and the failures that it saw. The braces take a config, see below. Use the
// list form shown here: the older "loadBalancingPolicy" turns into pick_first where the
// import is missing.
//
// # Behaviour
//
// An endpoint, with all its addresses, is what the resolver calls one; of several with the
// same addresses the first counts. Each has a pick_first child of gRPC's own, so that
// dual-stack dialling, back-off, client-side health checks and gRPC's outlier
// detection work as elsewhere. What was learnt belongs to the endpoint's set of
// addresses: it outlasts resolver updates, reconnections and changes of config, and a
// stream stays counted where it was sent until it ends. gRPC drops a policy, and what it
// learnt, when the channel goes idle (after 30 minutes; grpc.WithIdleTimeout changes
// that) or names another policy; [Remember] keeps it for the next one. Each channel learns for itself, also of several
// to one target that are open at the same time, unless [Share] has them balance as one.
//
// gRPC resolves a DNS name again only when a connection ends. Let servers limit the age of connections
// (keepalive.ServerParameters, MaxConnectionAge), or clients never learn of new ones.
//
// Before the first list, and while connections are being made, calls wait. When all
// connections have failed, calls fail with the errors of the endpoints in turn. When
// the resolver fails before it has given a list, or gives one without endpoints, calls
// fail at once, with an error that names the target; an empty list also closes all
// connections, while a failing resolver takes away nothing. In all of these cases calls
// that wait for ready go on waiting.
//
// Weights come from the resolver (gRPC's weight attribute, xDS). There is no weight 0 in
// gRPC: it reads as absent, and counts as 1.
//
// A retry is an attempt of its own, counted and judged by itself. gRPC does not tell a
// policy whether a call is a stream, nor which attempts belong to one call; [UnaryInterceptor] and [StreamInterceptor] do:
// with them a retry goes to another endpoint than the attempts before it, while there is one.
// Without them it is picked like any other, which may be where it failed; and every call counts
// in flight until it ends, and its duration is a latency unless it exceeds ten seconds: a shorter stream looks like a slow call. An
// endpoint that has ended no call for ten minutes, and holds no stream that is known as
// one, is no longer believed to be busy.
//
// An attempt that the server did not process is no failure of its: one that crossed its GOAWAY, whose connection went
// away before anything was sent, that had no credentials or too large headers, or that waited for a stream until its
// deadline. gRPC makes most of those again by itself, without a retry policy. A server that refuses a stream
// (REFUSED_STREAM) is overloaded, and left alone for a moment. CANCELLED while the caller waits is a failure. Codes that are the
// caller's fault (UNIMPLEMENTED, UNAUTHENTICATED, ABORTED and the like) are answers, and a latency. Where a caller learns by sending that its call has failed, or a
// stream ends before it has any answer, gRPC tells a policy of no error; such an attempt counts for nothing.
//
// # Config
//
// The config is an object, the same in a service config and in xDS (a TypedStruct whose
// type_url ends in "/evenkeel"). All of it may be left out or null.
//
//	{"policy": "round_robin"}
//	{"policy": {"p2c": {"choices": 3, "signal": "in_flight"}}, "strict": true}
//	{"policy": "maglev", "keys": [{"header": "x-user"}, {"context": true}]}
//	{"policy": {"least": {"signal": {"peak_ewma": {"form": "linkerd", "tau": "5s"}}}}}
//
// "policy" is a name, or an object that maps one name to its parameters. Package picker
// says what each does, and when to use it.
//
//	adaptive                      the default
//	round_robin                   blind to weights, as is random
//	random
//	weighted_round_robin          shares by weight, as in the next three
//	weighted                      the same, by the name that goes with weights from "reports"
//	weighted_random
//	smooth_weighted_round_robin
//	edf
//	weighted_least_request        "active_request_bias": a number from 0, default 1
//	p2c                           "signal": default "latency"; "choices": 2 to 10, default 2
//	least                         "signal": default "in_flight"
//	maglev                        affinity, see "keys"; "size": a prime of 251 to 5000011,
//	                              default 65537, and as the next two: "seed": default 0,
//	                              a string from 2^53;
//	                              "load_factor": above 1 to 10, default 1.25;
//	                              "min_capacity": 1 to 1048576, default 4;
//	                              "unbounded": true, without these two;
//	                              "fallback": a policy for calls without a key, default adaptive;
//	                              "sticky_keys": up to 16777216, default 0;
//	                              "sticky_ttl": "1s" to "168h0m0s", default "10m0s"
//	ring_hash                     "points": 1 to 1048576, default 160
//	rendezvous
//
// A "signal" is what endpoints are compared by: a name, or an object that maps one to its
// parameters.
//
//	in_flight                     calls in flight
//	latency                       the expected wait, and failures, as in the next two
//	peak_hold
//	log_mean
//	least_time                    NGINX's least_time
//	peak_ewma                     "form": "finagle" (default), "linkerd" or "alpha";
//	                              "tau": "0s" to "1h0m0s", default "10s", none with "alpha";
//	                              "alpha": 0 to 1, default 0.3, with that form only;
//	                              "plain": true leaves out failures, age and overload
//
// "keys" says where a call has its affinity key, for policies that use one: of a list of
// objects, each with one of these fields, the first whose key is there and not empty.
// Without a list it is the context's.
//
//	"header": "x-user"            metadata of that name, in any case; several values are one
//	                              key, joined by commas
//	"path": true                  the full method, "/package.Service/Method"
//	"context": true               what evenkeel.WithKey gave the call's context
//
// "requestHashHeader": "x-user" stands for a list of that header alone, as for gRPC's own
// ring_hash (gRFC A76), whose ring is another one. Names that end in "-bin" are refused, and
// so are cookies and parameters of a query, which gRPC does not have. Metadata that
// credentials add comes too late to be a key. Calls with equal keys go to the same endpoint
// from all clients that have the same list, also to that of an httpclient.Transport, while it
// is READY. Keys of an endpoint that is not connected yet start at their next candidates, so that
// a new channel's first calls may go elsewhere. Those of one that is ejected go there, too.
//
// "subset" connects the channel to a part of the resolver's endpoints, as package subset says;
// {} is one with all defaults, 20 endpoints drawn by a seed of the channel's own. The others have
// no connection. The part changes with the list's addresses and nothing else about it (but with
// weights for "aperture", and with the load for "max_size"); while
// too few of it are READY, others are connected too, half a second after a connection is lost or
// three seconds after an attempt began, and given back when they have not been needed for a minute.
// While not one can be reached, further ones take their turn, once a minute.
// Calls on a connection that leaves go on to their end.
//
//	{"subset": {"size": 30, "client_index_env": "JOB_COMPLETION_INDEX", "client_count": 200}}
//
//	"algorithm": "auto"           deal with an index, else rendezvous; or "rendezvous", "deal",
//	                              "rocksteadier", "aperture", "deterministic"
//	"size": 20                    how many; below 12 there is little to choose from
//	"client_index": 3             or one of the next two: this client's index in its deployment
//	"client_index_env": "NAME"    what an environment variable says, "3" or "web-3"
//	"client_index_host": true     the ordinal of the host's name, web-3
//	"client_count": 200           the number of clients, if it is known
//	"seed": 0                     the deployment's, a number, or above 2^53 a string
//	"min_available": 10           default half of the size; -1 tops up nothing
//	"lot_size": 0                 fixes deal's lots
//	"max_size": 0                 from "size" up to this many, one for each
//	"load_per_endpoint": 0        calls a second that the channel makes
//
// "outlier" says which endpoints get no calls for a while because of how their calls ended, as package
// outlier says; {} is soft ejection. Without it endpoints are ejected, softly, under policies that do
// not look at failures: all but adaptive and those with a latency in their signal.
//
//	{"outlier": {"mode": "envoy", "envoy": {"consecutive_5xx": 3}, "panic": {"threshold": 40}}}
//
//	"mode": "soft"                or "envoy", "a50", "off"
//	"interval": "10s"             between two looks at rates
//	"max_ejection_percent": 10    default 100 in soft, where panic is the bound
//	"at_least_one", "base_ejection_time", "max_ejection_time", "max_ejection_jitter"
//	"soft": {}                    "consecutive_failures": default 5, -1 for never; "no_rate", "request_volume",
//	                              "min_hosts", "max_window", "probe_backoff", "max_probe_backoff", "probe_jitter",
//	                              "probe_timeout", "probe_successes", "checks_return", "remember"
//	"envoy": {}, "a50": {}        the names of their documents, in this form
//	"ramp": {}                    "window": default "10s", "-1s" for none; "aggression", "floor"
//	"panic": {}                   "threshold": default 50, 0 for never; "leave"; "fail_fast"
//
// "limit" bounds the calls in flight of this channel while its deadlines are missed; it is on by
// default. A call beyond it ends at once with UNAVAILABLE, whether or not it would wait for
// ready, and is no endpoint's failure. Streams that are known as such do not count.
//
//	"disabled": true
//	"floor": 2                    the limit never falls below it
//	"ceiling": 0                  nor rises above this, once there is one; 0 for none
//	"per_endpoint": 0             calls, streams included, that one endpoint has in flight at most; 0 for any; while
//	                              a new channel connects, those that are connected refuse what is beyond
//
// "slow_start" has endpoints that join or come back take up their share slowly; {} is ten seconds.
//
//	"window": "10s"
//	"aggression": 1
//	"floor": 10                   percent of the share to begin with
//
// "reports" says what is made of the load reports (ORCA) that servers send. See Reports below.
//
//	{"policy": "weighted", "reports": {"weights": "reported"}}
//
//	"weights": "listed"           or "reported", "feedback"
//	"weight": {}                  "utilization": default ["application_utilization", "cpu_utilization"];
//	                              "error_penalty": default 1, -1 for none; "blackout": default "10s";
//	                              "expiry": default "3m0s", or three of "out_of_band"; "period": default "1s"; "least": default 0.1;
//	                              "most": default 10; "hysteresis": default 0.02; "mean_for_unknown": false
//	"feedback": {}                "smoothing", "delay", "least", "most"
//	"out_of_band": "0s"           for weights: each endpoint is asked for a stream of reports at this interval,
//	                              "100ms" to "1h0m0s"
//	"ask": "text"                 does nothing here, as gRPC's servers need not be asked
//
// "health" has the endpoints checked; {} is a TCP connection each five seconds. See Health below.
//
//	{"health": {"protocol": "grpc", "service": "orders.v1.Orders"}}
//
//	"protocol": "tcp"             or "http", "https", "grpc"
//	"service": ""                 grpc: what is asked for; "" is the server as a whole
//	"port": 0                     the others: 0 is the endpoint's own
//	"path": "/"                   http and https, as in the next four
//	"host": ""                    default the channel's authority
//	"headers": []                 objects with "name" and "value"
//	"expect": [{"from": 200}]     statuses, ranges with "to"
//	"skip_verify": false          https alone: any certificate will do
//	"timeout": "1s"               of a check; grpc: for the first word on a connection
//	"use_unchecked": false        a new endpoint, or connection, is used before it was checked
//	"interval": "5s"              all but grpc, as the rest
//	"jitter": 0.1
//	"rise": 2
//	"fall": 3
//	"unexpected_at_once": false   one answer of another status takes the endpoint out
//	"no_traffic": "60s"           the interval while no calls are made
//
// Unknown fields are ignored, as gRPC asks; "strict": true refuses them. Wrong values are
// always refused: in a default service config grpc.NewClient fails then, and of those
// that come later gRPC keeps the last good one.
//
// [ServiceConfig] writes a service config from an evenkeel.Config. Policies and signals that are written in
// Go have no place in JSON: [Register] gives them a policy name of their own.
//
// # Health
//
// An endpoint that fails its checks gets no calls and keeps its connection; the channel stays READY. When so many
// fail that the verdicts are not believed (package outlier's Panic), calls go to all that are connected.
//
// Choose "grpc" where servers have grpc.health.v1.Health. Each endpoint is asked once, by Watch, on the very
// connection that calls use, and says so itself when it changes: nothing is sent meanwhile, no second port or certificate is
// needed, and what is checked is what is used. On a new connection it waits for the endpoint's first word, "timeout" at
// most, while others serve. Anything but SERVING is a no. A server that does not have the service is used,
// and a stream that breaks off is begun again after a second, after two, and so on up to thirty. The stream takes one of the
// connection's concurrent streams, and lasts as long as that does.
//
// gRPC's own healthCheckConfig does the same outside of this policy, takes the connection out of READY, and knows no
// panic: when all fail, so do all calls. With both, the worse one counts.
//
// Choose "http" or "https" where readiness is served beside gRPC, commonly on another "port", and "tcp" where nothing is, to
// notice machines that are gone: that is little more than the connection itself tells. These checks
// have connections of their own, made by the channel's dialer where it has one
// ([google.golang.org/grpc.WithContextDialer]); those of https trust the system's roots. Of an endpoint with several
// addresses the first is checked, whichever of them is in use. An address that has no port is not checked over another "port",
// nor without such a dialer: its endpoint is used as if there were no checks.
//
// An endpoint that leaves the list, or this channel's subset, gets no new calls; those on its connection go on, and gRPC
// closes that when the last of them has ended. There is no way to cut them off at a limit: "drain_timeout" does nothing here,
// and a stream that never ends keeps its connection. Give streams an end of their own, or let servers limit the
// age of connections with a grace period.
//
// # Reports
//
// Servers may say with the end of each call how they are (the trailer endpoint-load-metrics-bin, which grpc-go's send
// with orca.CallMetricsServerOption, and those of package orcagrpc always). Policies that go by the expected wait, as the
// default does, take the calls in flight, the latency and the errors from there that the server itself counts; without
// reports, or when they are old, they go by what this client sees.
//
// grpc-go's option alone reports nothing: handlers set the values, with orca.CallMetricsRecorderFromContext, or the
// program does with the recorder that the option is given. For weights these are the rate (SetQPS) and a utilization
// (SetApplicationUtilization or SetCPUUtilization): with one of them alone there is no weight. Package orcagrpc counts the
// rate, and gets the utilization from orca.TrackerConfig's CPU or Add.
//
// With weights from reports an endpoint's weight is the capacity that it reports: calls a second over
// utilization, where calls that fail count as utilization, too. These reports also come by a stream beside the calls
// ("out_of_band"), for who sends few calls to each endpoint, or long ones. grpc-go's own service sends those no more often than
// each 30 s, whatever it is asked for. A server without the service is asked once for each connection. Weights count after
// the blackout, from the time that two endpoints are known, and none is beyond "least" and "most" times the median,
// whatever is reported.
//
// A report that cannot be read, or that has numbers which cannot be, is counted and has no other effect. Under policies that
// make nothing of reports nobody looks at them. Whether reports arrive, and are of use, is in [Stats]: Pool.Reports,
// UsedReports, UnusableReports and BadReports, and Reporting of each of Pool.Endpoints.
//
// # Observing
//
// [Stats] shows each channel: its connections with their errors, what is known of each endpoint (with [Share], the
// numbers of all channels that share), and warnings. [Observe] has
// a function told what happens: connections, ejections, limits, trouble with the resolver, warnings. The package logs
// nothing itself.
//
// Two metrics are in gRPC's registry, off unless they are added by name (in opentelemetry.MetricsOptions, say):
//
//	evenkeel.endpoints            endpoints, by grpc.target and evenkeel.state: idle, connecting, ready,
//	                              transient_failure, and, besides, ejected (looked at each ten seconds)
//	evenkeel.refused_calls        calls that found no place within a limit, by grpc.target
//
// # Cost
//
// A pick and its end take no lock and allocate once, beside what the policy of the config
// does. A key in a header costs a copy of the call's metadata, made by gRPC: two allocations
// or more, and one for each name. One in the context, or the path, costs none. A change of
// one connection costs O(1), and is published at once when calls may be waiting for it,
// within a few milliseconds otherwise. A policy at rest has two timers and no goroutine; with checks it has one, and with
// those of "grpc" two more for each connection, which wait.
package grpcbalancer
