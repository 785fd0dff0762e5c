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
	"github.com/evenkeel/evenkeel/picker"
)

// ended is an attempt that ended with err; sent and received say which bytes flowed.
func ended(err error, sent, received bool) balancer.DoneInfo {
	return balancer.DoneInfo{Err: err, BytesSent: sent, BytesReceived: received}
}

// trailersAlone is an attempt that the server ended before it had answered anything.
func trailersAlone(err error) balancer.DoneInfo {
	info := ended(err, true, true)
	info.Trailer = metadata.Pairs("content-type", "application/grpc")
	return info
}

func coded(c codes.Code) error { return status.Error(c, "x") }

func TestResultOfAnAttempt(t *testing.T) {
	for _, c := range []struct {
		name string
		info balancer.DoneInfo
		left bool
		want evenkeel.Outcome
	}{
		{"became no request", balancer.DoneInfo{}, false, evenkeel.Unknown},
		{"became no request, caller left", balancer.DoneInfo{}, true, evenkeel.Unknown},
		{"answered", ended(nil, true, true), false, evenkeel.Success},
		{"answered, then the caller left", ended(nil, true, true), true, evenkeel.Success},
		{"no error and no answer: a failure that the caller met while sending", ended(nil, true, false), false, evenkeel.Unknown},
		{"trailers alone: the same, or a stream without messages", trailersAlone(nil), false, evenkeel.Unknown},
		{"trailers alone, with an error", trailersAlone(coded(codes.Internal)), false, evenkeel.Failure},
		{"caller's mistake", ended(coded(codes.NotFound), true, true), false, evenkeel.Success},
		{"plain error of a server", ended(coded(codes.Unknown), true, true), false, evenkeel.Failure},
		{"error that is no status", ended(errors.New("x"), true, true), false, evenkeel.Failure},
		{"connection lost", ended(coded(codes.Unavailable), true, false), false, evenkeel.Failure},
		{"nothing sent: the connection was closing", ended(coded(codes.Unavailable), false, false), false, evenkeel.Unknown},
		{"nothing sent: the caller's credentials", ended(coded(codes.Internal), false, false), false, evenkeel.Unknown},
		{"nothing sent, and the caller left", ended(coded(codes.Canceled), false, false), true, evenkeel.Unknown},
		{"not processed: going away", ended(status.Error(codes.Unavailable, textDraining), true, false), false, evenkeel.Unknown},
		{"not processed: rejected", ended(status.Error(codes.Unavailable, textRejected), true, false), false, evenkeel.Unknown},
		{"not processed: refused", ended(status.Error(codes.Unavailable, textRefused), true, false), false, evenkeel.Overload},
		{"a server that says what another one said to it", ended(status.Error(codes.Unavailable, textDraining), true, true), false, evenkeel.Failure},
		{"the words with another code", ended(status.Error(codes.Internal, textDraining), true, false), false, evenkeel.Failure},
		{"deadline after sending", ended(coded(codes.DeadlineExceeded), true, false), false, evenkeel.Timeout},
		{"deadline after an answer began", ended(coded(codes.DeadlineExceeded), true, true), false, evenkeel.Timeout},
		{"deadline while waiting for a stream", ended(coded(codes.DeadlineExceeded), false, false), false, evenkeel.Unknown},
		{"deadline as the context says it", ended(context.DeadlineExceeded, true, false), false, evenkeel.Timeout},
		{"the same, wrapped", ended(fmt.Errorf("x: %w", context.DeadlineExceeded), true, false), false, evenkeel.Timeout},
		{"caller cancelled", ended(coded(codes.Canceled), true, false), true, evenkeel.Canceled},
		{"caller cancelled, connection lost", ended(coded(codes.Unavailable), true, false), true, evenkeel.Canceled},
		{"server says cancelled", ended(coded(codes.Canceled), true, true), false, evenkeel.Failure},
		{"a proxy resets the stream", ended(coded(codes.Canceled), true, false), false, evenkeel.Failure},
		{"the channel is closed", ended(status.Error(codes.Canceled, "grpc: the client connection is closing"), true, true), false, evenkeel.Unknown},
		{"server is full", ended(coded(codes.ResourceExhausted), true, true), false, evenkeel.Overload},
		{"this client is full", ended(coded(codes.ResourceExhausted), true, false), false, evenkeel.Unknown},
	} {
		if got := result(c.info, c.left); got.Outcome != c.want || got.RetryAfter != 0 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// full is how an attempt on a server that is full ends, with these pushbacks.
func full(values ...string) balancer.DoneInfo {
	info := ended(coded(codes.ResourceExhausted), true, true)
	info.Trailer = metadata.MD{"grpc-retry-pushback-ms": values}
	return info
}

func TestPushbackOfAFullServerIsItsHint(t *testing.T) {
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
		{[]string{"300000"}, 300 * time.Second},
		{[]string{"300001"}, 300 * time.Second},
		{[]string{"99999999999999999999999"}, 300 * time.Second},
	} {
		if got := result(full(c.values...), false); got.RetryAfter != c.want || got.Outcome != evenkeel.Overload {
			t.Errorf("pushback %q: %+v, want %v", c.values, got, c.want)
		}
	}
	// A hint on a failure of another kind is none for the policy.
	failed := full("9")
	failed.Err = coded(codes.Internal)
	if got := result(failed, false); got != (evenkeel.Result{Outcome: evenkeel.Failure, Status: picker.GRPCStatus(13)}) {
		t.Errorf("%+v", got)
	}
}

// The published vector "pushback": what a client may make of grpc-retry-pushback-ms, at
// most 300 s.
func TestVectorPushbackMilliseconds(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		value   string
		seconds time.Duration
	}{{"5000", 5}, {"0", 0}, {"-1", none}, {"abc", none}, {"999999", 300}} {
		want := max(c.seconds, 0) * time.Second
		wait, ok := pushbackOf(metadata.Pairs("grpc-retry-pushback-ms", c.value))
		if wait != want || ok != (c.seconds != none) {
			t.Errorf("%q: %v, %v, want %v, %v", c.value, wait, ok, want, c.seconds != none)
		}
	}
}

// Overload is what a server says of itself; that a message is too large is not.
func TestMessageThatIsTooLargeIsNoOverload(t *testing.T) {
	for _, c := range []struct {
		text string
		want evenkeel.Outcome
	}{
		{"grpc: received message larger than max (5 vs. 4)", evenkeel.Unknown},
		{"grpc: received message larger than max length allowed on current machine (5 vs. 4)", evenkeel.Unknown},
		{"grpc: received message after decompression larger than max 4", evenkeel.Unknown},
		{"grpc: message after decompression larger than max (5 vs. 4)", evenkeel.Unknown},
		{"trying to send message larger than max (5 vs. 4)", evenkeel.Unknown},
		{"grpc: trying to send message larger than max (5 vs. 4)", evenkeel.Unknown},
		{"queue is larger than max", evenkeel.Overload},
		{"too many messages", evenkeel.Overload},
	} {
		info := full()
		info.Err = status.Error(codes.ResourceExhausted, c.text)
		want := evenkeel.Result{Outcome: c.want}
		if c.want == evenkeel.Overload {
			want.Status = picker.GRPCStatus(uint32(codes.ResourceExhausted))
		}
		if got := result(info, false); got != want {
			t.Errorf("%q: %+v, want %v", c.text, got, c.want)
		}
		// A server that says when to come back means itself.
		info.Trailer = metadata.Pairs("grpc-retry-pushback-ms", "1000")
		if got := result(info, false); got.Outcome != evenkeel.Overload {
			t.Errorf("%q with a pushback: %+v, want overload", c.text, got)
		}
		// The code decides first.
		info = ended(status.Error(codes.Internal, c.text), true, true)
		if got := result(info, false); got.Outcome != evenkeel.Failure {
			t.Errorf("%q as INTERNAL: %+v, want failure", c.text, got)
		}
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
