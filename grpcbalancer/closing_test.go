package grpcbalancer

import (
	"context"
	"sync"
	"testing"
	"time"

	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// Calls that end because their channel is closed blame nobody: the channels that share with it would pay. gRPC gives
// them a code that servers use too, and nothing but its text tells.
func TestClosingAChannelBlamesNobody(t *testing.T) {
	Share(true)
	defer Share(false)
	servers := fleet(t, 2)
	a, b := connect(t, lbConfigOf(`{}`), servers), connect(t, lbConfigOf(`{}`), servers)
	b.calls(10)
	came := make(chan struct{}, 20)
	for _, s := range servers {
		s.answers(func(ctx context.Context) error {
			came <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for range cap(came) {
		all.Go(func() {
			_, err := a.EmptyCall(ctx, &testgrpc.Empty{})
			if got := status.Convert(err).Message(); got != textClosing {
				t.Errorf("a call of a closed channel ends with %q, want %q", got, textClosing)
			}
		})
	}
	for range cap(came) {
		<-came
	}
	if err := a.cc.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	for addr, s := range statsOf(b.policy()) {
		if s.Success < 1 || s.InFlight != 0 {
			t.Errorf("%s has success %v, %d in flight", addr, s.Success, s.InFlight)
		}
	}
}
