package httpclient

import (
	"net/http"
	"sync/atomic"
	"time"
)

// leaf sends requests to one endpoint. It is an *http.Transport except in tests.
type leaf interface {
	http.RoundTripper
	CloseIdleConnections()
}

// endpoint is a pool's handle: one address of one target, with its connections.
type endpoint struct {
	leaf
	retired atomic.Bool // removed from the list; set once
	closing atomic.Bool // a call of CloseIdleConnections is on its way
}

// retire says that no new requests will come. Connections without a request close
// now, the others when theirs ends.
func (e *endpoint) retire() {
	e.retired.Store(true)
	e.CloseIdleConnections()
}

// closeDelay is for net/http to take an ended request off its connection: an HTTP/2
// stream is still there for a moment after the caller has read the end of its body.
const closeDelay = 100 * time.Millisecond

// release is called after the end of each request.
func (e *endpoint) release() {
	if !e.retired.Load() || !e.closing.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(closeDelay, func() {
		e.closing.Store(false) // first, so that a request that ends from now on has a call after it
		e.CloseIdleConnections()
	})
}
