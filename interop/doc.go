// Package interop tests Evenkeel beside software that its own module does not require: the xDS control plane
// of go-control-plane, a DNS server, gRPC's load reports, outlier detection, and interop and example programs, nginx,
// and golang.org/x/net/http2.
// It is a module of its own, so that nobody who imports Evenkeel gets those
// dependencies, and holds tests alone. Servers listen on loopback; nginx has to be
// installed, or its tests are skipped.
package interop
