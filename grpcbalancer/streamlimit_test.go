package grpcbalancer

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
)

// Servers of two streams each, and eight calls: four wait in this client for a stream, are counted where they wait, go on when there
// is one, and are nobody's failure. Then there is one server more: calls go there before they wait.
func TestCallsWaitForStreamsAndGetThem(t *testing.T) {
	const most = 2
	servers := fleet(t, 2, grpc.MaxConcurrentStreams(most))
	release := make(chan struct{})
	var inside, peak atomic.Int64
	hold := func(ctx context.Context) error {
		if n := inside.Add(1); n > peak.Load() {
			peak.Store(n)
		}
		defer inside.Add(-1)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	}
	for _, s := range servers {
		s.answers(hold)
	}
	c := connect(t, lbConfigOf(`{"policy": {"least": {"signal": "in_flight"}}}`), servers, grpc.WithChainUnaryInterceptor(UnaryInterceptor))
	const calls = 8
	ends := make(chan error, calls+1)
	begin := func(n int) {
		for range n {
			go func() { ends <- c.call() }()
		}
	}
	begin(calls)
	eventually(t, "all are counted, and each server has what it takes", func() bool {
		of := c.inFlight()
		return of[servers[0].addr] == calls/2 && of[servers[1].addr] == calls/2 && inside.Load() == 2*most
	})
	third := start(t, "")
	third.answers(hold)
	c.resolver.UpdateState(endpointsOf(append(servers, third)...))
	c.waitReady(3)
	begin(1)
	eventually(t, "the next call is where nobody waits", func() bool { return third.calls.Load() == 1 })
	close(release)
	for range calls + 1 {
		if err := <-ends; err != nil {
			t.Errorf("a call failed: %v", err)
		}
	}
	c.waitAtRest()
	if n := peak.Load(); n > 2*most+1 {
		t.Errorf("%d calls at once", n)
	}
	for addr, s := range statsOf(c.policy()) {
		if s.Success != 1 || s.Ejection.Epoch != 0 || s.Leaked != 0 {
			t.Errorf("%s: %+v", addr, s)
		}
	}
}
