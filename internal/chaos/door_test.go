//go:build unix

package chaos

import (
	"net"
	"sync"
	"time"
)

// listener knows its connections, to cut them.
type listener struct {
	net.Listener
	mu    sync.Mutex
	conns map[string]*net.TCPConn // by the client's address
}

func listen(addr string) (*listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, conns: map[string]*net.TCPConn{}}, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c.RemoteAddr().String()] = c.(*net.TCPConn)
	return &conn{Conn: c, of: l}, nil
}

// conn is a connection that its listener forgets when it is closed.
type conn struct {
	net.Conn
	of *listener
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.RemoteAddr().String())
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// reset cuts a client's connection so that it gets a TCP reset.
func (l *listener) reset(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.conns[client]; c != nil {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// resetAll cuts all connections.
func (l *listener) resetAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// door is one port of a server: a protocol is spoken there, or nothing, or it is shut. It is used
// by one goroutine.
type door struct {
	addr string
	// speak serves a listener, until the function that it returns is called: then clients have so
	// much time to leave, of which they are told if there is any.
	speak func(*listener) (stop func(time.Duration))
	shut  func(time.Duration) // nil while it is shut
}

// open lets the protocol be spoken.
func (d *door) open() error { return d.with(d.speak) }

// mute accepts connections, and reads and says nothing.
func (d *door) mute() error {
	return d.with(func(l *listener) func(time.Duration) {
		go func() {
			for {
				if _, err := l.Accept(); err != nil {
					return
				}
			}
		}()
		return func(time.Duration) {
			_ = l.Close()
			l.resetAll()
		}
	})
}

func (d *door) with(speak func(*listener) func(time.Duration)) error {
	d.close(0)
	l, err := listen(d.addr)
	if err != nil {
		return err
	}
	d.shut = speak(l)
	return nil
}

// close refuses connections from now on, and cuts those that there still are after a while.
func (d *door) close(wait time.Duration) {
	if d.shut != nil {
		d.shut(wait)
		d.shut = nil
	}
}
