package grpcbalancer

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// call is one attempt of an RPC on one endpoint, from Pick to Done. It holds the
// record through its pick, so that a stream stays counted on the endpoint that it
// was sent to, whatever becomes of connection, list and config.
type call struct {
	pick  evenkeel.Pick[*endpoint]
	ctx   context.Context
	child func(balancer.DoneInfo)

	// life counts the attempts that this call has served. A Done of an earlier one is a
	// second call, and has to find that out without harming the present one.
	life atomic.Uint64
}

var spare = sync.Pool{New: func() any { return new(call) }}

// newCall returns a call for an attempt with this context; onDone, abandon or recycle
// ends its owner's use of it.
func newCall(ctx context.Context) *call {
	c := spare.Get().(*call)
	c.ctx = ctx
	return c
}

// onDone returns the function that ends the attempt, and calls child first. It is the
// one allocation of a pick: calls are reused, but a function that is reused could
// not tell a second call from the first one of the next attempt.
func (c *call) onDone(child func(balancer.DoneInfo)) func(balancer.DoneInfo) {
	c.child = child
	life := c.life.Load()
	return func(info balancer.DoneInfo) {
		if c.life.CompareAndSwap(life, life+1) {
			c.done(info)
		}
	}
}

func (c *call) done(info balancer.DoneInfo) {
	if c.child != nil {
		c.child(info)
	}
	r := result(info, callerLeft(c.ctx))
	if c.pick.Handle().policy.reads.Load() {
		r.Load = takeReport(&c.pick, info)
	}
	c.pick.Done(r)
	c.recycle()
}

// setDeadline tells the pick when the call's time is over.
func (c *call) setDeadline() {
	if c.ctx == nil {
		return
	}
	if t, ok := c.ctx.Deadline(); ok {
		c.pick.SetDeadline(t)
	}
}

// abandon ends a pick that became no request.
func (c *call) abandon() {
	c.pick.Done(evenkeel.Result{})
	c.recycle()
}

func (c *call) recycle() {
	c.pick, c.ctx, c.child = evenkeel.Pick[*endpoint]{}, nil, nil
	spare.Put(c)
}

// callerLeft asks the context, never the error: a server may answer CANCELLED, too.
// A deadline is not the caller leaving: it says something about the endpoint.
func callerLeft(ctx context.Context) bool {
	return ctx != nil && errors.Is(ctx.Err(), context.Canceled)
}

// result says what an attempt's end means. The zero DoneInfo is a pick that became
// no request, since its connection was gone: it says nothing.
func result(info balancer.DoneInfo, callerLeft bool) evenkeel.Result {
	if saysNothing(info) {
		return evenkeel.Result{}
	}
	if r, ok := unprocessed(info); ok {
		return r
	}
	wait, pushback := pushbackOf(info.Trailer)
	code := codeOf(info.Err)
	if code == codes.ResourceExhausted && !pushback && isTooLarge(info.Err) {
		return evenkeel.Result{} // the endpoint is not the one that is short of something
	}
	if code == codes.Canceled && !callerLeft && !isClosing(info.Err) {
		// The server's word, or a proxy's that resets the stream, while the caller waits: it has failed. To make
		// nothing of it would have a server that is at once done with each call, with that code, look idle for ever.
		return evenkeel.Result{Outcome: evenkeel.Failure, Status: picker.GRPCStatus(uint32(code))}
	}
	outcome := picker.OutcomeOfGRPC(uint32(code), picker.GRPCFacts{
		BytesSent:     info.BytesSent,
		BytesReceived: info.BytesReceived,
		Pushback:      pushback,
		CallerLeft:    callerLeft,
	})
	if outcome != evenkeel.Overload {
		wait = 0
	}
	return evenkeel.Result{Outcome: outcome, Status: picker.GRPCStatus(uint32(code)), RetryAfter: wait}
}

// codeOf is the error's status code; errors of a context, which wrappers let through
// as they are, count as their codes.
func codeOf(err error) codes.Code {
	code := status.Code(err)
	if code == codes.Unknown {
		code = status.FromContextError(err).Code()
	}
	return code
}

// isClosing reports whether a CANCELLED is grpc-go's own, for a channel that is closed.
func isClosing(err error) bool {
	return status.Convert(err).Message() == textClosing
}

// isTooLarge reports whether a RESOURCE_EXHAUSTED is grpc-go's own, of this client or of
// the server, for a message that is larger than what was set: it has the code of a server
// that is full and says something of the message alone. Nothing but its text tells.
func isTooLarge(err error) bool {
	text := status.Convert(err).Message()
	return strings.Contains(text, "message larger than max") || strings.Contains(text, "message after decompression larger than max")
}

// maxPushback bounds what a server can ask for. The pool has a lower bound for how long it
// does without an endpoint.
const maxPushback = 300 * time.Second

// pushbackOf reads the server's wish for how long to leave it alone (gRFC A6). It has
// to be one whole number of milliseconds; a negative one forbids the retry and says
// nothing of time.
func pushbackOf(trailer metadata.MD) (wait time.Duration, ok bool) {
	values := trailer["grpc-retry-pushback-ms"]
	if len(values) != 1 {
		return 0, false
	}
	ms, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return time.Duration(min(ms, uint64(maxPushback/time.Millisecond))) * time.Millisecond, true
}
