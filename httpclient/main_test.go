package httpclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leafFunc is a leaf without connections.
type leafFunc func(*http.Request) (*http.Response, error)

func (f leafFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
func (f leafFunc) CloseIdleConnections()                               {}

// answer is what a stub of a server says.
func answer(req *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Request: req,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// stubbed returns a Transport whose endpoints are served by f, and closes it with the
// test.
func stubbed(t testing.TB, tr *Transport, f func(addr string, req *http.Request) (*http.Response, error)) *Transport {
	t.Helper()
	tr.newLeaf = func(_ Target, addr string) leaf {
		return leafFunc(func(req *http.Request) (*http.Response, error) { return f(addr, req) })
	}
	t.Cleanup(tr.Close)
	return tr
}

// request returns a request for url, which must be valid.
func request(t testing.TB, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// script is a resolver that says what the test tells it to. Its zero value says
// nothing.
type script struct {
	mu      sync.Mutex
	sinks   []Sink
	started chan struct{} // if set, receives a value for each Watch
	watches atomic.Int64
	ended   atomic.Int64
	first   []Address // if set, the list that each Watch begins with
}

func (s *script) Watch(ctx context.Context, _ Target, sink Sink) error {
	s.watches.Add(1)
	defer s.ended.Add(1)
	s.mu.Lock()
	s.sinks = append(s.sinks, sink)
	s.mu.Unlock()
	if s.first != nil {
		_ = sink.Update(s.first)
	}
	if s.started != nil {
		s.started <- struct{}{}
	}
	<-ctx.Done()
	return ctx.Err()
}

// sink returns the sink of the only Watch.
func (s *script) sink() Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sinks[0]
}

// addrs makes a list without weights.
func addrs(list ...string) []Address {
	as := make([]Address, len(list))
	for i, a := range list {
		as[i].Addr = a
	}
	return as
}

// server is a real HTTP server on loopback that counts.
type server struct {
	*httptest.Server
	addr     string
	requests atomic.Int64
	conns    atomic.Int64 // ever made
	open     atomic.Int64 // now
}

// trusting returns a Base that trusts the server's certificate, which is for
// example.com.
func (s *server) trusting() *http.Transport {
	if s.TLS == nil {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
}

// serve starts n servers with one handler; start is called on each before it starts.
func serve(t testing.TB, n int, h http.HandlerFunc, start func(*httptest.Server)) []*server {
	t.Helper()
	servers := make([]*server, n)
	for i := range servers {
		s := &server{}
		s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			h(w, r)
		}))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.conns.Add(1)
				s.open.Add(1)
			case http.StateClosed, http.StateHijacked:
				s.open.Add(-1)
			}
		}
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		start(s.Server)
		s.addr = s.Listener.Addr().String()
		t.Cleanup(s.Close)
		servers[i] = s
	}
	return servers
}

func plain(s *httptest.Server) { s.Start() }

func withTLS(s *httptest.Server) { s.StartTLS() }

func withHTTP2(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }

// static is a resolver with the servers' addresses.
func static(servers []*server) Static {
	var list Static
	for _, s := range servers {
		list = append(list, Address{Addr: s.addr})
	}
	return list
}

// client returns a client over tr, which is closed with the test.
func client(t testing.TB, tr *Transport) *http.Client {
	t.Helper()
	t.Cleanup(tr.Close)
	return &http.Client{Transport: tr}
}

// fetch gets url, reads the body and returns it with the answer.
func fetch(t testing.TB, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Do(request(t, http.MethodGet, url, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// one returns the stats of the only target.
func one(t testing.TB, tr *Transport) TargetStats {
	t.Helper()
	all := tr.Snapshot()
	if len(all) != 1 {
		t.Fatalf("Snapshot has %d targets, want 1", len(all))
	}
	return all[0]
}

// inFlight is the number of requests in flight on all endpoints of all targets.
func inFlight(tr *Transport) int64 {
	var n int64
	for _, target := range tr.Snapshot() {
		for _, e := range target.Endpoints {
			n += e.InFlight
		}
	}
	return n
}

// eventually waits for what other goroutines are about to do.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// stats of one endpoint of a target.
func endpointStats(t testing.TB, s TargetStats, id string) evenkeel.EndpointStats {
	t.Helper()
	for _, e := range s.Endpoints {
		if e.ID == id {
			return e
		}
	}
	t.Fatalf("no endpoint %q in %v", id, s.Endpoints)
	return evenkeel.EndpointStats{}
}
