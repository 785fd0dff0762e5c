package httpclient

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

// bothProtocols are servers with that handler that speak HTTP/1.1 and HTTP/2, each with a Transport for them that repeats
// requests in every way.
func bothProtocols(t *testing.T, h http.HandlerFunc) map[string]*Transport {
	t.Helper()
	all := map[string]*Transport{svc: everythingOn(serve(t, 2, h, plain)), "https://example.com/": everythingOn(serve(t, 2, h, withHTTP2))}
	for _, tr := range all {
		tr.Hedge.Delay = time.Second
		t.Cleanup(tr.Close)
	}
	return all
}

func TestInformationalAnswersReachTheTraceAndAProxysClient(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "served")
	}
	hints := func(rt http.RoundTripper, url string) (links []string) {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			links = append(links, fmt.Sprint(code, header.Get("Link")))
			return nil
		}})
		resp, body := fetch(t, &http.Client{Transport: roundTripperFunc(func(req *http.Request) (*http.Response, error) {
			return rt.RoundTrip(req.WithContext(ctx))
		})}, url)
		if resp.StatusCode != 200 || body != "served" {
			t.Errorf("%s: %s %q", url, resp.Status, body)
		}
		return links
	}
	const want = "[103</style.css>; rel=preload]"
	for url, tr := range bothProtocols(t, h) {
		if got := fmt.Sprint(hints(tr, url)); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
		front := serve(t, 1, (&httputil.ReverseProxy{Transport: tr, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(parse(t, url)) }}).ServeHTTP, plain)[0]
		out := &http.Transport{}
		if got := fmt.Sprint(hints(out, front.URL)); got != want {
			t.Errorf("%s, through a proxy: %s, want %s", url, got, want)
		}
		out.CloseIdleConnections()
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestTraceSeesHandshakesAndReuse(t *testing.T) {
	s := serve(t, 1, hello, withHTTP2)
	tr := &Transport{Resolver: static(s), Base: s[0].trusting()}
	c := client(t, tr)
	var reused []bool
	shaken, wrote, first := 0, 0, 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn:              func(i httptrace.GotConnInfo) { reused = append(reused, i.Reused) },
		TLSHandshakeDone:     func(_ tls.ConnectionState, err error) { shaken++ },
		WroteRequest:         func(httptrace.WroteRequestInfo) { wrote++ },
		GotFirstResponseByte: func() { first++ },
	})
	for range 3 {
		resp, err := c.Do(request(t, "GET", "https://example.com/", nil).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if fmt.Sprint(reused) != "[false true true]" || shaken != 1 || wrote != 3 || first != 3 {
		t.Errorf("reused %v, %d handshakes, %d written, %d answered", reused, shaken, wrote, first)
	}
}

// A server that wants the body asks for it; one that does not, never sees it. In neither case is there a second body.
func TestExpectContinueSendsABodyThatIsAskedForAndNoOther(t *testing.T) {
	for url, tr := range bothProtocols(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}) {
		for _, path := range []string{"", "no"} {
			read := new(atomic.Int64)
			body := &closable{Reader: readerFunc(func() func(p []byte) (int, error) {
				inner := iotest.OneByteReader(strings.NewReader("the body"))
				return func(p []byte) (int, error) { n, err := inner.Read(p); read.Add(int64(n)); return n, err }
			}())}
			req := request(t, "PUT", url+path, body)
			req.ContentLength = 8
			req.GetBody = func() (io.ReadCloser, error) { t.Error("the body was asked for again"); return nil, io.EOF }
			req.Header.Set("Expect", "100-continue")
			asked := new(atomic.Int64)
			req = req.WithContext(httptrace.WithClientTrace(WithoutRetry(t.Context()), &httptrace.ClientTrace{Got100Continue: func() { asked.Add(1) }}))
			var resp *http.Response
			var err error
			for range 20 { // one of the three is dead
				if resp, err = tr.RoundTrip(req); err == nil {
					break
				}
				body.closed.Store(0)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			eventually(t, "the body is closed", func() bool { return body.closed.Load() > 0 })
			if path == "" && (string(got) != "the body" || err != nil || asked.Load() != 1) {
				t.Errorf("%s: %s %q, %v, asked %d times", url, resp.Status, got, err, asked.Load())
			}
			if path == "no" && (resp.StatusCode != http.StatusExpectationFailed || read.Load() != 0) {
				t.Errorf("%s: %s, %d bytes of the body were read", url, resp.Status, read.Load())
			}
		}
	}
}

func TestHeadHasTheLengthAndNoBody(t *testing.T) {
	for url, tr := range bothProtocols(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "12345") }) {
		for range 10 {
			resp, err := tr.RoundTrip(request(t, "HEAD", url, nil))
			if err != nil {
				t.Fatal(err)
			}
			n := inFlight(tr)
			body, err := io.ReadAll(resp.Body)
			if resp.ContentLength != 12345 || len(body) != 0 || err != nil || n != 0 {
				t.Errorf("%s: length %d, body %q, %v, %d in flight", resp.Proto, resp.ContentLength, body, err, n)
			}
		}
	}
}

// endTrailer is a body that knows its trailer at its end, and puts it into the request as net/http has it.
type endTrailer struct {
	io.Reader
	trailer http.Header
}

func (e endTrailer) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err == io.EOF {
		e.trailer.Set("X-Sum", "42")
	}
	return n, err
}

func TestTrailersOfARequestReachTheServer(t *testing.T) {
	for url, tr := range bothProtocols(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", body, r.Trailer.Get("X-Sum"))
	}) {
		tr.Hedge.Delay = time.Nanosecond // were they hedged, one would take the other's
		for range 20 {
			trailer := http.Header{"X-Sum": nil}
			again := func() (io.ReadCloser, error) {
				return io.NopCloser(endTrailer{iotest.OneByteReader(strings.NewReader("body")), trailer}), nil
			}
			body, _ := again()
			req := request(t, "PUT", url, body)
			req.ContentLength, req.GetBody, req.Trailer = -1, again, trailer
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(got) != "body 42" || err != nil {
				t.Errorf("%s: the server got %q, %v", resp.Proto, got, err)
			}
		}
	}
}

// The connection that CONNECT asks for is one: it is no request that takes long, and counts until it ends.
func TestConnectIsAStreamUntilItEnds(t *testing.T) {
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "want CONNECT", http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		_, _ = io.Copy(conn, rw)
	}, plain)
	tr := &Transport{Resolver: static(s), Retry: &RetryConfig{TryTimeout: time.Second}}
	defer tr.Close()
	out, in := io.Pipe()
	req := request(t, http.MethodConnect, svc, out)
	req.URL.Path, req.Host = "", "elsewhere.test:443"
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "hello\n" {
		t.Errorf("%q, %v through the tunnel", line, err)
	}
	if r := describe(req); r.Kind == 0 || r.Idempotent {
		t.Errorf("%+v, want a stream", r)
	}
	if n := inFlight(tr); n != 1 {
		t.Errorf("%d in flight with the tunnel open", n)
	}
	in.Close()
	resp.Body.Close()
	eventually(t, "nothing is in flight", func() bool { return inFlight(tr) == 0 })
	if e := one(t, tr).Endpoints[0]; e.Success != 1 {
		t.Errorf("success is %v after a tunnel", e.Success)
	}
}

// shape is what a caller may see of its request.
func shape(req *http.Request) string {
	keys := slices.Sorted(maps.Keys(req.Header))
	return fmt.Sprint(req.Method, req.URL, keys, req.Header, req.Host, req.ContentLength, req.TransferEncoding, req.Close, req.Trailer)
}

// repeats are the ways in which a request may be sent more than once.
type repeats struct {
	retry *RetryConfig
	hedge *HedgeConfig
}

// A RoundTripper closes the body whatever becomes of the request, and leaves the request as it was.
func TestRequestIsClosedAndLeftAloneOnEveryPath(t *testing.T) {
	broken := peer(t, readRequest)
	cut := peer(t, func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
	})
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client has left
		switch r.URL.Path {
		case "/503":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/hang":
			<-r.Context().Done()
		}
	}, plain)
	for _, c := range []struct {
		name string
		list Static
		path string
		with repeats
	}{
		{"answered", static(s), "", repeats{}},
		{"refused", Static{{Addr: "127.0.0.1:1"}}, "", repeats{}},
		{"refused, and no other", Static{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}}, "", repeats{retry: &RetryConfig{Attempts: 5}}},
		{"no answer", Static{{Addr: broken}}, "", repeats{}},
		{"cut off", Static{{Addr: cut}}, "", repeats{}},
		{"retried for its status", static(s), "503", repeats{retry: &RetryConfig{Statuses: []int{503}, Backoff: time.Millisecond, Header: "X-Try"}}},
		{"too long for a try", static(s), "hang", repeats{retry: &RetryConfig{TryTimeout: 20 * time.Millisecond, Attempts: 2}}},
		{"too long for the caller", static(s), "hang", repeats{}},
		{"hedged", static(append(s, serve(t, 1, hello, plain)...)), "hang", repeats{hedge: &HedgeConfig{Delay: time.Millisecond}}},
		{"pinned to nobody", static(s), "", repeats{}},
	} {
		for _, replayable := range []bool{true, false} {
			tr := &Transport{Resolver: c.list, Retry: c.with.retry, Hedge: c.with.hedge}
			var mu sync.Mutex
			var bodies []*closable
			open := func() (io.ReadCloser, error) {
				b := &closable{Reader: strings.NewReader("body")}
				mu.Lock()
				defer mu.Unlock()
				bodies = append(bodies, b)
				return b, nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if c.name == "pinned to nobody" {
				ctx = WithEndpoint(ctx, "10.9.9.9")
			}
			body, _ := open()
			req := request(t, "PUT", svc+c.path, body).WithContext(ctx)
			req.ContentLength, req.Header["X-Odd"] = 4, []string{"1"}
			if replayable {
				req.GetBody = open
			}
			was := shape(req)
			resp, err := tr.RoundTrip(req)
			if err == nil {
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.Request != req {
					t.Errorf("%s: the answer is not the request's", c.name)
				}
			}
			if now := shape(req); now != was || req.Body != body {
				t.Errorf("%s: the request was\n%s and is\n%s", c.name, was, now)
			}
			tr.Close()
			cancel()
			eventually(t, c.name+": every body is closed", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return !slices.ContainsFunc(bodies, func(b *closable) bool { return b.closed.Load() == 0 })
			})
			eventually(t, c.name+": nothing is in flight", func() bool { return inFlight(tr) == 0 })
		}
	}
}

// A body is sent along where a redirect says so, and each step is balanced as a request of its own.
func TestRedirectsThatKeepTheBodySendItAgain(t *testing.T) {
	for url, tr := range bothProtocols(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/" {
			w.Header().Set("Location", "/there")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
	}) {
		for range 10 {
			resp, err := client(t, tr).Do(request(t, "POST", url, strings.NewReader("body")))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(got) != "POST /there body" {
				t.Errorf("%s: %q", resp.Proto, got)
			}
		}
		if n := inFlight(tr); n != 0 {
			t.Errorf("%s: %d in flight", url, n)
		}
	}
}
