package httpclient

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// trackedLeaf is an endpoint's http.Transport with a grip on its connections.
type trackedLeaf struct {
	*http.Transport
	conns conns

	// Guarded by the group's mu.
	lives time.Duration // how old its connections may become; 0: not drawn yet
	busy  int           // how many are needed
}

// conns are an endpoint's open connections, whatever protocol is spoken on them.
type conns struct {
	mu      sync.Mutex
	open    map[*trackedConn]struct{}
	refused bool // new ones: net/http sends some requests once more when their connection breaks
}

// errNotDialed is what a dial comes to that was refused here: nothing of the request was sent.
var errNotDialed = unreached(ErrDrained)

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// tracked returns dial with what it makes noted.
func (c *conns) tracked(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if w, ok := ctx.Value(warmKey{}).(*warming); ok {
			return w.dial(func() (net.Conn, error) { return c.dial(ctx, dial, network, addr) })
		}
		return c.dial(ctx, dial, network, addr)
	}
}

func (c *conns) dial(ctx context.Context, dial dialFunc, network, addr string) (net.Conn, error) {
	if c.refuses() {
		return nil, errNotDialed
	}
	conn, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	t := &trackedConn{Conn: conn, of: c, since: time.Now()}
	if !c.add(t) {
		_ = conn.Close() // it was cut off during the dial
		return nil, errNotDialed
	}
	return t, nil
}

func (c *conns) refuses() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

func (c *conns) add(t *trackedConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused {
		return false
	}
	if c.open == nil {
		c.open = make(map[*trackedConn]struct{})
	}
	c.open[t] = struct{}{}
	return true
}

func (c *conns) remove(t *trackedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, t)
}

// state returns how many are open, how many of them were written to since the last call, and when the oldest was made.
func (c *conns) state() (open, used int, oldest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t := range c.open {
		if oldest.IsZero() || t.since.Before(oldest) {
			oldest = t.since
		}
		if t.used.Swap(false) {
			used++
		}
	}
	return len(c.open), used, oldest
}

// cut refuses new connections and returns the open ones, to be closed. What becomes of reads and
// writes from here on is ErrDrained.
func (c *conns) cut() (open []net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
	for t := range c.open {
		t.cut.Store(true)
		open = append(open, t)
	}
	return open
}

func (c *conns) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = false
}

// trackedConn is a connection that says why it was closed, if it was cut.
type trackedConn struct {
	net.Conn
	of    *conns
	since time.Time
	used  atomic.Bool
	cut   atomic.Bool
}

func (t *trackedConn) why(err error) error {
	if err != nil && t.cut.Load() {
		return ErrDrained
	}
	return err
}

// Read reads from the connection.
func (t *trackedConn) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	return n, t.why(err)
}

// Write writes to the connection.
func (t *trackedConn) Write(p []byte) (int, error) {
	if !t.used.Load() {
		t.used.Store(true)
	}
	n, err := t.Conn.Write(p)
	return n, t.why(err)
}

// ReadFrom is what copies files in the kernel, if the connection can do that.
func (t *trackedConn) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(t.Conn, r)
	return n, t.why(err)
}

// CloseWrite closes the sending side, if the connection can do that: one that was upgraded may need it.
func (t *trackedConn) CloseWrite() error {
	if c, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}

// NetConn returns the connection itself, for whoever got it from net/http/httptrace.
func (t *trackedConn) NetConn() net.Conn { return t.Conn }

// Close closes the connection.
func (t *trackedConn) Close() error {
	t.of.remove(t)
	return t.Conn.Close()
}
