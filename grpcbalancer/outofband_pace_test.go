package grpcbalancer

import (
	"context"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// scriptedReports are connections of a fake channel whose streams each send so many reports and end with an error.
type scriptedReports struct {
	mu      sync.Mutex
	reports int
	ends    error
	began   []time.Time
}

func (s *scriptedReports) calls(string) grpc.ClientConnInterface { return s }

func (s *scriptedReports) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return status.Error(codes.Unimplemented, "")
}

func (s *scriptedReports) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = append(s.began, time.Now())
	return &scriptedStream{reports: s.reports, ends: s.ends}, nil
}

// gaps has the streams be as said, lets time pass, and returns the times between those that begin.
func (s *scriptedReports) gaps(d time.Duration, reports int, ends error) (gaps []time.Duration) {
	s.mu.Lock()
	s.reports, s.ends, s.began = reports, ends, nil
	s.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range len(s.began) - 1 {
		gaps = append(gaps, s.began[i+1].Sub(s.began[i]))
	}
	return gaps
}

type scriptedStream struct {
	grpc.ClientStream
	reports int
	ends    error
}

func (s *scriptedStream) SendMsg(any) error { return nil }
func (s *scriptedStream) CloseSend() error  { return nil }

func (s *scriptedStream) RecvMsg(m any) error {
	if s.reports == 0 {
		return s.ends
	}
	s.reports--
	m.(*v3orcapb.OrcaLoadReport).RpsFractional = 100
	m.(*v3orcapb.OrcaLoadReport).ApplicationUtilization = 0.5
	return nil
}

const asking = `{"policy": "weighted", "reports": {"weights": "reported", "out_of_band": "100ms"}}`

// A server whose streams all end, with a report in them or without, is not asked more often than once a second.
func TestStreamsOfReportsThatEndAreBegunAgainSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedReports{reports: 1, ends: io.EOF}
		r := newRig(t, asking)
		r.fakeChannel.calls = s.calls
		r.up(at("a"))
		gaps := s.gaps(time.Minute, 1, io.EOF)
		if len(gaps) < 57 || slices.Min(gaps) < time.Second {
			t.Errorf("%d streams with a report in a minute, %v apart at least, want one a second", len(gaps)+1, slices.Min(gaps))
		}
		gaps = s.gaps(10*time.Minute, 0, status.Error(codes.Unavailable, "x"))
		if len(gaps) < 15 || len(gaps) > 30 || slices.Min(gaps) < 800*time.Millisecond || slices.Max(gaps) > 37*time.Second {
			t.Errorf("streams without a report are %v apart, want 1 s, 2 s, 4 s and so on up to 30 s", gaps)
		}
		if n := r.policy.pool.Stats().UsedReports; n < 58 {
			t.Errorf("%d reports were used", n)
		}
		r.policy.Close()
		if gaps = s.gaps(time.Hour, 1, io.EOF); gaps != nil {
			t.Errorf("streams %v apart after Close", gaps)
		}
	})
}

// A server that sends reports without a pause costs its clients twice what they asked for.
func TestFloodsOfReportsAreReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedReports{reports: math.MaxInt, ends: io.EOF}
		r := newRig(t, asking)
		r.fakeChannel.calls = s.calls
		r.up(at("a"))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := r.policy.pool.Stats().UsedReports; n < 195 || n > 201 {
			t.Errorf("%d reports in ten seconds, want one in 50 ms", n)
		}
		r.policy.Close()
	})
}

// An operator sees that a server's out-of-band service is missing.
func TestServersWithoutReportsAreAWarningOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedReports{ends: status.Error(codes.Unimplemented, "unknown service")}
		r := newRig(t, asking)
		r.fakeChannel.calls = s.calls
		r.up(each("a", "b")...)
		if gaps := s.gaps(time.Hour, 0, s.ends); gaps != nil {
			t.Errorf("asked again after %v", gaps)
		}
		list := r.policy.warnings.list()
		if len(list) != 1 || !strings.Contains(list[0], "xds.service.orca.v3.OpenRcaService") {
			t.Errorf("warnings %q", list)
		}
	})
}
