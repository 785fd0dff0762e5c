package grpcbalancer

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // a compressor
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// Messages beyond a limit end with the code of a server that is full. No server is.
func TestMessagesBeyondALimitBlameNobody(t *testing.T) {
	const small, large = 100, 100_000
	payload := &testgrpc.Payload{Body: make([]byte, large)}
	for _, c := range []struct {
		name   string
		server []grpc.ServerOption
		call   func(context.Context, *client) error
	}{
		{"answer", nil, func(ctx context.Context, c *client) error {
			_, err := c.UnaryCall(ctx, &testgrpc.SimpleRequest{ResponseSize: large}, grpc.MaxCallRecvMsgSize(small))
			return err
		}},
		{"compressed answer", nil, func(ctx context.Context, c *client) error {
			_, err := c.UnaryCall(ctx, &testgrpc.SimpleRequest{ResponseSize: large},
				grpc.MaxCallRecvMsgSize(10*small), grpc.UseCompressor("gzip"))
			return err
		}},
		{"request", nil, func(ctx context.Context, c *client) error {
			_, err := c.UnaryCall(ctx, &testgrpc.SimpleRequest{Payload: payload}, grpc.MaxCallSendMsgSize(small))
			return err
		}},
		{"request, by the server's limit", []grpc.ServerOption{grpc.MaxRecvMsgSize(small)}, func(ctx context.Context, c *client) error {
			_, err := c.UnaryCall(ctx, &testgrpc.SimpleRequest{Payload: payload})
			return err
		}},
		{"answer, by the server's limit", []grpc.ServerOption{grpc.MaxSendMsgSize(small)}, func(ctx context.Context, c *client) error {
			_, err := c.UnaryCall(ctx, &testgrpc.SimpleRequest{ResponseSize: large})
			return err
		}},
		{"message of a stream that has had an answer", nil, func(ctx context.Context, c *client) error {
			s, err := c.FullDuplexCall(ctx, grpc.MaxCallSendMsgSize(small))
			if err != nil {
				return err
			}
			if err := echo(s); err != nil {
				return err
			}
			return s.Send(&testgrpc.StreamingOutputCallRequest{Payload: payload})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := start(t, "", c.server...)
			cl := connect(t, lbConfigOf("{}"), []*backend{server})
			ctx := t.Context()
			if err := c.call(ctx, cl); status.Code(err) != codes.ResourceExhausted {
				t.Fatalf("error %v, want ResourceExhausted", err)
			}
			cl.waitAtRest()
			if s := statsOf(cl.policy())[server.addr]; s.Picks != 1 || s.Avoided != 0 || s.Success != 1 {
				t.Errorf("%+v, want one pick that taught nothing", s)
			}
		})
	}
}

// A server that says that it is full is left alone.
func TestServerThatIsFullIsAvoided(t *testing.T) {
	server := start(t, "")
	server.answers(func(context.Context) error { return status.Error(codes.ResourceExhausted, "full") })
	c := connect(t, lbConfigOf("{}"), []*backend{server})
	if err := c.call(); status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("error %v, want ResourceExhausted", err)
	}
	c.waitAtRest()
	if s := statsOf(c.policy())[server.addr]; s.Avoided == 0 || s.Success != 1 {
		t.Errorf("%+v, want one that is avoided", s)
	}
}
