package httpclient

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

func TestTrap1ResponseBelongsToTheCallersRequest(t *testing.T) {
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }, plain)
	tr := &Transport{Resolver: static(s)}
	defer tr.Close()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 50 {
				req := request(t, "POST", fmt.Sprintf("%s%d/%d", svc, i, k), strings.NewReader("x"))
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.Request != req || req.URL.Host != "svc.test" || req.Host != "svc.test" {
					t.Errorf("the request became %v", resp.Request)
				}
			}
		})
	}
	wg.Wait()
}

func TestTrap2HostIsTheURLsOnRedirectsToo(t *testing.T) {
	var mu sync.Mutex
	var hosts []string
	h := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hosts = append(hosts, r.Host)
		mu.Unlock()
		if r.URL.Path == "/a" {
			w.Header().Set("Location", "/b")
			w.WriteHeader(http.StatusFound)
		}
	}
	tr := &Transport{Resolver: static(serve(t, 3, h, plain))}
	c := client(t, tr)
	for _, host := range []string{"svc.test", "svc.test:8080", "[fd00::1]:8080", "Mixed.Test"} {
		hosts = nil
		resp, _ := fetch(t, c, "http://"+host+"/a")
		if fmt.Sprint(hosts) != fmt.Sprint([]string{host, host}) {
			t.Errorf("%s: servers saw %v", host, hosts)
		}
		if resp.Request.URL.Host != host {
			t.Errorf("%s: the last request was for %s", host, resp.Request.URL)
		}
	}
	resp, err := tr.RoundTrip(request(t, "GET", "http://svc.test/a", nil))
	if err != nil {
		t.Fatal(err)
	}
	if to, err := resp.Location(); err != nil || to.String() != "http://svc.test/b" {
		t.Errorf("Location is %v, %v", to, err)
	}
}

func TestTrap2ServerNameAndCertificateAreTheURLs(t *testing.T) {
	names := make(chan string, 1)
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.TLS.ServerName) }, func(s *httptest.Server) {
		s.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			select {
			case names <- hello.ServerName:
			default:
			}
			return nil, nil
		}}
		s.StartTLS()
	})
	base := s[0].trusting()
	base.TLSClientConfig.RootCAs.AddCert(s[1].Certificate())
	c := client(t, &Transport{Resolver: static(s), Base: base})
	if _, name := fetch(t, c, "https://example.com/"); name != "example.com" || <-names != "example.com" {
		t.Errorf("server name is %q", name)
	}
	// The certificate is not for the endpoint's address nor for another name.
	if _, err := c.Do(request(t, "GET", "https://other.test/", nil)); err == nil {
		t.Error("a certificate for example.com was good for other.test")
	}
}

func TestCookiesAreTheURLHosts(t *testing.T) {
	s := serve(t, 3, func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("seen"); err == nil {
			_, _ = io.WriteString(w, "again")
		}
		http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1"})
	}, plain)
	c := client(t, &Transport{Resolver: static(s)})
	c.Jar, _ = cookiejar.New(nil)
	fetch(t, c, svc)
	for range 6 {
		if _, body := fetch(t, c, svc); body != "again" {
			t.Error("the cookie did not come back")
		}
	}
}

// echoUpgrade answers an upgrade and echoes lines.
func echoUpgrade(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "echo" {
		http.Error(w, "want Upgrade: echo", http.StatusBadRequest)
		return
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "echo")
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.Copy(conn, rw)
}

// upgrade asks for the echo protocol and says something in it.
func upgrade(t *testing.T, rt http.RoundTripper, url string) (conn io.ReadWriteCloser) {
	t.Helper()
	req := request(t, "GET", url, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		t.Fatalf("status %d, body %T, want 101 and a body to write to", resp.StatusCode, resp.Body)
	}
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Fatalf("%q, %v, want the echo", line, err)
	}
	return conn
}

func TestTrap5UpgradedConnectionCanBeWrittenAndCountsUntilItCloses(t *testing.T) {
	tr := &Transport{Resolver: static(serve(t, 1, echoUpgrade, plain))}
	defer tr.Close()
	conn := upgrade(t, tr, svc)
	if n := inFlight(tr); n != 1 {
		t.Errorf("%d in flight with the connection open, want 1", n)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("%v after the sending side was closed", err)
	}
	if n := inFlight(tr); n != 0 {
		t.Errorf("%d in flight after the end of the connection", n)
	}
	conn.Close()
	e := one(t, tr).Endpoints[0]
	if e.InFlight != 0 || e.Success != 1 || e.Latency <= 0 {
		t.Errorf("in flight %d, success %v, latency %v", e.InFlight, e.Success, e.Latency)
	}
}

func TestTrap5UpgradeGoesThroughAReverseProxy(t *testing.T) {
	tr := &Transport{Resolver: static(serve(t, 1, echoUpgrade, plain))}
	proxy := &httputil.ReverseProxy{Transport: tr, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(parse(t, svc)) }}
	front := serve(t, 1, proxy.ServeHTTP, plain)[0]
	plainTransport := &http.Transport{}
	upgrade(t, plainTransport, front.URL).Close()
	eventually(t, "nothing is in flight", func() bool { return inFlight(tr) == 0 })
	if s := one(t, tr).Endpoints[0].Success; s != 1 {
		t.Errorf("success is %v: the end of the tunnel counted as a failure", s)
	}
	plainTransport.CloseIdleConnections()
	tr.Close()
}

func TestTrap6HTTP2AnswersWithoutABodyEndAtTheirHeaders(t *testing.T) {
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.WriteHeader(304)
		case "/empty":
			w.Header().Set("Content-Length", "0")
		}
	}, withHTTP2)
	tr := &Transport{Resolver: static(s), Base: s[0].trusting()}
	defer tr.Close()
	for _, c := range []struct{ method, path string }{
		{"GET", "204"}, {"GET", "304"}, {"GET", "empty"}, {"GET", "unsaid"}, {"HEAD", "unsaid"},
	} {
		resp, err := tr.RoundTrip(request(t, c.method, "https://example.com/"+c.path, nil))
		if err != nil {
			t.Fatal(err)
		}
		if resp.ProtoMajor != 2 {
			t.Fatalf("HTTP/%d, want 2", resp.ProtoMajor)
		}
		if n := inFlight(tr); n != 0 { // the body is left open on purpose
			t.Errorf("%s %s: %d in flight", c.method, c.path, n)
		}
	}
}

func TestTrap7TrailersReachTheCallerDeclaredOrNot(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Declared")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Declared", "1")
		w.Header().Set(http.TrailerPrefix+"X-Other", "2")
	}
	for _, c := range []struct {
		url   string
		start func(*httptest.Server)
	}{{svc, plain}, {"https://example.com/", withHTTP2}} {
		s := serve(t, 1, h, c.start)
		cl := client(t, &Transport{Resolver: static(s), Base: s[0].trusting()})
		resp, _ := fetch(t, cl, c.url)
		if resp.Trailer.Get("X-Declared") != "1" || resp.Trailer.Get("X-Other") != "2" {
			t.Errorf("%s: trailers are %v", resp.Proto, resp.Trailer)
		}
	}
}

func TestTrap14ConnectionsAreReused(t *testing.T) {
	s := serve(t, 8, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }, plain)
	c := client(t, &Transport{Resolver: static(s)})
	const requests, callers = 8000, 16
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range requests / callers {
				resp, err := c.Get(svc)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	var conns int64
	for _, s := range s {
		conns += s.conns.Load()
	}
	if per := float64(conns) / requests; per >= 0.02 {
		t.Errorf("%v new connections a request, want below 0.02", per)
	}
}

func TestTrap16OfTwoEndpointsTheOneWithLessInFlightIsTaken(t *testing.T) {
	config := evenkeel.Config{Policy: picker.P2C{Signal: picker.InFlight}}
	tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}}, Config: config}, stubAnswer)
	for range 100 {
		first, err := tr.RoundTrip(request(t, "GET", svc, nil))
		if err != nil {
			t.Fatal(err)
		}
		second, err := tr.RoundTrip(request(t, "GET", svc, nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range one(t, tr).Endpoints {
			if e.InFlight != 1 {
				t.Fatalf("%s has %d in flight, want 1 on each", e.ID, e.InFlight)
			}
		}
		first.Body.Close()
		second.Body.Close()
	}
}

func TestTraceSeesTheServiceAndTheRealAddress(t *testing.T) {
	s := serve(t, 1, func(http.ResponseWriter, *http.Request) {}, plain)
	tr := &Transport{Resolver: static(s)}
	defer tr.Close()
	var asked, connected string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GetConn:      func(hostPort string) { asked = hostPort },
		ConnectStart: func(_, addr string) { connected = addr },
	})
	if _, err := tr.RoundTrip(request(t, "GET", svc, nil).WithContext(ctx)); err != nil {
		t.Fatal(err)
	}
	if asked != "svc.test:80" || connected != s[0].addr {
		t.Errorf("the trace saw %q and %q, want svc.test:80 and %s", asked, connected, s[0].addr)
	}
}

func TestDialerOfBaseGetsTheEndpointsAddress(t *testing.T) {
	s := serve(t, 1, func(http.ResponseWriter, *http.Request) {}, plain)
	var dialed string
	base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialed = network + " " + addr
		return (&net.Dialer{}).DialContext(ctx, network, s[0].addr)
	}}
	c := client(t, &Transport{Resolver: Static{{Addr: "10.0.0.1:99"}}, Base: base})
	fetch(t, c, svc)
	if dialed != "tcp 10.0.0.1:99" {
		t.Errorf("dialed %q", dialed)
	}
}
