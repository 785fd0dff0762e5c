package httpclient

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// So many connections of one request may come to nothing.
	loopMost = 8
	// Dials that are further apart are no loop that anybody has to be kept from.
	loopSpan = time.Second
)

// errLoop is what one dial more comes to: nothing of the request was sent, or it was refused unread.
var errLoop = errors.New("httpclient: connection after connection was closed before an answer")

// dials are those of an endpoint that no answer came after. An HTTP/2 connection that its server ends with a GOAWAY
// before it serves anything is replaced by net/http at once, over and over, for as long as the request's context allows; in
// between the endpoint can neither be blamed nor left.
type dials struct {
	n    atomic.Int64 // since the last answer
	mu   sync.Mutex
	last time.Time // guarded by mu
}

// refuse reports whether one more is too many, of requests that wait for an answer.
func (d *dials) refuse(requests func() int64) bool {
	now := time.Now()
	d.mu.Lock()
	if now.Sub(d.last) > loopSpan {
		d.n.Store(0)
	}
	d.last = now
	d.mu.Unlock()
	n := d.n.Add(1)
	return n > loopMost && n > loopMost*max(1, requests())
}

// answered notes that a request has ended on a connection.
func (d *dials) answered() {
	if d.n.Load() != 0 { // seldom, and all requests read it
		d.n.Store(0)
	}
}

// failed notes that a request has none: those that it had made are nobody's now.
func (d *dials) failed() {
	for {
		n := d.n.Load()
		if n == 0 || d.n.CompareAndSwap(n, max(0, n-loopMost)) {
			return
		}
	}
}

// bounded returns e's connections l with a bound on how often a request has new ones made.
func (g *group) bounded(e *endpoint, l leaf) leaf {
	var t *http.Transport
	switch l := l.(type) {
	case *http.Transport:
		t = l
	case *trackedLeaf:
		t = l.Transport
	default:
		return l
	}
	dial := t.DialContext
	requests := func() int64 { return g.pool.InFlight(e.addr) }
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if ctx.Value(warmKey{}) == nil && e.dials.refuse(requests) {
			return nil, unreached(errLoop)
		}
		return dial(ctx, network, addr)
	}
	return l
}
