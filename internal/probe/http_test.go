package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

// site is a real server on loopback that counts its connections.
type site struct {
	*httptest.Server
	addr string
	made atomic.Int64
	open atomic.Int64
}

func serve(t *testing.T, start func(*httptest.Server), h http.HandlerFunc) *site {
	t.Helper()
	s := &site{Server: httptest.NewUnstartedServer(h)}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.made.Add(1)
			s.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.open.Add(-1)
		}
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s.Server)
	s.addr = s.Listener.Addr().String()
	t.Cleanup(s.Close)
	return s
}

// roots trusts the site's certificate, which is for example.com.
func (s *site) roots() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &tls.Config{RootCAs: pool}
}

// prober returns a prober that is closed with the test.
func prober(t *testing.T, c evenkeel.HealthConfig, o ProberOptions) Prober {
	t.Helper()
	p, err := NewProber(c, o)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := p.(closer); ok {
		t.Cleanup(c.Close)
	}
	return p
}

// check makes one check of at most a time that no test should reach, unless it is to.
func check(t *testing.T, p Prober, addr string) (health.Result, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return p.Probe(ctx, addr)
}

// hung makes one check that gets no answer.
func hung(t *testing.T, p Prober, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if r, detail := p.Probe(ctx, addr); r != health.Failed {
		t.Errorf("no answer is %v, %s", r, detail)
	}
}

// deaf returns the address of a listener that accepts, and never says a word.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// gone returns an address where nobody listens.
func gone(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func plain(s *httptest.Server)     { s.Start() }
func withTLS(s *httptest.Server)   { s.StartTLS() }
func withHTTP2(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }

func TestTCPPassesWhereAConnectionCanBeOpened(t *testing.T) {
	p := prober(t, evenkeel.HealthConfig{}, ProberOptions{})
	if r, detail := check(t, p, deaf(t)); r != health.Passed || detail != "connected" {
		t.Errorf("a listener: %v, %s", r, detail)
	}
	if r, detail := check(t, p, gone(t)); r != health.Failed || !strings.Contains(detail, "refused") {
		t.Errorf("no listener: %v, %s", r, detail)
	}
	hung(t, prober(t, evenkeel.HealthConfig{}, ProberOptions{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done() // as where packets are dropped
		return nil, ctx.Err()
	}}), "127.0.0.1:1")
	nothing := prober(t, evenkeel.HealthConfig{}, ProberOptions{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, nil }})
	if r, _ := check(t, nothing, "127.0.0.1:1"); r != health.Failed {
		t.Error("neither a connection nor an error has passed")
	}
	if r, detail := check(t, prober(t, evenkeel.HealthConfig{Port: 1}, ProberOptions{}), "no port"); r != health.Failed {
		t.Errorf("an address without a port: %v, %s", r, detail)
	}
}

func TestPortTakesThePlaceOfTheEndpoints(t *testing.T) {
	s := serve(t, plain, func(http.ResponseWriter, *http.Request) {})
	port := s.Listener.Addr().(*net.TCPAddr).Port
	for _, protocol := range []evenkeel.HealthProtocol{evenkeel.CheckTCP, evenkeel.CheckHTTP} {
		p := prober(t, evenkeel.HealthConfig{Protocol: protocol, Port: port}, ProberOptions{})
		if r, detail := check(t, p, "127.0.0.1:1"); r != health.Passed {
			t.Errorf("%v: %v, %s", protocol, r, detail)
		}
	}
}

func TestHTTPStatusDecides(t *testing.T) {
	var status atomic.Int64
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(status.Load()))
	})
	standard := prober(t, evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP}, ProberOptions{})
	ranges := prober(t, evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP,
		Expect: []evenkeel.StatusRange{{From: 200, To: 299}, {From: 302}, {From: 404, To: 404}}}, ProberOptions{})
	for code, want := range map[int][2]health.Result{
		200: {health.Passed, health.Passed}, 204: {health.Unexpected, health.Passed}, 299: {health.Unexpected, health.Passed},
		301: {health.Unexpected, health.Unexpected}, 302: {health.Unexpected, health.Passed}, 303: {health.Unexpected, health.Unexpected},
		404: {health.Unexpected, health.Passed}, 405: {health.Unexpected, health.Unexpected}, 503: {health.Unexpected, health.Unexpected},
	} {
		status.Store(int64(code))
		for i, p := range []Prober{standard, ranges} {
			if r, detail := check(t, p, s.addr); r != want[i] || !strings.HasPrefix(detail, "HTTP ") {
				t.Errorf("%d, prober %d: %v, %s", code, i, r, detail)
			}
		}
	}
}

func TestHTTPRequestIsAsConfigured(t *testing.T) {
	var got atomic.Pointer[http.Request]
	s := serve(t, plain, func(_ http.ResponseWriter, r *http.Request) { got.Store(r) })
	if r, detail := check(t, prober(t, evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP}, ProberOptions{Host: "orders.internal:8080"}), s.addr); r != health.Passed {
		t.Fatal(detail)
	}
	if r := got.Load(); r.Method != "GET" || r.RequestURI != "/" || r.Host != "orders.internal:8080" || r.UserAgent() != userAgent {
		t.Errorf("by default %s %s of %s by %s", r.Method, r.RequestURI, r.Host, r.UserAgent())
	}
	c := evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP, Path: "/health%20z;v=1?deep=1&x=%2F", Host: "checks.internal",
		Headers: []evenkeel.HeaderField{{Name: "x-check", Value: "1"}, {Name: "X-Check", Value: "2"}, {Name: "User-agent", Value: "us"}}}
	if r, detail := check(t, prober(t, c, ProberOptions{Host: "orders.internal"}), s.addr); r != health.Passed {
		t.Fatal(detail)
	}
	if r := got.Load(); r.RequestURI != c.Path || r.Host != "checks.internal" || strings.Join(r.Header["X-Check"], ",") != "1,2" || r.UserAgent() != "us" {
		t.Errorf("%s of %s by %s, %v", r.RequestURI, r.Host, r.UserAgent(), r.Header)
	}
}

// Whatever a valid configuration has for a path is what is sent.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"", "/", "/healthz", "//a/b", "/a b", "/%20?x=%2f", "/%zz", "*", "http://h/", `/"<>\^{}|`, "/?", "/a#b", "/é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		c := evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP, Path: path}
		if c.Validate() != nil {
			return
		}
		if path == "" {
			path = "/"
		}
		u, err := url.ParseRequestURI(path)
		if err != nil {
			t.Fatalf("%q is valid, and net/url says %v", path, err)
		}
		p := newHTTPProber(c, ProberOptions{}, &dialer{}, "")
		u.Scheme = "http"
		if p.url != *u {
			t.Errorf("%q is sent as %q", path, p.url.RequestURI())
		}
	})
}

func TestHTTPFailsWithoutAnAnswer(t *testing.T) {
	cut := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("half"))
	})
	silent := deaf(t)
	for _, protocol := range []evenkeel.HealthProtocol{evenkeel.CheckHTTP, evenkeel.CheckHTTPS, evenkeel.CheckGRPC} {
		p := prober(t, evenkeel.HealthConfig{Protocol: protocol}, ProberOptions{})
		hung(t, p, silent)
		if r, detail := check(t, p, gone(t)); r != health.Failed || !strings.Contains(detail, "refused") {
			t.Errorf("%v: refused: %v, %s", protocol, r, detail)
		}
	}
	hung(t, prober(t, evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC}, ProberOptions{TLS: true}), silent)
	p := prober(t, evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP}, ProberOptions{})
	if r, detail := check(t, p, cut.addr); r != health.Failed || !strings.Contains(detail, "HTTP 200, and the answer breaks off") {
		t.Errorf("an answer that breaks off: %v, %s", r, detail)
	}
}

func TestBug42ConnectionIsReused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		start func(*httptest.Server)
		size  int
		conns int64
	}{
		{"no body", plain, 0, 1}, {"60 kB", plain, 60_000, 1}, {"TLS", withTLS, 60_000, 1},
		{"300 kB over HTTP/2", withHTTP2, 300_000, 1},
		{"300 kB", plain, 300_000, 1},
		// Over HTTP/1 reading the rest would be the only way to keep the connection.
		{"600 kB", plain, 600_000, 20},
	} {
		body := bytes.Repeat([]byte("x"), tc.size)
		s := serve(t, tc.start, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
		c, o := evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP}, ProberOptions{}
		if s.TLS != nil {
			c.Protocol, o.TLSConfig, o.Host = evenkeel.CheckHTTPS, s.roots(), "example.com"
		}
		p := prober(t, c, o)
		for range 20 {
			if r, detail := check(t, p, s.addr); r != health.Passed {
				t.Fatalf("%s: %v, %s", tc.name, r, detail)
			}
		}
		if n := s.made.Load(); n != tc.conns {
			t.Errorf("%s: %d connections for 20 checks, want %d", tc.name, n, tc.conns)
		}
	}
}

func TestConnectionsOfWhoLeavesAreClosed(t *testing.T) {
	ok := func(http.ResponseWriter, *http.Request) {}
	a, b := serve(t, plain, ok), serve(t, plain, ok)
	p := prober(t, evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP}, ProberOptions{})
	check(t, p, a.addr)
	check(t, p, b.addr)
	p.(leaver).Left(a.addr)
	eventually(t, "the connection to who left closes", func() bool { return a.open.Load() == 0 })
	if b.open.Load() != 1 {
		t.Error("so does another")
	}
	p.(closer).Close()
	eventually(t, "the others close with the prober", func() bool { return b.open.Load() == 0 })
	if r, _ := check(t, p, b.addr); r != health.Failed {
		t.Error("a closed prober has connected")
	}
}

func TestHTTPSVerifiesTheTargetsName(t *testing.T) {
	for _, start := range []func(*httptest.Server){withTLS, withHTTP2} {
		s := serve(t, start, func(http.ResponseWriter, *http.Request) {})
		https := evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTPS}
		skip, other, own := https, https, https
		skip.SkipVerify = true
		other.Host = "orders.internal"
		own.Host = "example.com:8443"
		named := s.roots()
		named.ServerName = "example.com"
		for name, tc := range map[string]struct {
			c    evenkeel.HealthConfig
			o    ProberOptions
			want health.Result
		}{
			"its own name":                     {https, ProberOptions{Host: "example.com", TLSConfig: s.roots()}, health.Passed},
			"with a port":                      {https, ProberOptions{Host: "example.com:443", TLSConfig: s.roots()}, health.Passed},
			"an address that it has":           {https, ProberOptions{Host: s.addr, TLSConfig: s.roots()}, health.Passed},
			"no name but its address":          {https, ProberOptions{TLSConfig: s.roots()}, health.Passed},
			"another name":                     {https, ProberOptions{Host: "orders.internal", TLSConfig: s.roots()}, health.Failed},
			"nobody knows its CA":              {https, ProberOptions{Host: "example.com"}, health.Failed},
			"nobody asks":                      {skip, ProberOptions{Host: "orders.internal"}, health.Passed},
			"the name of the TLS config":       {https, ProberOptions{Host: "orders.internal", TLSConfig: named}, health.Passed},
			"a name for the checks alone":      {own, ProberOptions{Host: "orders.internal", TLSConfig: s.roots()}, health.Passed},
			"another name for the checks":      {other, ProberOptions{Host: "example.com", TLSConfig: named}, health.Failed},
			"HTTP where TLS is spoken (a 400)": {evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP}, ProberOptions{}, health.Unexpected},
		} {
			if r, detail := check(t, prober(t, tc.c, tc.o), s.addr); r != tc.want {
				t.Errorf("%s: %v, %s", name, r, detail)
			}
		}
		if named.NextProtos != nil || named.InsecureSkipVerify {
			t.Error("the caller's TLS config was changed")
		}
	}
}

func TestHostnames(t *testing.T) {
	for host, want := range map[string]string{"a": "a", "a:1": "a", "[::1]:1": "::1", "[::1]": "::1", "::1": "::1", "": ""} {
		if got := hostname(host); got != want {
			t.Errorf("hostname(%q) is %q", host, got)
		}
	}
}

func TestProberRefusesWhatCannotBe(t *testing.T) {
	if p, err := NewProber(evenkeel.HealthConfig{Port: -1}, ProberOptions{}); err == nil || p != nil {
		t.Errorf("NewProber: %v, %v", p, err)
	}
}

// net/http lets a dial go on when its request is over; a check that is over leaves nothing behind.
func TestCheckThatIsOverLeavesNoDialBehind(t *testing.T) {
	silent := deaf(t)
	for _, tc := range []struct {
		protocol evenkeel.HealthProtocol
		tls      bool
	}{{evenkeel.CheckHTTP, false}, {evenkeel.CheckHTTPS, true}, {evenkeel.CheckGRPC, false}, {evenkeel.CheckGRPC, true}} {
		var dials, ended atomic.Int64
		p := prober(t, evenkeel.HealthConfig{Protocol: tc.protocol}, ProberOptions{TLS: tc.tls, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials.Add(1)
			<-ctx.Done()
			ended.Add(1)
			return nil, ctx.Err()
		}})
		hung(t, p, silent)
		eventually(t, "the dial ends", func() bool { return dials.Load() > 0 && ended.Load() == dials.Load() })
	}
	p := prober(t, evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTPS}, ProberOptions{}).(*httpProber)
	hung(t, p, silent)
	eventually(t, "the handshake ends", func() bool {
		p.dialer.mu.Lock()
		defer p.dialer.mu.Unlock()
		return len(p.dialer.conns) == 0
	})
}

// eventually waits for what other goroutines are about to do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
