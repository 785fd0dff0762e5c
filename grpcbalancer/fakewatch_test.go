package grpcbalancer

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

type healthStatus = healthgrpc.HealthCheckResponse_ServingStatus

// The words of a health service.
const (
	serving    = healthgrpc.HealthCheckResponse_SERVING
	notServing = healthgrpc.HealthCheckResponse_NOT_SERVING
)

// sayings are what the endpoints of a fake channel say of their health.
type sayings struct {
	mu    sync.Mutex
	by    map[string]*saying
	waits int // streams that wait for news
}

// saying is one endpoint's. Without any it says nothing.
type saying struct {
	began []time.Time // streams
	says  []healthStatus
	muted bool          // until it says something new
	ends  error         // after all that
	news  chan struct{} // closed when there is something new
}

func newSayings() *sayings { return &sayings{by: map[string]*saying{}} }

func (s *sayings) of(addr string) *saying {
	if s.by[addr] == nil {
		s.by[addr] = &saying{news: make(chan struct{})}
	}
	return s.by[addr]
}

// say has an endpoint say this on the stream that is open, and first on those that begin.
func (s *sayings) say(addr string, is healthStatus) {
	s.change(addr, func(e *saying) { e.says, e.muted = append(e.says, is), false })
}

// mute has an endpoint say nothing on streams that begin.
func (s *sayings) mute(addr string) { s.change(addr, func(e *saying) { e.muted = true }) }

// end ends the streams that an endpoint has, and those that begin, after all that it has to say.
func (s *sayings) end(addr string, err error) {
	s.change(addr, func(e *saying) { e.ends = err })
}

func (s *sayings) change(addr string, f func(*saying)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of(addr)
	f(e)
	close(e.news)
	e.news = make(chan struct{})
}

// began returns when an endpoint's streams have begun.
func (s *sayings) began(addr string) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.of(addr).began...)
}

// open returns how many streams are open.
func (s *sayings) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits
}

// calls is for fakeChannel.calls.
func (s *sayings) calls(addr string) grpc.ClientConnInterface { return &fakeCalls{s, addr} }

type fakeCalls struct {
	*sayings
	addr string
}

func (c *fakeCalls) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return status.Error(codes.Unimplemented, "")
}

func (c *fakeCalls) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.of(c.addr)
	e.began = append(e.began, time.Now())
	from := len(e.says)
	if from > 0 && !e.muted {
		from--
	}
	return &fakeStream{ctx: ctx, fakeCalls: c, from: from}, nil
}

// fakeStream begins with the last thing that was said.
type fakeStream struct {
	grpc.ClientStream
	*fakeCalls
	ctx  context.Context
	from int
}

func (s *fakeStream) SendMsg(any) error { return nil }
func (s *fakeStream) CloseSend() error  { return nil }

func (s *fakeStream) RecvMsg(m any) error {
	s.count(1)
	defer s.count(-1)
	for {
		s.mu.Lock()
		e := s.of(s.addr)
		news := e.news
		if s.from < len(e.says) {
			m.(*healthgrpc.HealthCheckResponse).Status = e.says[s.from]
			s.from++
			s.mu.Unlock()
			return nil
		}
		err := e.ends
		s.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-news:
		case <-s.ctx.Done():
			return status.FromContextError(s.ctx.Err()).Err()
		}
	}
}

func (s *fakeStream) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits += n
}
