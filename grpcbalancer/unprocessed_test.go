package grpcbalancer

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/outlier"
)

// Frames of HTTP/2 (RFC 9113).
const (
	headersFrame  = 1
	rstFrame      = 3
	settingsFrame = 4
	pingFrame     = 6
	goAwayFrame   = 7

	ackFlag       = 1
	internalError = 2
	refusedStream = 7
)

// refuser speaks just so much HTTP/2 that it can do to a stream what no server of gRPC's does on demand.
type refuser struct {
	addr    string
	streams atomic.Int64
}

// refusing starts a server that meets each stream, when its headers have come, with what: frames, or the end of
// the connection if there are none.
func refusing(t *testing.T, what func(stream uint32) []byte) *refuser {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &refuser{addr: l.Addr().String()}
	var mu sync.Mutex
	var open []net.Conn
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			all.Go(func() { r.serve(conn, what) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return r
}

func (r *refuser) serve(conn net.Conn, what func(stream uint32) []byte) {
	defer func() { _ = conn.Close() }()
	if _, err := io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	if _, err := conn.Write(frame(settingsFrame, 0, 0, nil)); err != nil {
		return
	}
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		body := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		var answer []byte
		switch kind, flags := head[3], head[4]; {
		case kind == headersFrame:
			r.streams.Add(1)
			if answer = what(binary.BigEndian.Uint32(head[5:])); answer == nil {
				return
			}
		case kind == settingsFrame && flags&ackFlag == 0:
			answer = frame(settingsFrame, ackFlag, 0, nil)
		case kind == pingFrame && flags&ackFlag == 0:
			answer = frame(pingFrame, ackFlag, 0, body)
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, body []byte) []byte {
	f := []byte{byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body)), kind, flags}
	return append(binary.BigEndian.AppendUint32(f, stream), body...)
}

func reset(code uint32) func(uint32) []byte {
	return func(stream uint32) []byte {
		return frame(rstFrame, 0, stream, binary.BigEndian.AppendUint32(nil, code))
	}
}

// goesAway says that the streams after last were not processed.
func goesAway(last uint32) func(uint32) []byte {
	return func(uint32) []byte {
		return frame(goAwayFrame, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), 0))
	}
}

// hangUp ends the connection, as a server does that dies.
func hangUp(uint32) []byte { return nil }

// A server that refuses a stream, or goes away while one is on its way to it, has processed nothing: gRPC makes the call again by
// itself, and the endpoint has not failed. Streams that end in other ways have.
func TestStreamsThatNoServerProcessedAreNoFailures(t *testing.T) {
	for _, c := range []struct {
		name    string
		what    func(uint32) []byte
		blamed  bool
		avoided bool
	}{
		{"refused", reset(refusedStream), false, true},
		{"goes away", goesAway(0), false, false},
		{"reset", reset(internalError), true, false},
		{"hangs up", hangUp, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			odd, even := refusing(t, c.what), start(t, "")
			alone := connect(t, lbConfigOf("{}"), []*backend{{addr: odd.addr}})
			for odd.streams.Load() < 3 {
				_ = alone.call() // gRPC makes it again once
			}
			alone.waitAtRest()
			s := statsOf(alone.policy())[odd.addr]
			if (s.Success < 1) != c.blamed || (s.Avoided > 0) != c.avoided || s.Latency != 0 || s.Picks < 3 {
				t.Errorf("alone: %+v", s)
			}
			_ = alone.cc.Close() // before the server, which has connections that nobody else ends
			cl := connect(t, lbConfigOf(`{"policy": "round_robin", "outlier": {"mode": "off"}}`), []*backend{{addr: odd.addr}, even},
				grpc.WithChainUnaryInterceptor(UnaryInterceptor))
			failed := 0
			for range 20 {
				if cl.call() != nil {
					failed++
				}
			}
			if (failed > 0) != c.blamed {
				t.Errorf("%d of 20 calls failed, though another server answers", failed)
			}
			cl.waitAtRest()
			_ = cl.cc.Close()
		})
	}
}

// badToken are credentials of a call that cannot be had.
type badToken struct{}

func (badToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, status.Error(codes.Unavailable, "no token today")
}
func (badToken) RequireTransportSecurity() bool { return false }

// What a caller has wrong is no endpoint's failure, whatever its code: else a token service that is down would take
// all endpoints out.
func TestCallsThatNeverLeftTheClientBlameNobody(t *testing.T) {
	long := metadata.AppendToOutgoingContext(context.Background(), "x-long", strings.Repeat("x", 10_000))
	for _, c := range []struct {
		name   string
		server []grpc.ServerOption
		ctx    context.Context
		option grpc.CallOption
		code   codes.Code
	}{
		{"credentials", nil, context.Background(), grpc.PerRPCCredentials(badToken{}), codes.Unavailable},
		{"headers that the server does not take", []grpc.ServerOption{grpc.MaxHeaderListSize(1000)}, long, grpc.EmptyCallOption{}, codes.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers := fleet(t, 2, c.server...)
			cl := connect(t, lbConfigOf(`{"outlier": {}}`), servers)
			for range 20 {
				if _, err := cl.EmptyCall(c.ctx, &testgrpc.Empty{}, c.option); status.Code(err) != c.code {
					t.Fatalf("error %v, want %v", err, c.code)
				}
			}
			cl.waitAtRest()
			for addr, s := range statsOf(cl.policy()) {
				if s.Success != 1 || s.Latency != 0 || s.Ejection.State != outlier.Available {
					t.Errorf("%s: %+v", addr, s)
				}
			}
			if n := cl.policy().pool.Stats().Ejected; n != 0 {
				t.Errorf("%d are ejected", n)
			}
			cl.calls(4)
		})
	}
}

// A server that fails uploads at once is no quick one. grpc-go says of such a call that it had no error, if the caller
// learns of the error while it sends.
func TestUploadsThatFailEarlyAreNoQuickSuccesses(t *testing.T) {
	bad := startWith(t, "", func(*backend) {}, grpc.ChainStreamInterceptor(
		func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
			return status.Error(codes.Unavailable, "no uploads today")
		}))
	c := connect(t, lbConfigOf("{}"), []*backend{bad})
	chunk := &testgrpc.StreamingInputCallRequest{Payload: &testgrpc.Payload{Body: make([]byte, 10_000)}}
	for range 50 {
		s, err := c.StreamingInputCall(context.Background())
		for err == nil {
			err = s.Send(chunk)
		}
		if s != nil {
			_, err = s.CloseAndRecv()
		}
		if status.Code(err) != codes.Unavailable {
			t.Fatalf("error %v", err)
		}
	}
	c.waitAtRest()
	if s := statsOf(c.policy())[bad.addr]; s.Latency != 0 || s.Picks < 50 {
		t.Errorf("%+v, want no latency of a server that never answered", s)
	}
}
