package httpclient

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/evenkeel/evenkeel"
)

// How often the end of a wait is looked for: at first, and at last.
const (
	lookFirst = time.Millisecond
	lookLast  = 50 * time.Millisecond
)

// until waits until ok, or ctx is done, which it returns the cause of.
func until(ctx context.Context, ok func() bool) error {
	for d := lookFirst; !ok(); d = min(2*d, lookLast) {
		if !pause(ctx, d, time.Time{}, nil) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Shutdown refuses new requests with ErrClosed, waits for those in flight, their retries and the bodies of their
// answers included, and closes the Transport. When ctx is done before that it closes the
// Transport all the same, as Close does, and returns the context's cause. Connections that were upgraded are in
// flight until they are closed. Calling it again, or Close, meanwhile is
// allowed; a second call waits too.
func (t *Transport) Shutdown(ctx context.Context) error {
	t.mu.Lock()
	if f := t.running(); f != nil {
		t.leaving = f
	}
	f := t.leaving
	t.started.Store(&startup{err: ErrClosed})
	t.mu.Unlock()
	if f == nil {
		return nil
	}
	err := until(ctx, func() bool { return !f.busy() })
	f.close()
	return err
}

// busy reports whether some request is in flight.
func (f *fleet) busy() bool {
	for _, g := range *f.groups.Load() {
		if g.calls.Load() > 0 || g.busy() {
			return true
		}
	}
	return false
}

// WaitReady waits until the target of rawURL has an endpoint that may be picked, which
// starts its lookups and its health checks. A lookup that fails is waited out. It returns nil then, and an error when ctx is
// done first, with the last reason, or when there can be no such target. It makes no connections.
func (t *Transport) WaitReady(ctx context.Context, rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return err // which says what was parsed
	}
	var why error
	cause := until(ctx, func() (over bool) {
		over, why = t.ready(u)
		return over
	})
	if cause != nil && why != nil {
		return fmt.Errorf("%w (%w)", why, cause)
	}
	if cause != nil {
		return cause
	}
	return why
}

// ready reports whether there is nothing to wait for, which an error can be the reason of.
func (t *Transport) ready(u *url.URL) (over bool, why error) {
	f, err := t.start()
	if err != nil {
		return true, err
	}
	g, err := f.group(u)
	if err != nil {
		return true, err
	}
	g.used.Store(true)
	g.checks.used()
	if !g.listed.Load() {
		g.mu.Lock()
		defer g.mu.Unlock()
		const op = "wait for the first list of addresses"
		if g.lastErr != nil {
			return false, &TargetError{Target: g.target, Op: op, Err: g.lastErr}
		}
		return false, &TargetError{Target: g.target, Op: op, Err: errNotYet}
	}
	s := g.pool.Stats()
	if s.Ready > 0 {
		return true, nil
	}
	err = evenkeel.ErrNoneReady
	if s.Listed == 0 {
		err = evenkeel.ErrEmpty
	}
	return false, &TargetError{Target: g.target, Op: "wait for an endpoint", Err: err}
}
