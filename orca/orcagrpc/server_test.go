package orcagrpc_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcagrpc"
)

// reportOf reads the report in a trailer and fails without one.
func reportOf(t *testing.T, md metadata.MD) orca.Report {
	t.Helper()
	var r orca.Report
	if found, err := orcagrpc.ParseTrailer(&r, md); !found || err != nil {
		t.Fatalf("no report in %v: %v", md, err)
	}
	return r
}

func TestInterceptorsReportOnEveryCall(t *testing.T) {
	reporter := &orcagrpc.Server{Tracker: orca.NewTracker(orca.TrackerConfig{})}
	var fails error
	inStream := make(chan struct{})
	addr := listen(t, func(s *grpc.Server) {
		grpc_testing.RegisterTestServiceServer(s, &backend{
			unary: func(context.Context) error { return fails },
			stream: func(s grpc_testing.TestService_FullDuplexCallServer) error {
				if err := s.Send(&grpc_testing.StreamingOutputCallResponse{}); err != nil {
					return err
				}
				_, err := s.Recv() // waits for the client's end
				inStream <- struct{}{}
				if err != nil && fails != nil {
					return fails
				}
				return nil
			},
		})
	}, reporter.Options()...)
	client := grpc_testing.NewTestServiceClient(dial(t, `{}`, addr))
	for _, fails = range []error{nil, status.Error(codes.NotFound, "x"), errors.New("plain")} {
		var trailer metadata.MD
		if _, err := client.EmptyCall(within(t), &grpc_testing.Empty{}, grpc.Trailer(&trailer)); (err != nil) != (fails != nil) {
			t.Fatal(err)
		}
		r := reportOf(t, trailer)
		if rif, ok := r.Named.Get(orca.InFlightMetric); !ok || rif != 0 {
			t.Errorf("%v: %v in flight after the call, %v", fails, rif, ok)
		}
		stream, err := client.FullDuplexCall(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		if n := reporter.Tracker.InFlight(); n != 1 {
			t.Errorf("%d in flight during a stream", n)
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		<-inStream
		if _, err := stream.Recv(); err == nil {
			t.Fatal("the stream goes on")
		}
		reportOf(t, stream.Trailer())
	}
	if n := reporter.Tracker.InFlight(); n != 0 {
		t.Errorf("%d in flight at the end", n)
	}
}

func TestInterceptorsCountFailures(t *testing.T) {
	for _, c := range []struct {
		err    error
		failed func(error) bool
		want   bool
	}{
		{err: nil},
		{err: status.Error(codes.NotFound, ""), want: false},
		{err: status.Error(codes.InvalidArgument, ""), want: false},
		{err: status.Error(codes.Unimplemented, ""), want: false},
		{err: status.Error(codes.ResourceExhausted, ""), want: false},
		{err: context.Canceled, want: false},
		{err: context.DeadlineExceeded, want: true},
		{err: status.Error(codes.Unavailable, ""), want: true},
		{err: status.Error(codes.Internal, ""), want: true},
		{err: status.Error(codes.DataLoss, ""), want: true},
		{err: errors.New("plain"), want: true},
		{err: errors.New("plain"), failed: func(error) bool { return false }, want: false},
		{err: status.Error(codes.NotFound, ""), failed: func(error) bool { return true }, want: true},
	} {
		for _, kind := range []string{"unary", "stream"} {
			s := &orcagrpc.Server{Tracker: orca.NewTracker(orca.TrackerConfig{}), Failed: c.failed}
			var err error
			if kind == "unary" {
				_, err = s.Unary(t.Context(), nil, nil, func(context.Context, any) (any, error) { return nil, c.err })
			} else {
				err = s.Stream(nil, nullStream{}, nil, func(any, grpc.ServerStream) error { return c.err })
			}
			if !errors.Is(err, c.err) {
				t.Errorf("the handler's error %v became %v", c.err, err)
			}
			var r orca.Report
			s.Tracker.Report(&r, s.Tracker.Now()+int64(time.Second))
			if (r.EPS > 0) != c.want || !(r.QPS > 0) {
				t.Errorf("%s, %v: %v of %v failed", kind, c.err, r.EPS, r.QPS)
			}
			_, latency := r.Named.Get(orca.LatencyMetric)
			if latency != (kind == "unary" && !c.want) {
				t.Errorf("%s, %v: latency there is %v", kind, c.err, latency)
			}
		}
	}
}

type nullStream struct{ grpc.ServerStream }

func (nullStream) SetTrailer(metadata.MD) {}

func TestInterceptorsLetPanicsPass(t *testing.T) {
	s := &orcagrpc.Server{Tracker: orca.NewTracker(orca.TrackerConfig{})}
	for _, call := range []func(){
		func() {
			_, _ = s.Unary(t.Context(), nil, nil, func(context.Context, any) (any, error) { panic("x") })
		},
		func() { _ = s.Stream(nil, nullStream{}, nil, func(any, grpc.ServerStream) error { panic("x") }) },
	} {
		func() {
			defer func() {
				if recover() != "x" {
					t.Error("the panic is lost")
				}
			}()
			call()
		}()
	}
	var r orca.Report
	s.Tracker.Report(&r, s.Tracker.Now()+int64(time.Second))
	if s.Tracker.InFlight() != 0 || r.EPS != r.QPS {
		t.Errorf("%d in flight, %v of %v failed", s.Tracker.InFlight(), r.EPS, r.QPS)
	}
}

func TestFromProtoChecks(t *testing.T) {
	many := map[string]float64{}
	for i := range orca.MaxEntries + 1 {
		many[string(rune('a'+i))] = 1
	}
	for _, c := range []struct {
		m    *v3orcapb.OrcaLoadReport
		want orca.Reason
	}{
		{nil, 0},
		{&v3orcapb.OrcaLoadReport{}, 0},
		{&v3orcapb.OrcaLoadReport{CpuUtilization: math.NaN()}, orca.NotFinite},
		{&v3orcapb.OrcaLoadReport{RpsFractional: -5}, orca.Negative},
		{&v3orcapb.OrcaLoadReport{Utilization: map[string]float64{"a": -1}}, orca.Negative},
		{&v3orcapb.OrcaLoadReport{NamedMetrics: map[string]float64{"a": -1}}, 0},
		{&v3orcapb.OrcaLoadReport{NamedMetrics: many}, orca.TooManyEntries},
		{&v3orcapb.OrcaLoadReport{NamedMetrics: map[string]float64{"": 1}}, orca.BadKey},
	} {
		r := orca.Report{CPU: 4}
		err := orcagrpc.FromProto(&r, c.m)
		if c.want == 0 && (err != nil || r.CPU != 0) || c.want != 0 && (!errors.Is(err, c.want) || !r.Empty()) {
			t.Errorf("%v: %v, %+v, want %v", c.m, err, r, c.want)
		}
	}
	var r orca.Report
	if found, err := orcagrpc.ParseTrailer(&r, metadata.MD{orcagrpc.TrailerKey: {"", ""}}); !found || !errors.Is(err, orca.MoreThanOne) {
		t.Errorf("two reports: %v, %v", found, err)
	}
	if found, _ := orcagrpc.FromServerLoad(&r, 5); found {
		t.Error("a number is a report")
	}
}

// FuzzBinaryAgainstProtobuf compares our reading by hand with the library's: what we accept says
// the same, and what only the library accepts has numbers or names that we refuse.
func FuzzBinaryAgainstProtobuf(f *testing.F) {
	r := orca.Report{CPU: 0.5, Named: orca.Metrics{{Name: "a", Value: 1}}, Costs: orca.Metrics{{Name: "b", Value: -1}}}
	message, _ := r.AppendBinary(nil)
	f.Add(message)
	f.Add(append(message, "\x18\x05\x4a\x00\x12\x03abc"...))
	f.Add([]byte("\x42\x09\x11\x00\x00\x00\x00\x00\x00\xf0\x3f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ours, theirs orca.Report
		var m v3orcapb.OrcaLoadReport
		ourErr := ours.UnmarshalString(string(data))
		protoErr := proto.Unmarshal(data, &m)
		if ourErr == nil && protoErr != nil {
			t.Fatalf("we accept what is %v", protoErr)
		}
		if protoErr != nil {
			return
		}
		if err := orcagrpc.FromProto(&theirs, &m); ourErr == nil && err != nil {
			t.Fatalf("%+v, by the library %v", ours, err)
		} else if ourErr != nil {
			return
		}
		if !proto.Equal(orcagrpc.ToProto(&ours), orcagrpc.ToProto(&theirs)) {
			t.Fatalf("%+v, by the library %+v", ours, theirs)
		}
	})
}

// BenchmarkUnary is a whole unary call's part in the interceptor, to a server stream that keeps the
// trailer.
func BenchmarkUnary(b *testing.B) {
	s := &orcagrpc.Server{Tracker: orca.NewTracker(orca.TrackerConfig{})}
	ctx := grpc.NewContextWithServerTransportStream(b.Context(), &nullTransport{})
	handler := func(context.Context, any) (any, error) { return nil, nil }
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Unary(ctx, nil, nil, handler)
	}
}

type nullTransport struct{ grpc.ServerTransportStream }

func (*nullTransport) SetTrailer(metadata.MD) error { return nil }
