// Package grpcresolver lets the resolvers that exist for gRPC find the endpoints of package
// httpclient's Transports, such as those for Kubernetes and Consul:
//
//	tr := &httpclient.Transport{Resolver: &grpcresolver.Resolver{
//		Builder: kuberesolver.NewBuilder(client, "kubernetes"),
//		Target:  "kubernetes:///orders.shop:http",
//	}}
//
// Use it where services are found in one way, for gRPC and HTTP. For DNS, files and functions httpclient has
// resolvers of its own, which need no gRPC.
//
// Taken over are the endpoints, each with its first address, and their weights. What there is for gRPC alone is not: service
// configurations, names for TLS, attributes. gRPC's own xDS resolver is refused, since it hands the endpoints to
// gRPC's xDS policies by another way than as a list.
//
// # Cost and concurrency
//
// Each target has one resolver of the Builder's, with the goroutines that it starts, and O(endpoints) work for each
// of its lists. Everything is safe for concurrent use.
package grpcresolver
