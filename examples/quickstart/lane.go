package main

import (
	"context"
	"sync/atomic"
	"time"
)

// callFunc makes one request that takes a healthy server that long.
type callFunc func(ctx context.Context, work time.Duration) error

// connectFunc makes a client of the servers at addrs. hangUp closes its connections.
type connectFunc func(ctx context.Context, addrs []string) (call callFunc, hangUp func() error, err error)

// lane is one of the things compared: a balancer on a transport, with its own fleet.
type lane struct {
	transport string
	balancer  string
	serve     serveFunc
	connect   connectFunc

	fleet *fleet
	call  callFunc

	took   []time.Duration // each request writes its own element
	errors atomic.Int64    // so far
}

// The balancers' names in the report.
const (
	roundRobin = "round robin"
	evenkeel   = "Evenkeel"
)

// allLanes returns the four lanes in the order of the report: round robin first on
// each transport.
func allLanes() []*lane {
	return []*lane{
		{transport: "gRPC", balancer: roundRobin, serve: serveGRPC, connect: grpcClient(roundRobinConfig)},
		{transport: "gRPC", balancer: evenkeel, serve: serveGRPC, connect: grpcClient(evenkeelConfig)},
		{transport: "HTTP", balancer: roundRobin, serve: serveHTTP, connect: roundRobinHTTP},
		{transport: "HTTP", balancer: evenkeel, serve: serveHTTP, connect: evenkeelHTTP},
	}
}

// String returns the lane's name.
func (l *lane) String() string { return l.balancer + " over " + l.transport }

// prepare makes room for the results of n requests.
func (l *lane) prepare(n int) {
	l.took = make([]time.Duration, n)
}

// send makes request number i. Time counts from when it was due: a client that is
// late because it waits for something must not hide that from the figures.
func (l *lane) send(ctx context.Context, i int, due time.Time, work time.Duration) {
	ctx, cancel := context.WithDeadline(ctx, due.Add(timeout))
	defer cancel()
	err := l.call(ctx, work)
	l.took[i] = min(time.Since(due), timeout)
	if err != nil {
		l.errors.Add(1)
	}
}
