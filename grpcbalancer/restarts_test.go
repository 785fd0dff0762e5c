package grpcbalancer

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

// withoutRetries are clients that make no call again, but for what gRPC itself does with streams that no server
// processed.
var withoutRetries = []struct {
	name    string
	config  string
	options []grpc.DialOption
}{
	{"no policy", lbConfigOf(`{}`), nil},
	{"round robin", lbConfigOf(`{"policy": "round_robin"}`), nil},
	{"retries disabled", lbConfigOf(`{}`), []grpc.DialOption{grpc.WithDisableRetry()}},
	{"interceptors", lbConfigOf(`{}`), []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(UnaryInterceptor), grpc.WithChainStreamInterceptor(StreamInterceptor)}},
}

// someOf leaves all but the first out where time is short.
func someOf[T any](list []T) []T {
	if testcost.Race || testing.Short() {
		return list[:1]
	}
	return list
}

// Each server in turn is restarted gracefully, three times, on its own port: no call fails that has no retry
// policy either, and no stream that was open.
func TestGracefulRestartsFailNoCallWithoutRetries(t *testing.T) {
	for _, c := range someOf(withoutRetries) {
		t.Run(c.name, func(t *testing.T) {
			servers := fleet(t, 3)
			cl := connect(t, c.config, servers, c.options...)
			load, talk := startLoad(cl, 4), startTalk(cl, 2)
			for range 3 {
				for i, s := range servers {
					s.server.GracefulStop()
					servers[i] = start(t, s.addr)
					cl.waitReady(3)
					made := load.made.Load()
					eventually(t, "calls were made", func() bool { return load.made.Load() > made+20 })
				}
			}
			talk.stop(t)
			load.stop(t)
			t.Logf("%d calls and %d streams", load.made.Load(), talk.made)
			for _, s := range statsOf(cl.policy()) {
				if s.Success < 0.999 || s.Ejection.Epoch != 0 {
					t.Errorf("%+v, want no failure", s)
				}
			}
		})
	}
}

func TestConnectionsThatAgeFailNoCallWithoutRetries(t *testing.T) {
	for _, c := range someOf(withoutRetries) {
		t.Run(c.name, func(t *testing.T) {
			servers := fleet(t, 3, grpc.KeepaliveParams(keepalive.ServerParameters{
				MaxConnectionAge: 20 * time.Millisecond, MaxConnectionAgeGrace: time.Minute,
			}))
			cl := connect(t, c.config, servers, c.options...)
			load, talk := startLoad(cl, 4), startTalk(cl, 2)
			eventually(t, "each server has had ten connections", func() bool {
				for _, s := range servers {
					if s.conns.Load() < 10 {
						return false
					}
				}
				return true
			})
			talk.stop(t)
			load.stop(t)
			t.Logf("%d calls and %d streams", load.made.Load(), talk.made)
			for _, s := range statsOf(cl.policy()) {
				if s.Success < 0.999 || s.Ejection.Epoch != 0 {
					t.Errorf("%+v, want no failure", s)
				}
			}
		})
	}
}

// talk has streams on which three messages are answered, one after the other.
type talk struct {
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	made   int
	failed error
}

func startTalk(c *client, callers int) *talk {
	ctx, cancel := context.WithCancel(context.Background())
	k := &talk{cancel: cancel}
	for range callers {
		k.all.Go(func() {
			for ctx.Err() == nil {
				k.note(c.talkOnce())
			}
		})
	}
	return k
}

func (c *client) talkOnce() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := c.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	for range 3 {
		if err := echo(s); err != nil {
			return err
		}
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	_, _ = s.Recv() // the end
	return nil
}

func (k *talk) note(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made++
	if err != nil {
		k.failed = err
	}
}

// stop ends the talk, of which nothing may have failed.
func (k *talk) stop(t *testing.T) {
	t.Helper()
	k.cancel()
	k.all.Wait()
	if k.failed != nil {
		t.Errorf("a stream of %d failed: %v", k.made, k.failed)
	}
}
