package interop

import (
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
	"github.com/evenkeel/evenkeel/picker"
)

// http2.ConfigureTransport gives a transport an HTTP/2 connection pool that clones of it
// would share: with it, all endpoints' requests would go to the first one's connection.
func TestBaseThatXNetHTTP2TouchedSpreadsOverAllEndpoints(t *testing.T) {
	for _, used := range []bool{false, true} {
		var served [2]atomic.Int64
		var backends httpclient.Static
		roots := x509.NewCertPool()
		var first *httptest.Server
		for i := range served {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served[i].Add(1) }))
			s.EnableHTTP2 = true
			s.StartTLS()
			defer s.Close()
			roots.AddCert(s.Certificate())
			backends = append(backends, httpclient.Address{Addr: s.Listener.Addr().String()})
			if first == nil {
				first = s
			}
		}
		base := first.Client().Transport.(*http.Transport).Clone()
		base.TLSClientConfig.RootCAs = roots
		base.TLSNextProto = nil
		if err := http2.ConfigureTransport(base); err != nil {
			t.Fatal(err)
		}
		defer base.CloseIdleConnections()
		if used { // and has a connection of its own
			get(t, &http.Client{Transport: base}, first.URL)
			served[0].Store(0)
		}
		transport := &httpclient.Transport{
			Resolver: backends,
			Config:   evenkeel.Config{Policy: picker.RoundRobin{}},
			Base:     base,
		}
		defer transport.Close()
		for range 20 {
			if proto := get(t, &http.Client{Transport: transport}, "https://example.com/"); proto != "HTTP/2.0" {
				t.Fatalf("used before: %v: answered over %s", used, proto)
			}
		}
		if a, b := served[0].Load(), served[1].Load(); a != 10 || b != 10 {
			t.Errorf("used before: %v: the endpoints got %d and %d of 20", used, a, b)
		}
	}
}

func get(t *testing.T, c *http.Client, url string) (proto string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.Proto
}
