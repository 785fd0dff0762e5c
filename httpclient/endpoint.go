package httpclient

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel"
)

// leaf sends requests to one endpoint. It is an *http.Transport except in tests.
type leaf interface {
	http.RoundTripper
	CloseIdleConnections()
}

// endpoint is a pool's handle: one address of one target, with its connections.
type endpoint struct {
	// Set at construction.
	addr     string
	newLeaf  func(addr string) leaf
	classify func(*http.Response, error) evenkeel.Outcome // nil: as outcome.go has it

	record atomic.Pointer[evenkeel.Record] // as of the last request; nil before the first

	dials dials // that no answer came after

	made    atomic.Pointer[leaf] // nil before it is needed
	making  sync.Mutex           // held to set made and former
	former  []former             // guarded by making
	retired atomic.Bool          // not in the list, or not selected of it
	closing atomic.Bool          // a call of CloseIdleConnections is on its way

	cut atomic.Bool // its connections were closed under its requests

	// Guarded by the group's mu.
	selected bool
	farewell farewell
	age      endpointAge
}

// leaf returns what sends its requests. It is made when the endpoint is selected, or by the
// first request if that was faster: of a long list with subsets most never need any.
func (e *endpoint) leaf() leaf {
	if l := e.made.Load(); l != nil {
		return *l
	}
	e.making.Lock()
	defer e.making.Unlock()
	if l := e.made.Load(); l != nil {
		return *l
	}
	l := e.newLeaf(e.addr)
	e.made.Store(&l)
	return l
}

// join says that it is selected. The group's mu is held.
func (e *endpoint) join() {
	if !e.selected {
		e.selected = true
		e.retired.Store(false)
		e.stay()
		e.leaf()
	}
}

// leave says that it is no longer selected. The group's mu is held, as whoever selects it
// again must not be overtaken.
func (e *endpoint) leave() {
	e.selected = false
	e.retired.Store(true)
}

// explain says of an error of a request, on l if that is known, that its connection was closed on this side, if it was.
func (e *endpoint) explain(err error, l leaf) error {
	var said *drainedError
	t, _ := l.(*trackedLeaf) // a write over TLS that comes after the cut says only that its connection is closed
	switch {
	case !e.cut.Load() && !errors.Is(err, ErrDrained) && (t == nil || !t.conns.refuses()), errors.As(err, &said):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err // the caller was first
	case err == errNotDialed:
		return unreached(&drainedError{addr: e.addr, err: ErrDrained})
	}
	return &drainedError{addr: e.addr, err: err}
}

// retire says that no new requests will come. Connections without a request close now, the
// others when theirs ends.
func (e *endpoint) retire() {
	e.retired.Store(true)
	e.closeEnded()
}

func (e *endpoint) closeIdle() {
	for _, f := range e.formers() {
		f.CloseIdleConnections()
	}
	if l := e.made.Load(); l != nil {
		(*l).CloseIdleConnections()
	}
}

// closeDelay is for net/http to take an ended request off its connection: an HTTP/2
// stream is still there for a moment after the caller has read the end of its body.
const closeDelay = 100 * time.Millisecond

// closeEnded closes the connections without a request, and those of requests that have ended a moment ago.
func (e *endpoint) closeEnded() {
	e.closeIdle()
	if e.made.Load() != nil {
		time.AfterFunc(closeDelay, e.closeIdle)
	}
}

// release is called after the end of each request.
func (e *endpoint) release() {
	if !e.retired.Load() || !e.closing.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(closeDelay, func() {
		e.closing.Store(false) // first, so that a request that ends from now on has a call after it
		if e.retired.Load() {  // not if it is back
			e.closeIdle()
		}
	})
}
