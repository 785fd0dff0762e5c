package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// goaways listens, answers each HTTP/2 connection with SETTINGS and a GOAWAY that no stream is below, and counts them.
func goaways(t *testing.T, conf *tls.Config) (addr string, conns *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = new(atomic.Int64)
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			wg.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Second))
				if conf != nil {
					conn = tls.Server(conn, conf)
				}
				settings, goaway := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
				_, _ = conn.Write(append(settings, goaway...))
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	return l.Addr().String(), conns
}

// A server that ends each HTTP/2 connection with a GOAWAY before it serves anything has net/http dial it in a loop, without a pause
// and for as long as the request's context allows. A try ends before that, and the request goes elsewhere.
func TestConnectionsThatServeNothingAreNoEndlessLoop(t *testing.T) {
	for _, name := range []string{"HTTP/2", "h2c"} {
		good := serve(t, 1, hello, withHTTP2)
		url, conf := "https://example.com/", (*tls.Config)(nil)
		if name == "h2c" {
			good = serve(t, 1, hello, unencryptedHTTP2)
			url = svc
		} else {
			conf = good[0].TLS.Clone()
			conf.NextProtos = []string{"h2"}
		}
		base := trustingAll(name, good)
		bad, conns := goaways(t, conf)
		alone := &Transport{Resolver: Static{{Addr: bad}}, Base: base}
		t.Cleanup(alone.Close)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		req := request(t, "POST", url, nil).WithContext(ctx)
		_, err := alone.RoundTrip(req)
		cancel()
		if !errors.Is(err, ErrUnreached) || errors.Is(err, context.DeadlineExceeded) || conns.Load() > 3*loopMost+3 {
			t.Errorf("%s: one endpoint: %v after %d connections", name, err, conns.Load())
		}
		two := &Transport{Resolver: Static{{Addr: bad}, {Addr: good[0].addr}}, Base: base, Config: evenkeel.Config{Policy: picker.RoundRobin{}}}
		c := client(t, two)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, body := fetch(t, c, url); body == "" {
					t.Error("no answer")
				}
			})
		}
		wg.Wait()
	}
}

// Many requests at once have a connection each, before there is an answer to any of them.
func TestManyFirstConnectionsAreNoLoop(t *testing.T) {
	const n = 100
	var all sync.WaitGroup
	all.Add(n)
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		all.Done()
		all.Wait()
		_, _ = io.WriteString(w, "x")
	}, plain)
	c := client(t, &Transport{Resolver: static(s), Retry: &RetryConfig{Disabled: true}})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { fetch(t, c, svc) })
	}
	wg.Wait()
}

// An endpoint that refused connections for long is connected to as soon as it does not.
func TestEndpointThatComesUpIsDialed(t *testing.T) {
	s := serve(t, 1, hello, plain)
	up := make(chan struct{})
	base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case <-up:
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		default:
			return nil, errors.New("down")
		}
	}}
	c := client(t, &Transport{Resolver: static(s), Base: base, Retry: &RetryConfig{Disabled: true}})
	for range 10 * loopMost {
		if _, err := c.Get(svc); err == nil || errors.Is(err, errLoop) {
			t.Fatalf("%v", err)
		}
	}
	close(up)
	fetch(t, c, svc)
}
