package httpclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// What a server says that it has not looked at is sent again whatever it is, if all of it can be; what it may have looked at only
// if that does no harm.
func TestStreamsThatWereNotProcessedAreSentAgain(t *testing.T) {
	unread := func(text string) io.Reader { return io.MultiReader(strings.NewReader(text)) } // no GetBody
	refuse := func(f *frames, fr frame) bool { f.reset(fr.stream, refusedStream); return true }
	leave := func(f *frames, fr frame) bool { f.goAway(0); return false }
	looked := func(f *frames, fr frame) bool { f.goAway(fr.stream); return false }
	for _, c := range []struct {
		name, method string
		body         io.Reader
		first        func(*frames, frame) bool // what the first request comes to
		answered     bool
		unreached    bool // of one that was not answered
	}{
		{"refused GET", "GET", nil, refuse, true, false},
		{"refused POST", "POST", strings.NewReader("text"), refuse, true, false},
		{"refused POST with a body that is gone", "POST", unread("text"), refuse, false, true},
		{"GET beyond GOAWAY", "GET", nil, leave, true, false},
		{"POST beyond GOAWAY", "POST", strings.NewReader("text"), leave, true, false},
		{"POST beyond GOAWAY with a body that is gone", "POST", unread("text"), leave, false, true},
		{"GET within GOAWAY", "GET", nil, looked, true, false},
		{"POST within GOAWAY", "POST", strings.NewReader("text"), looked, false, false},
	} {
		var spoiled, served, text atomic.Int64
		serve := func(f *frames, fr frame) bool {
			if fr.kind == frameData {
				text.Add(int64(len(fr.payload)))
			}
			if fr.kind != frameReset && fr.flags&endStream != 0 {
				served.Add(1)
			}
			return serveFrames(f, fr)
		}
		spoil := func(f *frames, fr frame) bool {
			switch {
			case spoiled.Load() > 1:
				return serve(f, fr)
			case fr.kind == frameHeaders && fr.flags&endStream != 0, fr.kind == frameData && fr.flags&endStream != 0:
				spoiled.Add(2)
				return c.first(f, fr)
			}
			return true
		}
		// Whoever is first spoils it, and never again.
		tr := &Transport{Resolver: Static{{Addr: framePeer(t, spoil)}, {Addr: framePeer(t, spoil)}}, Base: baseFor("HTTP/2"),
			Config: evenkeel.Config{Policy: picker.RoundRobin{}}}
		resp, err := client(t, tr).Do(request(t, c.method, svc, c.body))
		if err == nil {
			resp.Body.Close()
		}
		want := int64(0)
		if c.answered {
			want = 1
		}
		if (err == nil) != c.answered || served.Load() != want || errors.Is(err, ErrUnreached) != c.unreached {
			t.Errorf("%s: %v, served %d times", c.name, err, served.Load())
		}
		if c.answered && c.body != nil && text.Load() != 4 {
			t.Errorf("%s: %d bytes of its body came", c.name, text.Load())
		}
		if n := inFlight(tr); n != 0 {
			t.Errorf("%s: %d in flight", c.name, n)
		}
	}
}

// wire is a connection that can go dead without a word, as one whose peer has lost its power.
type wire struct {
	net.Conn
	dead   *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if w.dead.Load() {
		<-w.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	if w.dead.Load() {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// pipes is a listener whose connections are made by dial.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// With the defaults a request on a dead HTTP/2 connection has its answer from another endpoint within 15 s, and those after
// it wait for no more than a dial.
func TestDeadHTTP2ConnectionIsFoundWithinFifteenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		server := &http.Server{Handler: http.HandlerFunc(hello), Protocols: clearText(true)}
		go func() { _ = server.Serve(l) }()
		var dead atomic.Bool
		base := baseFor("HTTP/2")
		base.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) {
			if addr != "10.0.0.1:80" {
				return l.dial(), nil
			}
			if dead.Load() { // and nobody answers its dials: as the default dialer
				ctx, cancel := context.WithTimeout(ctx, dialTimeout)
				defer cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &wire{Conn: l.dial(), dead: &dead, closed: make(chan struct{})}, nil
		}
		tr := &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}}, Base: base, Config: evenkeel.Config{Policy: picker.RoundRobin{}}}
		for range 4 {
			roundTripAll(t, tr)
		}
		dead.Store(true)
		var slowest, later time.Duration
		for range 10 {
			from := time.Now()
			roundTripAll(t, tr)
			if slowest < 4*time.Second {
				slowest = time.Since(from)
			} else {
				later = max(later, time.Since(from))
			}
		}
		const moment = 100 * time.Millisecond
		if slowest < 5*time.Second || slowest > 15*time.Second+moment || later > dialTimeout+moment {
			t.Errorf("the dead connection was found after %v; later requests took up to %v", slowest, later)
		}
		tr.Close()
		_ = server.Close()
	})
}
