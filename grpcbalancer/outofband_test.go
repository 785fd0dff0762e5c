package grpcbalancer

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v3orcaservicepb "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcorca "google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcagrpc"
)

// toldReports are the reports that were taken.
type toldReports struct {
	mu     sync.Mutex
	counts map[string]int
	last   map[string]float64 // application utilization
	mute   []string
	lack   []string // those without the service
	bad    []error
}

// asking returns what asks for reports and notes them here.
func (t *toldReports) asking(every time.Duration) *outOfBand {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts, t.last = map[string]int{}, map[string]float64{}
	}
	return &outOfBand{
		every: every,
		take: func(key string, r *orca.Report) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.counts[key]++
			t.last[key] = r.Application
		},
		bad: func(key string, err error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.bad = append(t.bad, err)
		},
		mute: func(key string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.mute = append(t.mute, key)
		},
		without: func(key string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.lack = append(t.lack, key)
		},
	}
}

// of returns how often an endpoint has reported, and its latest report.
func (t *toldReports) of(key string) (n int, utilization float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[key], t.last[key]
}

// ask has the policy of the channel ask for reports; nil for no more.
func (c *client) ask(o *outOfBand) {
	p := c.policy()
	p.calls.Lock()
	defer p.calls.Unlock()
	p.asksFor = func(evenkeel.Config) *outOfBand { return o }
	p.reports = o
	p.refollow()
}

// streams counts the streams of reports that a server has.
type streams struct {
	open, begun atomic.Int64
	ends        atomic.Pointer[error] // each at once, if it is set
}

func (s *streams) option() grpc.ServerOption {
	return grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if info.FullMethod != v3orcaservicepb.OpenRcaService_StreamCoreMetrics_FullMethodName {
			return handler(srv, ss)
		}
		s.begun.Add(1)
		if err := s.ends.Load(); err != nil {
			return *err
		}
		s.open.Add(1)
		defer s.open.Add(-1)
		return handler(srv, ss)
	})
}

// reporting starts a server that reports by grpc-go's own service: what it is set to now, and each 30 s.
func reporting(t *testing.T, utilization float64) (*backend, grpcorca.ServerMetricsRecorder, *streams) {
	t.Helper()
	m, s := grpcorca.NewServerMetricsRecorder(), &streams{}
	m.SetApplicationUtilization(utilization)
	b := startWith(t, "", func(b *backend) {
		if err := grpcorca.Register(b.server, grpcorca.ServiceOptions{ServerMetricsProvider: m}); err != nil {
			t.Fatal(err)
		}
	}, s.option())
	return b, m, s
}

func TestEndpointsReportOutOfBand(t *testing.T) {
	var told toldReports
	first, _, one := reporting(t, 0.25)
	second, _, two := reporting(t, 0.5)
	c := connect(t, lbConfigOf(`{}`), []*backend{first, second})
	o := told.asking(10 * time.Millisecond)
	c.ask(o)
	want := func(b *backend, n int, utilization float64) {
		t.Helper()
		eventually(t, "a report", func() bool { got, _ := told.of(b.addr); return got >= n })
		if _, got := told.of(b.addr); got != utilization {
			t.Errorf("utilization %v, want %v", got, utilization)
		}
	}
	want(first, 1, 0.25)
	want(second, 1, 0.5)

	// The connection is lost, and back.
	first.stop()
	eventually(t, "the stream has ended", func() bool { return one.open.Load() == 0 })
	again := startWith(t, first.addr, func(b *backend) {
		m := grpcorca.NewServerMetricsRecorder()
		m.SetApplicationUtilization(0.75)
		_ = grpcorca.Register(b.server, grpcorca.ServiceOptions{ServerMetricsProvider: m})
	}, one.option())
	want(again, 2, 0.75)

	// Its endpoint leaves.
	c.resolver.UpdateState(endpointsOf(second))
	eventually(t, "the stream has ended", func() bool { return one.open.Load() == 0 })
	if two.open.Load() != 1 || two.begun.Load() != 1 {
		t.Errorf("the other has %d streams, the %d.", two.open.Load(), two.begun.Load())
	}
	c.ask(o) // as before
	c.ask(nil)
	eventually(t, "nobody asks", func() bool { return two.open.Load() == 0 })
	c.ask(told.asking(time.Second))
	eventually(t, "it is asked again", func() bool { return two.open.Load() == 1 })
	_ = c.cc.Close()
	eventually(t, "nobody asks after Close", func() bool { return two.open.Load() == 0 })
}

// Ours reports as often as it is asked for.
func TestEndpointsReportAtTheInterval(t *testing.T) {
	var told toldReports
	tracker := orca.NewTracker(orca.TrackerConfig{})
	service := orcagrpc.NewService(orcagrpc.ServiceConfig{Tracker: tracker, MinInterval: time.Millisecond})
	b := startWith(t, "", func(b *backend) { service.Register(b.server) })
	c := connect(t, lbConfigOf(`{}`), []*backend{b})
	c.ask(told.asking(2 * time.Millisecond))
	eventually(t, "reports", func() bool { n, _ := told.of(b.addr); return n >= 5 })
	service.Close()
}

func TestServersWithoutReportsAreAskedOnce(t *testing.T) {
	var told toldReports
	s := &streams{}
	unimplemented := status.Error(codes.Unimplemented, "no reports")
	s.ends.Store(&unimplemented)
	m := grpcorca.NewServerMetricsRecorder()
	b := startWith(t, "", func(b *backend) {
		_ = grpcorca.Register(b.server, grpcorca.ServiceOptions{ServerMetricsProvider: m})
	}, s.option())
	without := startWith(t, "", func(*backend) {})
	c := connect(t, lbConfigOf(`{}`), []*backend{b, without})
	c.ask(told.asking(time.Millisecond))
	eventually(t, "it was asked", func() bool { return s.begun.Load() > 0 })
	c.calls(200)
	// A stream that has ended in another way is begun again within 1.2 s.
	over := time.NewTimer(1500 * time.Millisecond)
	defer over.Stop()
	<-over.C
	if n := s.begun.Load(); n != 1 {
		t.Errorf("%d streams, want one", n)
	}
	if n, _ := told.of(b.addr); n != 0 {
		t.Errorf("%d reports", n)
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	if slices.Sort(told.lack); !slices.Equal(told.lack, slices.Sorted(slices.Values([]string{b.addr, without.addr}))) {
		t.Errorf("%v are without the service, want both", told.lack)
	}
}

// Nobody is asked for what nothing is made of.
func TestPoliciesThatIgnoreWeightsAskForNoReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedReports{reports: 1, ends: io.EOF}
		r := newRig(t, strings.Replace(asking, "weighted", "round_robin", 1))
		r.fakeChannel.calls = s.calls
		r.up(each("a", "b")...)
		list := r.policy.warnings.list()
		if s.began != nil || len(list) != 1 || !strings.Contains(list[0], "picker.RoundRobin") {
			t.Errorf("%d streams, warnings %q", len(s.began), list)
		}
	})
}

// What a report has wrong spoils it, and the next one counts.
func TestWrongReportsAreDropped(t *testing.T) {
	var told toldReports
	b, m, s := reporting(t, 0.5)
	m.SetNamedUtilization("disk", 0.5)
	c := connect(t, lbConfigOf(`{}`), []*backend{b})
	for i := range orca.MaxEntries + 1 { // too many names
		m.SetNamedUtilization(string(rune('a'+i%26))+string(rune('a'+i/26)), 0.5)
	}
	c.ask(told.asking(time.Millisecond))
	eventually(t, "it was asked", func() bool { return s.open.Load() == 1 })
	c.calls(50)
	if n, _ := told.of(b.addr); n != 0 {
		t.Errorf("%d reports, want none with that many names", n)
	}
	eventually(t, "it is said what is wrong", func() bool {
		told.mu.Lock()
		defer told.mu.Unlock()
		return len(told.bad) > 0 && told.bad[0] != nil
	})
}

func TestConnectionsThatOfferNoCallsReportNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told toldReports
		r := newRig(t, `{}`)
		r.policy.asksFor = func() func(evenkeel.Config) *outOfBand {
			o := told.asking(time.Second)
			return func(evenkeel.Config) *outOfBand { return o }
		}()
		r.up(each("a", "b")...)
		r.up(each("a", "b")...)
		if len(told.mute) != 2 {
			t.Errorf("%v are mute, want both, once", told.mute)
		}
		r.wantServing("all the same", "a", "b")
	})
}

// Streams of both kinds, while connections, lists and what is asked for change.
func TestReportsAndWatchesWhileServersComeAndGo(t *testing.T) {
	var told toldReports
	servers := make([]*backend, 3)
	all := make([]*streams, 3)
	for i := range servers {
		servers[i], _, all[i] = reporting(t, 0.5)
	}
	c := connect(t, lbConfigOf(watchedByName), servers)
	load := startLoad(c, 2)
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			c.ask(told.asking(time.Millisecond))
			c.ask(nil)
		}
	})
	for i := range 60 {
		c.resolver.UpdateState(endpointsOf(servers[i%2:]...))
	}
	cancel()
	asking.Wait()
	load.stop(t)
	_ = c.cc.Close()
	for _, s := range all {
		eventually(t, "no stream is open", func() bool { return s.open.Load() == 0 })
	}
}
