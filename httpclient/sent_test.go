package httpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/evenkeel/evenkeel"
)

// bodies that fail by themselves, some with what a connection could fail with too.
func failingBodies() map[string]io.ReadCloser {
	after := func(err error) io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader("some"), iotest.ErrReader(err)))
	}
	return map[string]io.ReadCloser{
		"an error of its own":    after(errors.New("disk")),
		"too large":              http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("too long")), 3),
		"cut":                    after(io.ErrUnexpectedEOF),
		"cut at once":            io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)),
		"its own connection":     after(&net.OpError{Op: "read", Net: "tcp", Err: errors.New("reset")}),
		"its own time limit":     after(context.DeadlineExceeded),
		"its own file's limit":   after(os.ErrDeadlineExceeded),
		"another answer's error": after(fmt.Errorf("http: %w", errors.New("copied"))),
	}
}

func TestErrorsOfTheRequestsBodyAreNotTheEndpoints(t *testing.T) {
	drain := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	h1, h2 := serve(t, 1, drain, plain), serve(t, 1, drain, withHTTP2)
	for _, c := range []struct {
		url string
		tr  *Transport
	}{
		{svc, &Transport{Resolver: static(h1)}},
		{"https://example.com/", &Transport{Resolver: static(h2), Base: h2[0].trusting()}},
	} {
		fetch(t, client(t, c.tr), c.url)
		for _, length := range []int64{800, -1} {
			for name, body := range failingBodies() {
				req := request(t, "POST", c.url, body)
				req.ContentLength = length
				resp, err := c.tr.RoundTrip(req)
				if err == nil {
					_, _ = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				if e := one(t, c.tr).Endpoints[0]; e.Success != 1 || e.InFlight != 0 {
					t.Fatalf("%s, length %d, %s: %v: success %v, in flight %d", c.url, length, name, err, e.Success, e.InFlight)
				}
			}
		}
	}
}

func TestEndpointThatHangsUpUnderABodyIsTheOneThatFailed(t *testing.T) {
	tr := &Transport{Resolver: Static{{Addr: peer(t, readRequest)}}}
	defer tr.Close()
	endless := readerFunc(func(p []byte) (int, error) { return len(p), nil })
	_, err := tr.RoundTrip(request(t, "POST", svc, endless))
	if err == nil {
		t.Fatal("no error")
	}
	if e := one(t, tr).Endpoints[0]; e.Success == 1 {
		t.Errorf("success is 1 after %v", err)
	}
}

// An answer can come before the request's body has failed, and ends with it.
func TestRequestsBodyThatFailsUnderTheAnswerIsNotTheEndpoints(t *testing.T) {
	broken := errors.New("broken")
	tr := single(t, func(req *http.Request) (*http.Response, error) {
		resp := answer(req, 200, "")
		resp.ContentLength = -1
		resp.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
			_, _ = req.Body.Read(p)
			return 0, broken
		}))
		return resp, nil
	})
	req := request(t, "POST", svc, iotest.ErrReader(errors.New("disk")))
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err != broken || resp.Request != req {
		t.Errorf("%v, want %v; the caller's request: %v", err, broken, resp.Request == req)
	}
	if n, success, _ := only(t, tr); n != 0 || success != 1 {
		t.Errorf("in flight %d, success %v, want 0, 1", n, success)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestWatchedRequestIsTheCallersButForItsBody(t *testing.T) {
	disk := errors.New("disk")
	again := io.NopCloser(iotest.ErrReader(disk))
	req := request(t, "POST", svc, &closable{Reader: iotest.OneByteReader(strings.NewReader("some"))})
	body := req.Body
	req.GetBody = func() (io.ReadCloser, error) { return again, nil }
	out, s := watched(req)
	if out == req || req.Body != body || out.URL != req.URL || out.Context() != req.Context() {
		t.Errorf("%+v was made of %+v", out, req)
	}
	if text, err := io.ReadAll(out.Body); string(text) != "some" || err != nil || s.bodyFailed() {
		t.Errorf("the body is %q, %v, failed: %v", text, err, s.bodyFailed())
	}
	second, err := out.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(second); err != disk || !s.bodyFailed() {
		t.Errorf("the second body: %v, failed: %v", err, s.bodyFailed())
	}
	req.GetBody = func() (io.ReadCloser, error) { return nil, disk }
	out, s = watched(req)
	if _, err := out.GetBody(); err != disk || !s.bodyFailed() {
		t.Errorf("no second body: %v, failed: %v", err, s.bodyFailed())
	}
	req.Body = &failsWhenClosed{}
	out, s = watched(req)
	_ = out.Body.Close() // as net/http does when the connection failed
	if _, err := out.Body.Read(nil); err == nil || s.bodyFailed() {
		t.Errorf("read on a closed body: %v, failed: %v", err, s.bodyFailed())
	}
}

// failsWhenClosed is a body whose Read fails once it is closed, as that of a pipe does.
type failsWhenClosed struct{ closed bool }

func (f *failsWhenClosed) Close() error { f.closed = true; return nil }

func (f *failsWhenClosed) Read([]byte) (int, error) {
	if f.closed {
		return 0, io.ErrClosedPipe
	}
	return 0, nil
}

// net/http asks for the body again when a connection that it had kept is closed.
func TestGetBodyServesNetHTTPsOwnRetries(t *testing.T) {
	var requests atomic.Int64
	addr := peer(t, func(conn net.Conn) {
		for r := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			if requests.Add(1) == 2 {
				return // without an answer, on a connection that has been good
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	tr := &Transport{Resolver: Static{{Addr: addr}}}
	defer tr.Close()
	roundTripAll(t, tr)
	file := func() (io.ReadCloser, error) { return &closable{Reader: strings.NewReader("some")}, nil }
	body, _ := file()
	req := request(t, "PUT", svc, body)
	req.ContentLength, req.GetBody = 4, file
	req.Header.Set("Idempotency-Key", "1")
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if e := one(t, tr).Endpoints[0]; e.Success != 1 || resp.Request != req || requests.Load() != 3 {
		t.Errorf("success %v, want 1; the caller's request: %v; %d requests, want 3", e.Success, resp.Request == req, requests.Load())
	}
}

// What is in memory must reach net/http as it is: it sends that in one packet with the
// headers.
func TestBodiesInMemoryAreNotWatched(t *testing.T) {
	for _, body := range []io.Reader{nil, http.NoBody, strings.NewReader("x"), bytes.NewReader([]byte("x")), bytes.NewBufferString("x")} {
		req := request(t, "POST", svc, body)
		if out, s := watched(req); out != req || s.bodyFailed() {
			t.Errorf("%T is watched", body)
		}
	}
	if out, s := watched(request(t, "POST", svc, io.MultiReader())); out == nil || s == nil {
		t.Error("a reader that may fail is not watched")
	}
}

func TestWatchingABodyAllocatesOnce(t *testing.T) {
	req := request(t, "POST", svc, io.MultiReader())
	if n := testing.AllocsPerRun(100, func() { _, _ = watched(req) }); n != 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}

func TestTextsOfRequestFaultsAreNotTheEndpoints(t *testing.T) {
	drain := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	h1, h2 := serve(t, 1, drain, plain)[0], serve(t, 1, drain, withHTTP2)[0]
	for _, c := range []struct {
		name  string
		h2    bool
		spoil func(*http.Request)
	}{
		{"shorter than said, of some length", false, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", 200000))), 300000
		}},
		{"control character", false, func(r *http.Request) { r.URL.Opaque = "a\x7fb" }},
		{"trailer", false, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), -1
			r.Trailer = http.Header{"Content-Length": {"1"}}
		}},
		{"Connection", true, func(r *http.Request) { r.Header["Connection"] = []string{"upgrade-me"} }},
		{"Upgrade", true, func(r *http.Request) { r.Header["Upgrade"] = []string{"x", "y"} }},
		{"Transfer-Encoding", true, func(r *http.Request) { r.Header["Transfer-Encoding"] = []string{"gzip"} }},
		{"host", true, func(r *http.Request) { r.Host = "a b\x00" }},
		{"trailer", true, func(r *http.Request) { r.Trailer = http.Header{"Content-Length": {"1"}} }},
	} {
		addr, url, base := h1.addr, svc, (*http.Transport)(nil)
		if c.h2 {
			addr, url, base = h2.addr, "https://example.com/", h2.trusting()
		}
		req := request(t, "POST", url, nil)
		c.spoil(req)
		if got, err := outcomeOver(t, addr, base, req); got != evenkeel.Unknown {
			t.Errorf("%s, HTTP/2 %v: %v is %v, want unknown", c.name, c.h2, err, got)
		}
	}
}
