package interop

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to happen, on a machine that has much else to do.
const patience = 30 * time.Second

// eventually fails the test if ok does not come true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// backend is a gRPC server on loopback that counts.
type backend struct {
	testgrpc.UnimplementedTestServiceServer

	addr    string
	stop    func()
	calls   atomic.Int64
	conns   atomic.Int64
	holding atomic.Int64 // calls that wait for release
	// held, while it is not nil, keeps calls until it is closed.
	held atomic.Pointer[chan struct{}]
}

// startBackend starts one; register may add services.
func startBackend(t *testing.T, register func(*grpc.Server), opts ...grpc.ServerOption) *backend {
	t.Helper()
	return startBackendAt(t, onePort(t, "127.0.0.1")[0], register, opts...)
}

func startBackendAt(t *testing.T, listener net.Listener, register func(*grpc.Server), opts ...grpc.ServerOption) *backend {
	t.Helper()
	b := &backend{addr: listener.Addr().String()}
	s := grpc.NewServer(opts...)
	testgrpc.RegisterTestServiceServer(s, b)
	if register != nil {
		register(s)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(&countingListener{listener, &b.conns})
	}()
	b.stop = func() {
		s.Stop()
		<-served
	}
	t.Cleanup(b.stop)
	return b
}

func startBackends(t *testing.T, n int) []*backend {
	t.Helper()
	list := make([]*backend, n)
	for i := range list {
		list[i] = startBackend(t, nil)
	}
	return list
}

// hold keeps the calls that come from now on until the function it returns is called.
func (b *backend) hold() (release func()) {
	gate := make(chan struct{})
	b.held.Store(&gate)
	return sync.OnceFunc(func() {
		b.held.Store(nil)
		close(gate)
	})
}

func (b *backend) EmptyCall(ctx context.Context, _ *testgrpc.Empty) (*testgrpc.Empty, error) {
	b.calls.Add(1)
	if gate := b.held.Load(); gate != nil {
		b.holding.Add(1)
		defer b.holding.Add(-1)
		select {
		case <-*gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &testgrpc.Empty{}, nil
}

// countingListener counts the connections that it accepts.
type countingListener struct {
	net.Listener
	accepted *atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

// traffic is a constant load until its test ends.
type traffic struct {
	calls, failed atomic.Int64
	firstError    atomic.Pointer[error]
	stop          func() // and wait for the calls that are under way
}

// keepCalling makes calls, four at a time and a millisecond apart, that fail at once where no endpoint
// can be used, and never take long.
func keepCalling(t *testing.T, call func(context.Context) error) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	load := &traffic{}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				load.one(call)
			}
		})
	}
	load.stop = sync.OnceFunc(func() {
		cancel()
		callers.Wait()
	})
	t.Cleanup(load.stop)
	return load
}

func (l *traffic) one(call func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := call(ctx)
	l.calls.Add(1)
	if err != nil {
		l.failed.Add(1)
		l.firstError.CompareAndSwap(nil, &err)
	}
}

// check fails the test if a call has failed.
func (l *traffic) check(t *testing.T) {
	t.Helper()
	if n := l.failed.Load(); n != 0 {
		t.Errorf("%d of %d calls failed, the first with: %v", n, l.calls.Load(), *l.firstError.Load())
	}
}

// shares waits until n more calls have come to the backends and returns each one's part of them.
func shares(t *testing.T, n int64, backends ...*backend) []float64 {
	t.Helper()
	before := make([]int64, len(backends))
	for i, b := range backends {
		before[i] = b.calls.Load()
	}
	parts := make([]float64, len(backends))
	eventually(t, "calls come to the backends", func() bool {
		total := 0.0
		for i, b := range backends {
			parts[i] = float64(b.calls.Load() - before[i])
			total += parts[i]
		}
		for i := range parts {
			parts[i] /= max(total, 1)
		}
		return total >= float64(n)
	})
	return parts
}

// settle waits until the backends get the parts wanted of n calls, each within the tolerance.
func settle(t *testing.T, what string, n int64, tolerance float64, want []float64, backends ...*backend) {
	t.Helper()
	var last []float64
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		last = shares(t, n, backends...)
		if near(last, want, tolerance) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: the shares are %.3f, want %.3f ± %v", what, last, want, tolerance)
		}
	}
}

func near(got, want []float64, tolerance float64) bool {
	for i := range want {
		if got[i] < want[i]-tolerance || got[i] > want[i]+tolerance {
			return false
		}
	}
	return true
}
