package httpclient

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// protocols returns the set of those.
func protocols(set ...func(*http.Protocols, bool)) *http.Protocols {
	p := new(http.Protocols)
	for _, f := range set {
		f(p, true)
	}
	return p
}

func TestTrap11BaseThatCannotWorkIsRefusedNamingAllFields(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
	old := func(string, string) (net.Conn, error) { return nil, io.EOF }
	next := func(string, *tls.Conn) http.RoundTripper { return nil }
	for _, c := range []struct {
		base *http.Transport
		want []string
	}{
		//lint:ignore SA1019 deprecated fields are refused, not used
		{&http.Transport{Proxy: http.ProxyFromEnvironment, DialTLSContext: dial, DialTLS: old, Dial: old},
			[]string{"Base.Proxy is set", "Base.DialTLSContext is set", "Base.DialTLS is set", "Base.Dial is set"}},
		{&http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{"spdy/3": next}},
			[]string{`Base.TLSNextProto has "spdy/3"`}},
		{&http.Transport{MaxConnsPerHost: 5}, []string{"Base.MaxConnsPerHost is 5"}},
		{&http.Transport{MaxConnsPerHost: 5, Protocols: protocols((*http.Protocols).SetUnencryptedHTTP2)}, []string{"Base.MaxConnsPerHost is 5"}},
		{&http.Transport{TLSHandshakeTimeout: -1, IdleConnTimeout: -1, ResponseHeaderTimeout: -1, ExpectContinueTimeout: -1,
			HTTP2: &http.HTTP2Config{SendPingTimeout: -1, PingTimeout: -1, WriteByteTimeout: -1}},
			[]string{"Base.TLSHandshakeTimeout is -1ns, want at least 0", "Base.IdleConnTimeout", "Base.ResponseHeaderTimeout",
				"Base.ExpectContinueTimeout", "HTTP2.SendPingTimeout", "HTTP2.PingTimeout", "HTTP2.WriteByteTimeout"}},
	} {
		tr := &Transport{Base: c.base}
		_, err := tr.RoundTrip(request(t, "GET", svc, nil))
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %q in it", err, want)
			}
		}
		tr.Close()
	}
}

func TestTrap11BaseThatWorksIsTakenOver(t *testing.T) {
	tmpl, err := template(&http.Transport{DisableKeepAlives: true, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 3,
		MaxConnsPerHost: 2, Protocols: protocols((*http.Protocols).SetHTTP1), HTTP2: &http.HTTP2Config{PingTimeout: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	got := fixedDial(tmpl, "10.0.0.1:80")
	if !got.DisableKeepAlives || got.IdleConnTimeout != time.Minute || got.MaxIdleConnsPerHost != 3 || got.MaxConnsPerHost != 2 ||
		got.HTTP2.PingTimeout != time.Second || got.TLSHandshakeTimeout != 5*time.Second || got.HTTP2.SendPingTimeout != 10*time.Second {
		t.Errorf("%+v", got)
	}
	tmpl, err = template(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fixedDial(tmpl, "10.0.0.1:80"); got.MaxIdleConnsPerHost != 64 || got.IdleConnTimeout != 50*time.Second ||
		got.HTTP2.PingTimeout != 5*time.Second || got.HTTP2.WriteByteTimeout != 10*time.Second || got.Proxy != nil || !got.ForceAttemptHTTP2 {
		t.Errorf("%+v", got)
	}
}

func TestTrap11CloneOfTheDefaultTransportNeedsOneLineMore(t *testing.T) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	if _, err := template(base); err == nil || !strings.Contains(err.Error(), "Base.Proxy is set") {
		t.Errorf("%v, want a word on its Proxy", err)
	}
	base.Proxy = nil
	if _, got := shares(t, serve(t, 2, hello, plain), base, svc, 4); got[0] != 2 || got[1] != 2 {
		t.Errorf("shares %v, want 2 each", got)
	}
}

// shares sends n requests and returns what HTTP they used and how many each server got.
func shares(t *testing.T, servers []*server, base *http.Transport, url string, n int) (proto string, got []int64) {
	t.Helper()
	tr := &Transport{Resolver: static(servers), Base: base, Config: evenkeel.Config{Policy: picker.RoundRobin{}}}
	c := client(t, tr)
	for range n {
		resp, _ := fetch(t, c, url)
		proto = resp.Proto
	}
	for _, s := range servers {
		got = append(got, s.requests.Load())
	}
	return proto, got
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func TestBaseThatWasUsedSpreadsOverAllEndpoints(t *testing.T) {
	s := serve(t, 2, hello, withHTTP2)
	base := s[0].trusting()
	base.TLSClientConfig.RootCAs.AddCert(s[1].Certificate())
	base.ForceAttemptHTTP2 = true
	fetch(t, &http.Client{Transport: base}, s[0].URL)
	s[0].requests.Store(0)
	if proto, got := shares(t, s, base, "https://example.com/", 20); proto != "HTTP/2.0" || got[0] != 10 || got[1] != 10 {
		t.Errorf("%s, shares %v, want HTTP/2.0 and 10 each", proto, got)
	}
	base.CloseIdleConnections()
}

func TestProtocolIsTheBases(t *testing.T) {
	cleartext := func(s *httptest.Server) {
		s.Config.Protocols = protocols((*http.Protocols).SetHTTP1, (*http.Protocols).SetUnencryptedHTTP2)
		s.Start()
	}
	off := map[string]func(string, *tls.Conn) http.RoundTripper{}
	for _, c := range []struct {
		name  string
		start func(*httptest.Server)
		base  *http.Transport
		url   string
		want  string
	}{
		{"cleartext", cleartext, &http.Transport{}, svc, "HTTP/1.1"},
		{"h2c", cleartext, &http.Transport{Protocols: protocols((*http.Protocols).SetUnencryptedHTTP2)}, svc, "HTTP/2.0"},
		{"TLS", withHTTP2, &http.Transport{}, "https://example.com/", "HTTP/2.0"},
		{"TLS, server without HTTP/2", withTLS, &http.Transport{}, "https://example.com/", "HTTP/1.1"},
		{"HTTP/1 only", withHTTP2, &http.Transport{Protocols: protocols((*http.Protocols).SetHTTP1)}, "https://example.com/", "HTTP/1.1"},
		{"HTTP/2 off in the old way", withHTTP2, &http.Transport{TLSNextProto: off}, "https://example.com/", "HTTP/1.1"},
	} {
		s := serve(t, 2, hello, c.start)
		if s[0].TLS != nil {
			c.base.TLSClientConfig = s[0].trusting().TLSClientConfig
			c.base.TLSClientConfig.RootCAs.AddCert(s[1].Certificate())
		}
		if proto, got := shares(t, s, c.base, c.url, 10); proto != c.want || got[0] != 5 || got[1] != 5 {
			t.Errorf("%s: %s, shares %v, want %s and 5 each", c.name, proto, got, c.want)
		}
	}
}

func TestTrap21HTTP2CanBeSwitchedOffForTheProcess(t *testing.T) {
	t.Setenv("GODEBUG", "http2client=0")
	s := serve(t, 1, hello, withHTTP2)
	if proto, _ := shares(t, s, s[0].trusting(), "https://example.com/", 2); proto != "HTTP/1.1" {
		t.Errorf("%s, want HTTP/1.1", proto)
	}
}
