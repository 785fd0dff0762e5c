package httpclient

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// pick chooses the endpoint of a try at its instant, none that was tried if there is another. Before the first list it
// waits for one, as long as the request's context allows; when looking for it failed, the request
// does. A request that has ended already is no endpoint's: nobody is picked for it.
func (g *group) pick(c *call, t *try) (err error) {
	if !g.used.Load() { // all requests write the same, so only the first of a second does
		g.used.Store(true)
	}
	g.checks.used()
	req, now := c.req, t.now
	if !g.listed.Load() {
		if err := g.await(req); err != nil {
			return err
		}
		now = g.now()
	}
	if err := ended(req); err != nil {
		return err
	}
	r := describe(req)
	r.Idempotent, r.Avoid = c.idempotent, c.tried
	if g.keys != nil {
		r.Key, r.HasKey = g.keys.hash(req)
	}
	if c.steered() {
		t.pick, err = g.steer(now, r, c.control)
	} else {
		t.pick, err = g.pool.PickAt(now, r)
	}
	if err != nil {
		return g.noPick(err)
	}
	if e, rec := t.pick.Handle(), t.pick.Record(); e.record.Load() != rec {
		e.record.Store(rec)
	}
	if over, ok := c.deadline(now); ok {
		t.pick.SetDeadline(over)
	}
	return nil
}

// noPick makes a pool's error the Transport's.
func (g *group) noPick(err error) error {
	if err == evenkeel.ErrClosed { // as the pool returns it; wrapped it may be anybody's
		return errEvicted
	}
	if _, told := err.(*TargetError); told {
		return err
	}
	return &TargetError{Target: g.target, Op: "pick an endpoint", Err: err}
}

// deadline is when the time of a try that begins now is over.
func (c *call) deadline(now time.Time) (t time.Time, ok bool) {
	t, ok = c.req.Context().Deadline()
	if d := c.rules.tryTimeout; d > 0 {
		if own := now.Add(d); !ok || own.Before(t) {
			return own, true
		}
	}
	return t, ok
}

// errEvicted is for RoundTrip alone, which then asks for the target again.
var errEvicted = errors.New("httpclient: the target was evicted")

// ended returns the error of a request whose caller has left before it was sent, as
// net/http does, and nil if it has not.
func ended(req *http.Request) error {
	if ctx := req.Context(); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if legacyCanceled(req) {
		return context.Canceled
	}
	return nil
}

// await waits for the first list of addresses.
func (g *group) await(req *http.Request) error {
	const op = "wait for the first list of addresses"
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	select {
	case <-g.settled:
	case <-req.Context().Done():
		return &TargetError{Target: g.target, Op: op, Err: causeOf(req.Context())}
	//lint:ignore SA1019 net/http honours it, so callers may use it
	case <-req.Cancel:
		return &TargetError{Target: g.target, Op: op, Err: causeOf(req.Context())}
	}
	if g.listed.Load() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.listed.Load() {
		return nil // the pool says which
	}
	return &TargetError{Target: g.target, Op: "resolve", Err: g.lastErr}
}

// describe says what a policy may know of a request.
func describe(req *http.Request) evenkeel.Request {
	r := evenkeel.Request{Idempotent: isIdempotent(req.Method)}
	if becomesConn(req) || isEventStream(req.Header["Accept"]) {
		r.Kind = picker.Stream
	}
	return r
}

// becomesConn reports whether req asks for a connection of its own, which may last for ever.
func becomesConn(req *http.Request) bool {
	return len(req.Header["Upgrade"]) > 0 || req.Method == http.MethodConnect
}

// isIdempotent follows RFC 9110, 9.2.2.
func isIdempotent(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

func isEventStream(accept []string) bool { return len(accept) == 1 && accept[0] == "text/event-stream" }
