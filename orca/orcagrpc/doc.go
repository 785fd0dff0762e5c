// Package orcagrpc carries load reports (ORCA) over gRPC: it turns the message
// xds.data.orca.v3.OrcaLoadReport into an [orca.Report] and back, and has, for Go backends, the
// interceptors that report in the trailer of every response ([Server]) and the service that
// streams reports beside them ([Service]).
//
// The trailer is endpoint-load-metrics-bin, as gRPC's own package orca sends it, so that any gRPC
// client that balances by reports reads these, and [ParseTrailer] reads theirs. Do not
// use both on one server: their clients refuse two reports on one response. gRPC's own
// interceptor reports only where a handler has recorded something; these report always.
//
// A policy of grpc-go finds the report of a call in balancer.DoneInfo.ServerLoad, where
// [FromServerLoad] takes it, provided that the program links google.golang.org/grpc/orca;
// without it ParseTrailer takes it from DoneInfo.Trailer.
//
// # Cost
//
// The interceptors add about a microsecond and the trailer's few allocations to a call. Reading a
// report allocates for its names alone.
//
// # Concurrency
//
// All functions and methods are safe for concurrent use. A Service uses the goroutines of its
// streams and starts none.
package orcagrpc
