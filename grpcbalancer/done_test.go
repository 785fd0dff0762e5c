package grpcbalancer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
)

func TestResultOfAnAttempt(t *testing.T) {
	trailer := func(values ...string) metadata.MD { return metadata.MD{"grpc-retry-pushback-ms": values} }
	// info is an attempt that ended with err; sent and received say which bytes flowed.
	info := func(err error, sent, received bool) balancer.DoneInfo {
		return balancer.DoneInfo{Err: err, BytesSent: sent, BytesReceived: received}
	}
	coded := func(c codes.Code) error { return status.Error(c, "x") }
	for _, c := range []struct {
		name string
		info balancer.DoneInfo
		left bool
		want evenkeel.Outcome
	}{
		{"became no request", balancer.DoneInfo{}, false, evenkeel.Unknown},
		{"became no request, caller left", balancer.DoneInfo{}, true, evenkeel.Unknown},
		{"answered", info(nil, true, true), false, evenkeel.Success},
		{"answered, then the caller left", info(nil, true, true), true, evenkeel.Success},
		{"stream ended before an answer", info(nil, true, false), false, evenkeel.Success},
		{"caller's mistake", info(coded(codes.NotFound), true, true), false, evenkeel.Success},
		{"plain error of a server", info(coded(codes.Unknown), true, true), false, evenkeel.Failure},
		{"error that is no status", info(errors.New("x"), true, true), false, evenkeel.Failure},
		{"connection lost", info(coded(codes.Unavailable), true, false), false, evenkeel.Failure},
		{"nothing sent", info(coded(codes.Unavailable), false, false), false, evenkeel.Unreached},
		{"deadline after sending", info(coded(codes.DeadlineExceeded), true, false), false, evenkeel.Timeout},
		{"deadline after an answer began", info(coded(codes.DeadlineExceeded), true, true), false, evenkeel.Timeout},
		{"deadline while waiting for a stream", info(coded(codes.DeadlineExceeded), false, false), false, evenkeel.Unknown},
		{"deadline as the context says it", info(context.DeadlineExceeded, true, false), false, evenkeel.Timeout},
		{"the same, wrapped", info(fmt.Errorf("x: %w", context.DeadlineExceeded), true, false), false, evenkeel.Timeout},
		{"caller cancelled", info(coded(codes.Canceled), true, false), true, evenkeel.Canceled},
		{"caller cancelled, connection lost", info(coded(codes.Unavailable), true, false), true, evenkeel.Canceled},
		{"server says cancelled", info(coded(codes.Canceled), true, true), false, evenkeel.Unknown},
		{"server is full", info(coded(codes.ResourceExhausted), true, true), false, evenkeel.Overload},
		{"this client is full", info(coded(codes.ResourceExhausted), true, false), false, evenkeel.Unknown},
	} {
		if got := result(c.info, c.left); got.Outcome != c.want || got.RetryAfter != 0 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		values []string
		want   time.Duration
	}{
		{[]string{"250"}, 250 * time.Millisecond},
		{[]string{"0"}, 0},
		{[]string{"-1"}, 0},
		{[]string{"1.5"}, 0},
		{[]string{"x"}, 0},
		{[]string{"1", "2"}, 0},
		{[]string{}, 0},
		{[]string{"99999999999999999999999"}, 9223372036854 * time.Millisecond},
	} {
		full := balancer.DoneInfo{Err: coded(codes.ResourceExhausted), BytesSent: true, BytesReceived: true, Trailer: trailer(c.values...)}
		if got := result(full, false); got.RetryAfter != c.want || got.Outcome != evenkeel.Overload {
			t.Errorf("pushback %q: %+v, want %v", c.values, got, c.want)
		}
	}
	// A hint on a failure of another kind is none for the policy.
	failed := balancer.DoneInfo{Err: coded(codes.Internal), BytesSent: true, BytesReceived: true, Trailer: trailer("9")}
	if got := result(failed, false); got != (evenkeel.Result{Outcome: evenkeel.Failure}) {
		t.Errorf("%+v", got)
	}
}

func TestWhoLeftIsTheContextsWord(t *testing.T) {
	open := context.Background()
	cancelled, cancel := context.WithCancel(open)
	cancel()
	late, stop := context.WithDeadline(open, time.Unix(0, 0))
	defer stop()
	for _, c := range []struct {
		name string
		ctx  context.Context
		want bool
	}{{"none", nil, false}, {"open", open, false}, {"cancelled", cancelled, true}, {"late", late, false}} {
		if got := callerLeft(c.ctx); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
