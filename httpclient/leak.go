package httpclient

import (
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
)

// healed returns resp with a body that is closed when the caller has dropped it. The answer is a copy: net/http's read loop
// holds on to its own for as long as the connection waits for the body's end, and to all that can be reached from it.
func (g *group) healed(resp *http.Response) *http.Response {
	if !g.heals || resp == nil {
		return resp
	}
	var inner *body
	conn, isConn := resp.Body.(*upgraded)
	if isConn {
		inner = &conn.body
	} else if inner, _ = resp.Body.(*body); inner == nil {
		return resp // it has none that could be left open
	}
	own := *resp
	b := &heldBody{inner: resp.Body, from: resp, to: &own}
	own.Body = b
	if isConn {
		own.Body = &heldConn{heldBody: b, conn: conn}
	}
	b.cleanup = runtime.AddCleanup(b, (*dropped).heal, &dropped{body: inner, count: &g.counts.healed})
	return &own
}

// dropped is what is left of an answer whose caller has dropped it. Nothing in it may lead to the heldBody.
type dropped struct {
	body  *body
	count *atomic.Uint64
}

// heal closes the body, unless it has ended. It must not block, as other cleanups wait for it, and closing may.
func (d *dropped) heal() {
	if d.body.ended.Load() {
		return
	}
	d.count.Add(1)
	go func() { _ = d.body.Close() }() // nobody is there to be told
}

// heldBody is an answer's body as the caller holds it.
type heldBody struct {
	inner io.ReadCloser
	from  *http.Response // net/http's, which gets the trailers
	to    *http.Response // the caller's

	// What heals leads to the request, whose context may lead to where its caller keeps the answer: as long as it waits, none
	// of that can be collected. So it waits no longer than until the body has ended.
	cleanup runtime.Cleanup
}

// Read reads the body.
func (h *heldBody) Read(p []byte) (int, error) {
	n, err := h.inner.Read(p)
	if err == io.EOF {
		h.to.Trailer = h.from.Trailer
	}
	if err != nil {
		h.cleanup.Stop()
	}
	runtime.KeepAlive(h) // it may be the last that its caller does with it
	return n, err
}

// Close closes the body.
func (h *heldBody) Close() error {
	err := h.inner.Close()
	h.cleanup.Stop()
	runtime.KeepAlive(h)
	return err
}

// heldConn is the connection of a 101 answer as the caller holds it.
type heldConn struct {
	*heldBody
	conn *upgraded
}

// Write writes to the connection.
func (h *heldConn) Write(p []byte) (int, error) {
	n, err := h.conn.Write(p)
	runtime.KeepAlive(h.heldBody)
	return n, err
}

// CloseWrite closes the sending side, if the connection can do that.
func (h *heldConn) CloseWrite() error {
	err := h.conn.CloseWrite()
	runtime.KeepAlive(h.heldBody)
	return err
}
