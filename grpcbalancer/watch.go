package grpcbalancer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/internal/health"
	"github.com/evenkeel/evenkeel/internal/probe"
)

// watcher has each endpoint say how it is, on its own connection, by the Watch of gRPC's health service.
// It is immutable.
type watcher struct {
	policy  *policy
	runner  *probe.Runner
	service string
	// wait is how long an endpoint may take for its first word on a connection.
	wait time.Duration
	// useUnheard has endpoints used before that.
	useUnheard bool
}

// watchEvery is the least time from the start of a stream to that of the next: where each ends after
// a message, nothing else would keep a client from beginning one after the other.
const watchEvery = time.Second

// onReady implements follower.
func (w *watcher) onReady(c *seat, sc balancer.SubConn) (onLost func()) {
	if !w.useUnheard {
		w.policy.hold(c)
	}
	s := &watching{watcher: w, seat: c}
	end, ok := onConnection(sc, s.run)
	if !ok {
		w.policy.release(c)
		w.policy.warnings.add("no watch", fmt.Sprintf(
			"grpcbalancer: Health does nothing, as a parent of this policy hides the connections: %s is one", c.endpoint.key))
		return nil
	}
	return func() {
		end()
		w.policy.release(c)
	}
}

// watching is one connection's.
type watching struct {
	*watcher
	seat *seat

	// Of run's goroutine alone.
	watch health.Watch

	mu    sync.Mutex
	heard bool // there was a first word, or none in time; guarded by mu
}

// run follows the endpoint until ctx is done: who ends it, or a connection that was lost, says nothing of
// its health.
func (s *watching) run(ctx context.Context, cc grpc.ClientConnInterface) {
	late := time.AfterFunc(s.wait, s.late)
	defer s.close(late)
	client := healthgrpc.NewHealthClient(cc)
	for {
		began := time.Now()
		err := s.stream(ctx, client)
		if ctx.Err() != nil {
			return
		}
		event := health.WatchBroken
		if status.Code(err) == codes.Unimplemented {
			event = health.WatchUnimplemented
		}
		a := s.watch.Next(event, s.policy.random())
		s.tell(a.Healthy, "Watch ended: "+status.Convert(err).Message())
		if a.Warn {
			s.policy.warnings.add("unimplemented", fmt.Sprintf(
				"grpcbalancer: servers without grpc.health.v1.Health count as healthy: %s is one", s.seat.endpoint.key))
		}
		if a.Stop || !sleep(ctx, max(a.RetryAfter, watchEvery-time.Since(began))) {
			return
		}
	}
}

// stream tells what one stream says, until it ends.
func (s *watching) stream(ctx context.Context, client healthgrpc.HealthClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Watch(ctx, &healthgrpc.HealthCheckRequest{Service: s.service})
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		event := health.WatchNotServing
		if m.GetStatus() == healthgrpc.HealthCheckResponse_SERVING {
			event = health.WatchServing
		}
		s.tell(s.watch.Next(event, 0).Healthy, m.GetStatus().String())
	}
}

// tell passes on what is known of the endpoint now, and what was held until there was something is let
// go.
func (s *watching) tell(healthy bool, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = true
	s.runner.Tell(s.seat.endpoint.key, healthy, detail)
	s.policy.release(s.seat)
}

// late is called when the first word is overdue.
func (s *watching) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.heard {
		s.heard = true
		s.runner.Tell(s.seat.endpoint.key, false, "no answer to Watch within "+s.wait.String())
		s.policy.release(s.seat)
	}
}

// close has nothing told any more.
func (s *watching) close(late *time.Timer) {
	late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = true
}

// sleep waits for d, and returns false if ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
