package httpclient

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// gone is a connection whose peer closed it at once.
type gone struct{ net.Conn }

func (gone) Read([]byte) (int, error)    { return 0, io.EOF }
func (gone) Write(b []byte) (int, error) { return len(b), nil }

// A connection of HTTP/2 that ends before its first request was written has carried nothing of it: net/http says so, and
// gives up. Another endpoint gets the request, whatever its method.
func TestRequestOnAConnectionThatEndsBeforeItIsSentElsewhere(t *testing.T) {
	good := serve(t, 1, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, func(s *httptest.Server) {
		s.Config.Protocols = clearText(true)
		s.Start()
	})
	base := &http.Transport{Protocols: clearText(true), DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, good[0].Listener.Addr().String())
		if err == nil && strings.HasPrefix(addr, "127.0.0.2:") {
			return gone{conn}, nil
		}
		return conn, err
	}}
	met := 0
	for range 300 {
		tr := &Transport{Resolver: Static(addrs("127.0.0.1:1", "127.0.0.2:1")), Config: evenkeel.Config{Policy: picker.RoundRobin{}}, Base: base}
		for range 2 {
			resp, err := (&http.Client{Transport: tr}).Post(svc, "", strings.NewReader("the body"))
			if err != nil && strings.Contains(err.Error(), "client conn could not be established") {
				met++
			}
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		tr.Close()
	}
	if met > 0 {
		t.Errorf("%d POSTs of 600 failed of which nothing was sent", met)
	}
}
