package httpclient

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// hole passes connections on to a server, until it swallows all that comes, as a firewall does: nobody is told.
type hole struct {
	net.Listener
	to string

	mu     sync.Mutex
	shut   chan struct{} // closed when it swallows
	open   int           // connections of clients that are not closed
	copies sync.WaitGroup
}

func newHole(t *testing.T, to string) *hole {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{Listener: l, to: to, shut: make(chan struct{})}
	h.copies.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.copies.Go(func() { h.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		h.copies.Wait()
	})
	return h
}

func (h *hole) count(change int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open += change
	return h.open
}

// pass copies both ways. What arrives once it swallows is lost, and what the client closes is closed.
func (h *hole) pass(client net.Conn) {
	h.count(1)
	defer h.count(-1)
	server, err := net.Dial("tcp", h.to)
	if err != nil {
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { h.copy(server, client); _ = server.Close() })
	both.Go(func() { h.copy(client, server) })
	both.Wait()
	_ = client.Close()
}

func (h *hole) copy(to, from net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-h.shut:
		default:
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
}

// Bug 55: one of three hosts is behind a firewall that swallows packets. Traffic moves at once, and the dead HTTP/2
// connection is found by its pings, not when TCP gives up. (The defaults find it within 15 s; here they are shorter.)
func TestBug55ADeadHTTP2ConnectionIsFoundAndItsHostLeftAlone(t *testing.T) {
	servers := serve(t, 3, hello, unencryptedHTTP2)
	hole := newHole(t, servers[0].addr)
	base := baseFor("HTTP/2")
	base.HTTP2 = &http.HTTP2Config{SendPingTimeout: 300 * time.Millisecond, PingTimeout: 300 * time.Millisecond}
	tr := &Transport{Resolver: Static{{Addr: hole.Addr().String()}, {Addr: servers[1].addr}, {Addr: servers[2].addr}}, Base: base}
	defer tr.Close()
	client := &http.Client{Transport: tr}
	get := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	for range 300 {
		if err := get(); err != nil {
			t.Fatal(err)
		}
	}
	if hole.count(0) == 0 {
		t.Fatal("nobody has connected through the firewall")
	}
	close(hole.shut)
	lost := 0
	for range 2000 {
		if get() != nil {
			lost++
		}
	}
	if lost > 10 {
		t.Errorf("%d of 2,000 requests were lost, want a few at first", lost)
	}
	for deadline := time.Now().Add(15 * time.Second); hole.count(0) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the dead connection is still open")
		}
		_ = get() // time passes
	}
}
