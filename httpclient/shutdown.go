package httpclient

import (
	"context"
	"time"
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
