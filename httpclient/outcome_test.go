package httpclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/evenkeel/evenkeel"
)

func TestTrap10ContextDecidesWhetherTheCallerLeft(t *testing.T) {
	own := errors.New("my own cause")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(own)
	late, leave := context.WithDeadline(t.Context(), time.Now().Add(time.Nanosecond))
	leave() // after the deadline, and maybe before the context has seen that
	expired, stop := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), own)
	defer stop()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want evenkeel.Outcome
	}{
		{"cancelled, the cause is the error", canceled, own, evenkeel.Canceled},
		{"cancelled while refused", canceled, &unreachedError{io.EOF}, evenkeel.Canceled},
		{"deadline, the cause is the error", expired, own, evenkeel.Timeout},
		{"cancelled after the deadline", late, context.Canceled, evenkeel.Timeout},
		{"the error says cancelled, the caller is there", t.Context(), context.Canceled, evenkeel.Failure},
		{"the error says deadline, the caller is there", t.Context(), context.DeadlineExceeded, evenkeel.Timeout},
	} {
		req := request(t, "GET", svc, nil).WithContext(c.ctx)
		if got := outcomeOfError(req, c.err); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The time limit of an http.Client is the endpoint's timeout, whichever of its two forms
// is seen first.
func TestTrap20TimeoutOfTheClientIsATimeout(t *testing.T) {
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}, plain)
	for _, path := range []string{"headers", "body"} {
		for range 20 {
			tr := &Transport{Resolver: static(s)}
			resp, err := (&http.Client{Transport: tr, Timeout: 5 * time.Millisecond}).Get(svc + path)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Fatal("no timeout")
			}
			e := one(t, tr).Endpoints
			if len(e) > 0 && e[0].Picks > 0 && (e[0].Success == 1 || e[0].Latency == 0 || e[0].InFlight != 0) {
				t.Errorf("%s: success %v, latency %v, in flight %d after %v", path, e[0].Success, e[0].Latency, e[0].InFlight, err)
			}
			tr.Close()
		}
	}
}

func TestCancellationCauseIsNoFailureOfTheEndpoint(t *testing.T) {
	started := make(chan struct{}, 1)
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-r.Context().Done()
	}, plain)
	tr := &Transport{Resolver: static(s)}
	c := client(t, tr)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-started; cancel(io.ErrUnexpectedEOF) }()
	if _, err := c.Do(request(t, "GET", svc, nil).WithContext(ctx)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("%v, want the cause", err)
	}
	if e := one(t, tr).Endpoints[0]; e.Success != 1 || e.InFlight != 0 {
		t.Errorf("success %v, in flight %d, want 1, 0", e.Success, e.InFlight)
	}
}

// outcomeOver sends req to addr as it is, without a Transport, and returns what the
// error of that is taken for.
func outcomeOver(t *testing.T, addr string, base *http.Transport, req *http.Request) (evenkeel.Outcome, error) {
	t.Helper()
	tmpl, err := template(base)
	if err != nil {
		t.Fatal(err)
	}
	l := fixedDial(tmpl, addr)
	defer l.CloseIdleConnections()
	resp, err := l.RoundTrip(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil {
			t.Fatalf("%s: no error", addr)
		}
		return outcomeOfAnswerError(req, err), err
	}
	return outcomeOfError(req, err), err
}

// peer accepts connections and does f to each.
func peer(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			f(conn)
			conn.Close()
		}
	}()
	return ln.Addr().String()
}

// readRequest reads until the end of the headers.
func readRequest(conn net.Conn) {
	var seen []byte
	for buf := make([]byte, 4096); !strings.Contains(string(seen), "\r\n\r\n"); {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		seen = append(seen, buf[:n]...)
	}
}

func TestErrorsOfRealConnectionsAreTold(t *testing.T) {
	refusing := peer(t, func(net.Conn) {})
	says := func(text string) string {
		return peer(t, func(conn net.Conn) { readRequest(conn); _, _ = io.WriteString(conn, text) })
	}
	reset := peer(t, func(conn net.Conn) { readRequest(conn); _ = conn.(*net.TCPConn).SetLinger(0) })
	silent := peer(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	for _, c := range []struct {
		name string
		addr string
		base *http.Transport
		url  string
		want evenkeel.Outcome
	}{
		{"refused", "127.0.0.1:1", // nobody listens there, and nobody will get it by chance
			nil, svc, evenkeel.Unreached},
		{"no dial in time", silent, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
		}}, svc, evenkeel.Unreached},
		{"dialer without a result", silent, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, nil
		}}, svc, evenkeel.Unreached},
		{"closed without an answer", refusing, nil, svc, evenkeel.Failure},
		{"reset", reset, nil, svc, evenkeel.Failure},
		{"no HTTP", says("SSH-2.0-x\r\n"), nil, svc, evenkeel.Failure},
		{"body cut", says("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), nil, svc, evenkeel.Failure},
		{"no headers in time", silent, &http.Transport{ResponseHeaderTimeout: time.Millisecond}, svc, evenkeel.Timeout},
		{"no TLS", says("HTTP/1.1 400 Bad\r\n\r\n"), nil, "https://svc.test/", evenkeel.Unreached},
		{"handshake closed", refusing, nil, "https://svc.test/", evenkeel.Failure}, // cannot be told from later
		{"no handshake in time", silent, &http.Transport{TLSHandshakeTimeout: time.Millisecond}, "https://svc.test/", evenkeel.Unreached},
	} {
		if c.name == "no TLS" {
			c.addr = peer(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad\r\n\r\n")
			})
		}
		if got, err := outcomeOver(t, c.addr, c.base, request(t, "GET", c.url, nil)); got != c.want {
			t.Errorf("%s: %v is %v, want %v", c.name, err, got, c.want)
		}
	}
}

func TestFailedHandshakesReachNobody(t *testing.T) {
	quiet := func(s *httptest.Server) {
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
		s.StartTLS()
	}
	s := serve(t, 1, func(http.ResponseWriter, *http.Request) {}, quiet)[0]
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for _, c := range []struct {
		name string
		tls  *tls.Config
	}{
		{"unknown authority", &tls.Config{}},
		{"another name", &tls.Config{RootCAs: roots, ServerName: "other.test"}},
		{"no common version", &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}},
	} {
		got, err := outcomeOver(t, s.addr, &http.Transport{TLSClientConfig: c.tls}, request(t, "GET", "https://svc.test/", nil))
		if got != evenkeel.Unreached {
			t.Errorf("%s: %v is %v, want unreached", c.name, err, got)
		}
	}
}

func TestFaultsOfTheRequestAreNotTheEndpoints(t *testing.T) {
	drain := func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	h1 := serve(t, 1, drain, plain)[0]
	h2 := serve(t, 1, drain, withHTTP2)[0]
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	for _, s := range []struct{ name, addr, url string }{
		{"HTTP/1.1", h1.addr, svc}, {"HTTP/2", h2.addr, "https://svc.test/"},
	} {
		for _, c := range []struct {
			name  string
			spoil func(*http.Request)
		}{
			{"header", func(r *http.Request) { r.Header["a b"] = []string{"c"} }},
			{"no header", func(r *http.Request) { r.Header = nil }},
			{"trailer", func(r *http.Request) { r.Trailer = http.Header{"a b": {"c"}} }},
			{"method", func(r *http.Request) { r.Method = "a b" }},
			{"body", func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(errors.New("disk"))) }},
			{"length without a body", func(r *http.Request) { r.ContentLength = 3; r.Body = nil }},
			{"body shorter than said", func(r *http.Request) { r.ContentLength = 3; r.Body = io.NopCloser(strings.NewReader("a")) }},
			{"body longer than said", func(r *http.Request) { r.ContentLength = 3; r.Body = io.NopCloser(strings.NewReader("abcd")) }},
		} {
			req := request(t, "POST", s.url, nil)
			c.spoil(req)
			tmpl, err := template(insecure)
			if err != nil {
				t.Fatal(err)
			}
			l := fixedDial(tmpl, s.addr)
			resp, err := l.RoundTrip(req)
			if err == nil {
				// HTTP/2 sends no length without a body, and both may answer before they
				// have seen how long the body is.
				resp.Body.Close()
			} else if got := outcomeOfError(req, err); got != evenkeel.Unknown {
				t.Errorf("%s, %s: %v is %v, want unknown", s.name, c.name, err, got)
			}
			l.CloseIdleConnections()
		}
	}
}

func TestHTTP2ResetIsTheEndpointsFailure(t *testing.T) {
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, withHTTP2)[0]
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	for _, body := range []string{"", "some"} {
		req := request(t, "POST", "https://svc.test/", strings.NewReader(body))
		if got, err := outcomeOver(t, s.addr, insecure, req); got != evenkeel.Failure {
			t.Errorf("body %q: %v is %v, want failure", body, err, got)
		}
	}
}
