package httpclient

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// A connection that was upgraded can do with a limit what it can without, until it is cut.
func TestUpgradedConnectionIsWholeAndCutOff(t *testing.T) {
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/up" {
			return
		}
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
		_, _ = io.WriteString(conn, "half closed\n")
		_, _ = io.Copy(io.Discard, rw)
		<-r.Context().Done()
	}, plain)
	r := &script{first: addrs(s[0].addr), started: make(chan struct{}, 1)}
	tr := &Transport{Resolver: r, Config: evenkeel.Config{DrainTimeout: 50 * time.Millisecond}}
	client(t, tr)
	up := func() (io.ReadWriteCloser, *bufio.Reader) {
		req := request(t, http.MethodGet, svc+"up", nil)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		conn := resp.Body.(io.ReadWriteCloser)
		t.Cleanup(func() { _ = conn.Close() })
		return conn, bufio.NewReader(conn)
	}
	conn, lines := up()
	<-r.started
	if _, err := io.Copy(conn, strings.NewReader("hello\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); line != "hello\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); line != "half closed\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	conn.Close()
	_, lines = up()
	if err := r.sink().Update(addrs("127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); line != "" || !errors.Is(err, ErrDrained) {
		t.Errorf("%q, %v, want to be cut off", line, err)
	}
}

func TestTrackedConnectionIsForgottenWhenItCloses(t *testing.T) {
	var c conns
	dial := c.tracked(func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		return here, nil
	})
	conn, err := dial(t.Context(), "tcp", "")
	if err != nil || len(c.open) != 1 {
		t.Fatalf("%v, %d open", err, len(c.open))
	}
	tracked := conn.(*trackedConn)
	if err := tracked.CloseWrite(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("%v from half of a pipe, which cannot be closed", err)
	}
	if _, ok := tracked.NetConn().(*trackedConn); ok {
		t.Error("NetConn is not the connection itself")
	}
	if conn.Close(); len(c.open) != 0 {
		t.Errorf("%d are open after Close", len(c.open))
	}
	if _, err := conn.Read(nil); errors.Is(err, ErrDrained) {
		t.Errorf("%v of a connection that was not cut", err)
	}
	cut, err := dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range c.cut() {
		o.Close()
	}
	for what, f := range map[string]func() error{
		"Read":     func() error { _, err := cut.Read(make([]byte, 1)); return err },
		"Write":    func() error { _, err := cut.Write([]byte("x")); return err },
		"ReadFrom": func() error { _, err := io.Copy(cut, strings.NewReader("x")); return err },
		"a dial":   func() error { _, err := dial(t.Context(), "tcp", ""); return err },
	} {
		if err := f(); !errors.Is(err, ErrDrained) {
			t.Errorf("%s: %v, want %v", what, err, ErrDrained)
		}
	}
	c.restore()
	if _, err := dial(t.Context(), "tcp", ""); err != nil {
		t.Error(err)
	}
}
