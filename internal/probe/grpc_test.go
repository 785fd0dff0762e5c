package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

// serveGRPC starts a real gRPC server on loopback.
func serveGRPC(t *testing.T, register func(*grpc.Server), o ...grpc.ServerOption) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(o...)
	register(s)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // ends with Stop
	}()
	t.Cleanup(func() { s.Stop(); <-served })
	return l.Addr().String()
}

func grpcProberOf(t *testing.T, service string, o ProberOptions) Prober {
	return prober(t, evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC, Service: service}, o)
}

func TestGRPCHealthIsUnderstood(t *testing.T) {
	h := grpchealth.NewServer()
	addr := serveGRPC(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, h) })
	for _, tc := range []struct {
		service string
		status  healthpb.HealthCheckResponse_ServingStatus
		want    health.Result
	}{
		{"", healthpb.HealthCheckResponse_SERVING, health.Passed},
		{"", healthpb.HealthCheckResponse_NOT_SERVING, health.Unexpected},
		{"orders.v1.Orders", healthpb.HealthCheckResponse_SERVING, health.Passed},
		{"orders.v1.Orders", healthpb.HealthCheckResponse_NOT_SERVING, health.Unexpected},
		{"orders.v1.Orders", healthpb.HealthCheckResponse_UNKNOWN, health.Unexpected},
		{"orders.v1.Orders", healthpb.HealthCheckResponse_SERVICE_UNKNOWN, health.Unexpected},
		{strings.Repeat("long.", 400), healthpb.HealthCheckResponse_SERVING, health.Passed},
	} {
		h.SetServingStatus(tc.service, tc.status)
		r, detail := check(t, grpcProberOf(t, tc.service, ProberOptions{Host: "orders.internal:50051"}), addr)
		if r != tc.want || detail != tc.status.String() {
			t.Errorf("%.20q is %v: %v, %s", tc.service, tc.status, r, detail)
		}
	}
	if r, detail := check(t, grpcProberOf(t, "nobody", ProberOptions{}), addr); r != health.Unexpected || detail != "SERVICE_UNKNOWN" {
		t.Errorf("a service that is not known: %v, %s", r, detail)
	}
}

func TestGRPCServerWithoutHealthServiceIsHealthyWithOneWarning(t *testing.T) {
	addr := serveGRPC(t, func(*grpc.Server) {})
	var warnings []string
	p := grpcProberOf(t, "", ProberOptions{OnWarning: func(text string) { warnings = append(warnings, text) }})
	for range 3 {
		if r, detail := check(t, p, addr); r != health.Passed || !strings.Contains(detail, "no health service") {
			t.Errorf("%v, %s", r, detail)
		}
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "grpc.health.v1.Health") {
		t.Errorf("warnings: %q", warnings)
	}
	if r, _ := check(t, grpcProberOf(t, "", ProberOptions{}), addr); r != health.Passed {
		t.Error("without a place for warnings it fails")
	}
}

type failing struct {
	healthpb.UnimplementedHealthServer
	code codes.Code
}

func (f failing) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return nil, status.Error(f.code, "no database")
}

type hanging struct {
	healthpb.UnimplementedHealthServer
	deadlines chan bool
}

func (h hanging) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	_, ok := ctx.Deadline()
	h.deadlines <- ok
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestGRPCFailuresFail(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.Internal, codes.PermissionDenied} {
		addr := serveGRPC(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, failing{code: code}) })
		if r, detail := check(t, grpcProberOf(t, "", ProberOptions{}), addr); r != health.Failed || !strings.HasSuffix(detail, ": no database") {
			t.Errorf("%v: %v, %s", code, r, detail)
		}
	}
	h := hanging{deadlines: make(chan bool, 1)}
	addr := serveGRPC(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, h) })
	hung(t, grpcProberOf(t, "", ProberOptions{}), addr)
	if !<-h.deadlines {
		t.Error("the server is not told the deadline")
	}
	// A server of HTTP/1, and one of HTTP/2 that has never heard of gRPC.
	old := serve(t, plain, http.NotFound)
	if r, detail := check(t, grpcProberOf(t, "", ProberOptions{}), old.addr); r != health.Failed {
		t.Errorf("HTTP/1: %v, %s", r, detail)
	}
	other := serve(t, withHTTP2, http.NotFound)
	if r, detail := check(t, grpcProberOf(t, "", ProberOptions{TLS: true, Host: "example.com", TLSConfig: other.roots()}), other.addr); r != health.Failed || !strings.Contains(detail, "HTTP 404") {
		t.Errorf("no gRPC: %v, %s", r, detail)
	}
	bare := serve(t, withHTTP2, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
	})
	if r, detail := check(t, grpcProberOf(t, "", ProberOptions{TLS: true, Host: "example.com", TLSConfig: bare.roots()}), bare.addr); r != health.Failed || detail != "the answer has no grpc-status" {
		t.Errorf("no status: %v, %s", r, detail)
	}
}

func TestGRPCOverTLS(t *testing.T) {
	lender := serve(t, withTLS, http.NotFound) // of a certificate
	h := grpchealth.NewServer()
	addr := serveGRPC(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, h) },
		grpc.Creds(credentials.NewServerTLSFromCert(&lender.TLS.Certificates[0])))
	if r, detail := check(t, grpcProberOf(t, "", ProberOptions{TLS: true, Host: "example.com", TLSConfig: lender.roots()}), addr); r != health.Passed {
		t.Errorf("%v, %s", r, detail)
	}
	if r, detail := check(t, grpcProberOf(t, "", ProberOptions{TLS: true, Host: "example.com"}), addr); r != health.Failed {
		t.Errorf("nobody knows its CA: %v, %s", r, detail)
	}
}

func TestHealthRequestIsWhatProtobufMakes(t *testing.T) {
	for _, service := range []string{"", "a", strings.Repeat("é", 200)} {
		message, err := proto.Marshal(&healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		if got := healthRequest(service); !bytes.Equal(got, frame(message)) {
			t.Errorf("%q is % x, want % x", service, got, message)
		}
	}
}

func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// FuzzParseHealth compares the parser with protobuf's. Groups are no part of it, and protobuf refuses more:
// a text that is no UTF-8 does not matter here.
func FuzzParseHealth(f *testing.F) {
	for _, s := range []healthpb.HealthCheckResponse_ServingStatus{0, 1, 2, 3, -1, 1 << 30} {
		message, err := proto.Marshal(&healthpb.HealthCheckResponse{Status: s})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame(message))
	}
	for _, s := range []string{"", "\x00\x00\x00\x00", "\x01\x00\x00\x00\x00", "\x00\x00\x00\x00\x02\x08", "\x00\x00\x00\x00\x04\x08\x01\x08\x02",
		"\x00\x00\x00\x00\x05\x12\x01x\x08\x01", "\x00\x00\x00\x00\x06\x15abcd\x08", "\x00\x00\x00\x00\x02\x0b\x0c", "\x00\xff\xff\xff\xff",
		"\x00\x00\x00\x00\x03\x12\x7fx", "\x00\x00\x00\x00\x03\x12\x02x", "\x00\x00\x00\x00\x09\x11abcdefgh", "\x00\x00\x00\x00\x02\x0a\x00", "\x00\x00\x00\x00\x03\x88\x00\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, framed []byte) {
		got, err := parseHealth(framed)
		_ = got.String()
		if len(framed) < prefix || framed[0] != 0 || int(binary.BigEndian.Uint32(framed[1:])) != len(framed)-prefix {
			if err != errFraming {
				t.Fatalf("% x is no message, and reads as %v, %v", framed, got, err)
			}
			return
		}
		var want healthpb.HealthCheckResponse
		wantErr := proto.Unmarshal(framed[prefix:], &want)
		switch {
		case err == nil && wantErr != nil:
			t.Fatalf("% x reads as %v, protobuf says %v", framed, got, wantErr)
		case err == nil && int32(want.GetStatus()) != int32(got):
			t.Fatalf("% x reads as %v, want %v", framed, got, want.GetStatus())
		case err != nil && wantErr == nil && !hasGroup(framed[prefix:]):
			t.Fatalf("% x is refused: %v", framed, err)
		}
	})
}

// hasGroup reports whether a byte could begin a group.
func hasGroup(b []byte) bool {
	for _, x := range b {
		if w := x & 7; w == 3 || w == 4 {
			return true
		}
	}
	return false
}
