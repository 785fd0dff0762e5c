package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

const (
	rpcServers = 8
	rpcCallers = 16
)

// service answers at once.
type service struct {
	testgrpc.UnimplementedTestServiceServer
	calls atomic.Int64
}

// EmptyCall implements grpc_testing.TestServiceServer.
func (s *service) EmptyCall(context.Context, *testgrpc.Empty) (*testgrpc.Empty, error) {
	s.calls.Add(1)
	return &testgrpc.Empty{}, nil
}

// serve starts a server on loopback.
func serve() (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, &service{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	return l.Addr().String(), func() { server.Stop(); <-served }, nil
}

// channel connects a channel with a peer's policy to a list.
func (p peer) channel(list []resolver.Endpoint, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	r := manual.NewBuilderWithScheme("bench")
	r.InitialState(resolver.State{Endpoints: list})
	return grpc.NewClient("bench:///x", append([]grpc.DialOption{grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(p.serviceConfig()),
		grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)...)
}

// callMany makes n calls by that many callers.
func callMany(c testgrpc.TestServiceClient, callers, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	failures := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := c.EmptyCall(context.Background(), &testgrpc.Empty{}, grpc.WaitForReady(true)); err != nil {
					failures[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// calls measures unary calls, client and servers in this process. In each round all policies have their turn,
// and each is compared with round_robin in the same round.
func calls(s settings, w io.Writer) error {
	var list []resolver.Endpoint
	for range rpcServers {
		addr, stop, err := serve()
		if err != nil {
			return err
		}
		defer stop()
		list = append(list, resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}})
	}
	clients := make([]testgrpc.TestServiceClient, len(peers))
	for i, p := range peers {
		cc, err := p.channel(list)
		if err != nil {
			return err
		}
		defer func() { _ = cc.Close() }()
		clients[i] = testgrpc.NewTestServiceClient(cc)
		if err := callMany(clients[i], rpcCallers, s.calls); err != nil {
			return err
		}
	}
	cost, allocs := make([][]float64, len(peers)), make([][]float64, len(peers))
	for round := range s.rounds {
		for k := range peers {
			i := (k + round) % len(peers)
			var err error
			u := measured(func() { err = callMany(clients[i], rpcCallers, s.calls) })
			if err != nil {
				return err
			}
			cost[i] = append(cost[i], float64(u.cpu.Nanoseconds())/1e3/float64(s.calls))
			allocs[i] = append(allocs[i], float64(u.allocs)/float64(s.calls))
		}
	}
	fmt.Fprintf(w, "\nunary calls over loopback: %d servers, %d callers, %d rounds of %d calls of each policy by turns\n",
		rpcServers, rpcCallers, s.rounds, s.calls)
	fmt.Fprintf(w, "%-24s %12s %12s %12s %14s %22s\n", "policy", "us CPU, min", "median", "allocs/call", "ratio, median", "mean, upper 95 % bound")
	for i, p := range peers {
		ratios := make([]float64, s.rounds)
		for round := range ratios {
			ratios[round] = cost[i][round] / cost[0][round]
		}
		mean, bound := upperBound(ratios)
		fmt.Fprintf(w, "%-24s %12.1f %12.1f %12.1f %14.3f %11.3f %10.3f\n", p.name, least(cost[i]), median(cost[i]), median(allocs[i]), median(ratios), mean, bound)
	}
	return nil
}

// upperBound is the mean and the upper end of its two-sided 95 % interval, by 2.05 standard errors: Student's
// quantile for 30.
func upperBound(list []float64) (mean, bound float64) {
	n := float64(len(list))
	for _, x := range list {
		mean += x / n
	}
	if n < 2 {
		return mean, math.Inf(1)
	}
	var squares float64
	for _, x := range list {
		squares += (x - mean) * (x - mean)
	}
	return mean, mean + 2.05*math.Sqrt(squares/(n-1)/n)
}
