// Package deployment is what the gRPC example's client talks to: replicas of a service, each on an address of its own
// and all on one port, and a DNS server whose answer for the service's name is the list of them. That is what a
// headless service of Kubernetes looks like from a client.
//
// It is for the example alone: the DNS server knows that one name, speaks UDP, and answers anybody who reaches it.
// A replica is a gRPC server in this process and costs what that does; a call costs a timer.
//
// All methods are safe for concurrent use.
package deployment
