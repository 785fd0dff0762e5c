package probe

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// dialer connects to endpoints, and knows which connections each has: they are closed when it leaves,
// and not when they have been idle for long enough.
type dialer struct {
	// Set at construction.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	port int // in place of the endpoint's; 0: that

	mu     sync.Mutex
	closed bool
	conns  map[string]map[*conn]bool // by the endpoint's address
}

// conn is a connection that its dialer knows of.
type conn struct {
	net.Conn
	from *dialer
	addr string
}

// Close closes the connection.
func (c *conn) Close() error {
	c.from.forget(c)
	return c.Conn.Close()
}

// dialTo connects to an endpoint.
func (d *dialer) dialTo(ctx context.Context, addr string) (*conn, error) {
	to := addr
	if d.port != 0 {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		to = net.JoinHostPort(host, strconv.Itoa(d.port))
	}
	inner, err := d.dial(ctx, "tcp", to)
	if err == nil && inner == nil {
		err = errNoConn
	}
	if err != nil {
		return nil, err
	}
	c := &conn{inner, d, addr}
	d.mu.Lock()
	closed := d.closed
	if d.conns[addr] == nil {
		d.conns[addr] = map[*conn]bool{}
	}
	d.conns[addr][c] = true
	d.mu.Unlock()
	if closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

func (d *dialer) forget(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns[c.addr], c)
	if len(d.conns[c.addr]) == 0 {
		delete(d.conns, c.addr)
	}
}

// left closes an endpoint's connections.
func (d *dialer) left(addr string) {
	d.mu.Lock()
	list := make([]*conn, 0, len(d.conns[addr]))
	for c := range d.conns[addr] {
		list = append(list, c)
	}
	d.mu.Unlock()
	for _, c := range list {
		_ = c.Close() // nobody waits for it
	}
}

// close closes all connections, those that are still being made when they are.
func (d *dialer) close() {
	d.mu.Lock()
	d.closed = true
	addrs := make([]string, 0, len(d.conns))
	for a := range d.conns {
		addrs = append(addrs, a)
	}
	d.mu.Unlock()
	for _, a := range addrs {
		d.left(a)
	}
}

// call is one check, as the context of its request has it. net/http goes on dialing when the request
// has ended, and would keep what comes of it; a check that is over is to leave nothing behind.
type call struct {
	ctx  context.Context
	addr string
}

type callKey struct{}

// calling returns ctx with the call in it.
func calling(ctx context.Context, addr string) context.Context {
	return context.WithValue(ctx, callKey{}, call{ctx, addr})
}

// callOf returns the call that ctx is of.
func callOf(ctx context.Context, addr string) call {
	if c, ok := ctx.Value(callKey{}).(call); ok {
		return c
	}
	return call{ctx, addr} // of somebody else's request
}

// dialCall is a DialContext.
func (d *dialer) dialCall(ctx context.Context, _, addr string) (net.Conn, error) {
	c := callOf(ctx, addr)
	inner, err := d.dialTo(c.ctx, c.addr)
	if err != nil {
		return nil, err // not a nil conn in an interface
	}
	return inner, nil
}

// dialCallTLS is a DialTLSContext.
func (d *dialer) dialCallTLS(config *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		c := callOf(ctx, addr)
		inner, err := d.dialTo(c.ctx, c.addr)
		if err != nil {
			return nil, err
		}
		own := config
		if own.ServerName == "" { // there is no target's name
			own = config.Clone()
			own.ServerName = hostname(c.addr)
		}
		secure := tls.Client(inner, own)
		if err := secure.HandshakeContext(c.ctx); err != nil {
			_ = inner.Close() // the handshake's error says more
			return nil, err
		}
		return secure, nil
	}
}

// transport returns an http.Transport over d; config is for TLS.
func (d *dialer) transport(protocols *http.Protocols, config *tls.Config) *http.Transport {
	config.NextProtos = nil
	if protocols.HTTP2() {
		config.NextProtos = append(config.NextProtos, "h2")
	}
	if protocols.HTTP1() {
		config.NextProtos = append(config.NextProtos, "http/1.1")
	}
	return &http.Transport{
		Protocols:      protocols,
		DialContext:    d.dialCall,
		DialTLSContext: d.dialCallTLS(config),
		// An answer is read up to a bound, compressed or not.
		DisableCompression: true,
		// As long as a check each minute needs it, as without requests.
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
}
