package httpclient

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// everythingOn is a Transport with a dead endpoint beside the servers, and all that repeats requests.
func everythingOn(s []*server) *Transport {
	return &Transport{
		Resolver: append(static(s), Address{Addr: "127.0.0.1:1"}),
		Base:     s[0].trusting(),
		Retry:    &RetryConfig{Statuses: []int{502, 503, 504}, TryTimeout: 5 * time.Second, Header: "X-Attempt"},
		Hedge:    &HedgeConfig{Delay: time.Millisecond},
	}
}

func TestRedirectsCookiesAndGzipAreAsWithoutRetries(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "s1"})
			http.Redirect(w, r, "/page", http.StatusFound)
		case "/page":
			cookie, err := r.Cookie("session")
			if err != nil || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") || r.Host != "example.com" {
				http.Error(w, r.Host, http.StatusBadRequest)
				return
			}
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = io.WriteString(z, cookie.Value)
			_ = z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(b.Bytes())
		}
	}
	for _, c := range []struct {
		url string
		s   []*server
	}{
		{"http://example.com/", serve(t, 2, handler, plain)},
		{"https://example.com/", serve(t, 2, handler, withHTTP2)},
	} {
		cl := client(t, everythingOn(c.s))
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		cl.Jar, cl.Timeout = jar, 20*time.Second
		for range 20 {
			resp, body := fetch(t, cl, c.url)
			if resp.StatusCode != 200 || body != "s1" || !resp.Uncompressed || resp.Request.URL.Path != "/page" {
				t.Fatalf("%s: %s %q of %v", c.url, resp.Status, body, resp.Request.URL)
			}
		}
	}
}

func TestReverseProxyOverADeadEndpointFailsNoRequestAndKeepsTunnels(t *testing.T) {
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			echoUpgrade(w, r)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}, plain)
	tr := everythingOn(s)
	tr.Retry.TryTimeout = 100 * time.Millisecond
	tr.Config.Policy = picker.RoundRobin{}
	defer tr.Close()
	proxy := &httputil.ReverseProxy{Transport: tr, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(parse(t, svc)) }}
	front := serve(t, 1, proxy.ServeHTTP, plain)[0]
	out := &http.Transport{}
	defer out.CloseIdleConnections()
	// A proxy's bodies cannot be had anew: only what has none is sent again.
	for i := range 30 {
		if resp, _ := fetch(t, &http.Client{Transport: out}, front.URL); resp.StatusCode != 200 {
			t.Fatalf("request %d: %s", i, resp.Status)
		}
	}
	for range 6 {
		conn := upgrade(t, out, front.URL)
		wait(120 * time.Millisecond) // longer than a try
		if _, err := io.WriteString(conn, "again\n"); err != nil {
			t.Error(err)
		}
		var b [6]byte
		if _, err := io.ReadFull(conn, b[:]); string(b[:]) != "again\n" {
			t.Errorf("%q, %v", b, err)
		}
		conn.Close()
	}
	eventually(t, "nothing is in flight", func() bool { return inFlight(tr) == 0 })
}

func TestTracesOfConnectionsSeeEachTry(t *testing.T) {
	s := serve(t, 1, hello, plain)
	tr := &Transport{Resolver: append(static(s), Address{Addr: "127.0.0.1:1"}), Config: evenkeel.Config{Policy: picker.RoundRobin{}}, Retry: &RetryConfig{TryTimeout: time.Minute}}
	var starts, got, sent int
	for range 4 {
		req := request(t, "POST", svc, strings.NewReader("x"))
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			ConnectStart: func(string, string) { starts++ },
			GotConn:      func(httptrace.GotConnInfo) { got++ },
			WroteHeaders: func() { sent++ },
		}))
		resp, err := client(t, tr).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if got != 4 || sent != 4 || starts < 2 {
		t.Errorf("%d dials, %d connections, %d requests, want the dead one's dials too, 4 and 4", starts, got, sent)
	}
}
