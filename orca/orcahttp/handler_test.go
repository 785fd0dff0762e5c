package orcahttp_test

import (
	"bufio"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcahttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a real server and returns a client for it, with its URL.
func serve(t *testing.T, proto string, h http.Handler) (*http.Client, string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if proto == "HTTP/2.0" {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		s.Client().CloseIdleConnections()
		s.Close()
	})
	return s.Client(), s.URL
}

var protos = []string{"HTTP/1.1", "HTTP/2.0"}

// eachProto runs a test over HTTP/1.1 and HTTP/2.
func eachProto(t *testing.T, f func(t *testing.T, proto string)) {
	for _, proto := range protos {
		t.Run(proto, func(t *testing.T) { f(t, proto) })
	}
}

// answer is a response read to its end.
type answer struct {
	*http.Response
	body                string
	inHeader, inTrailer bool // there is a valid report
	report              orca.Report
}

func do(t *testing.T, c *http.Client, req *http.Request) answer {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{Response: resp, body: string(body)}
	if a.inHeader, err = orcahttp.ParseHeader(&a.report, resp.Header); err != nil {
		t.Fatal(err)
	}
	var r orca.Report
	if a.inTrailer, err = orcahttp.ParseHeader(&r, resp.Trailer); err != nil {
		t.Fatal(err)
	}
	if a.inTrailer {
		a.report = r
	}
	return a
}

func request(t *testing.T, method, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestHandlerReportsOnEveryResponse(t *testing.T) {
	next := shapes()
	eachProto(t, func(t *testing.T, proto string) {
		for _, trailer := range []bool{false, true} {
			h := &orcahttp.Handler{Next: next, Tracker: orca.NewTracker(orca.TrackerConfig{}), Trailer: trailer}
			client, url := serve(t, proto, h)
			for _, c := range []struct {
				method, path string
				canTrail     bool
				length       int
			}{
				{"GET", "/short", true, 4},
				{"GET", "/long", true, 1_000_000},
				{"GET", "/nothing", false, 0},
				{"GET", "/status", true, 0},
				{"GET", "/204", false, 0},
				{"GET", "/304", false, 0},
				{"GET", "/sized", false, 4},
				{"GET", "/file", false, 4},
				{"HEAD", "/short", false, 0},
				{"GET", "/500", true, 4},
				{"GET", "/copied", true, 4},
				{"GET", "/flushed", true, 4},
				{"GET", "/own-trailer", true, 4},
				{"GET", "/not-found", true, len("404 page not found\n")},
			} {
				a := do(t, client, request(t, c.method, url+c.path))
				if a.Proto != proto || len(a.body) != c.length {
					t.Fatalf("%s: %s, %d bytes, want %s, %d", c.path, a.Proto, len(a.body), proto, c.length)
				}
				want := trailer && c.canTrail
				if a.inTrailer != want || a.inHeader == want {
					t.Errorf("%s %s, Trailer %v: in the header %v, in the trailer %v", c.method, c.path, trailer, a.inHeader, a.inTrailer)
				}
				wantRIF := 1.0 // itself
				if want || c.path == "/nothing" {
					wantRIF = 0
				}
				if rif, ok := a.report.Named.Get(orca.InFlightMetric); !ok || rif != wantRIF {
					t.Errorf("%s, Trailer %v: %v in flight, want %v", c.path, trailer, rif, wantRIF)
				}
				if c.path == "/own-trailer" && a.Trailer.Get("X-Own") != "1" {
					t.Errorf("the handler's own trailer is lost: %v", a.Trailer)
				}
			}
			if n := h.Tracker.InFlight(); n != 0 {
				t.Errorf("%d in flight at the end, want 0", n)
			}
		}
	})
}

// What is flushed is with the client before the handler has returned, with the header's report.
func TestHandlerFlushes(t *testing.T) {
	eachProto(t, func(t *testing.T, proto string) {
		for _, controller := range []bool{false, true} {
			goOn := make(chan struct{})
			h := &orcahttp.Handler{Tracker: orca.NewTracker(orca.TrackerConfig{}), Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "first\n")
				if controller {
					if err := http.NewResponseController(w).Flush(); err != nil {
						t.Error(err)
					}
				} else {
					w.(http.Flusher).Flush()
				}
				<-goOn
				_, _ = io.WriteString(w, "second\n")
			})}
			client, url := serve(t, proto, h)
			resp, err := client.Do(request(t, "GET", url))
			if err != nil {
				t.Fatal(err)
			}
			body := bufio.NewReader(resp.Body)
			if line, err := body.ReadString('\n'); line != "first\n" {
				t.Fatalf("%q, %v", line, err)
			}
			var r orca.Report
			if found, err := orcahttp.ParseHeader(&r, resp.Header); !found || err != nil {
				t.Errorf("header %v: %v", resp.Header, err)
			}
			if h.Tracker.InFlight() != 1 {
				t.Error("not in flight while the body is written")
			}
			close(goOn)
			if line, err := body.ReadString('\n'); line != "second\n" {
				t.Fatalf("%q, %v", line, err)
			}
			_, _ = io.Copy(io.Discard, body)
			_ = resp.Body.Close()
			h.Tracker.Report(&r, h.Tracker.Now())
			if _, ok := r.Named.Get(orca.LatencyMetric); ok {
				t.Error("a stream's length counts as a latency")
			}
		}
	})
}

func TestHandlerLeavesInformationalResponsesAlone(t *testing.T) {
	eachProto(t, func(t *testing.T, proto string) {
		h := &orcahttp.Handler{Tracker: orca.NewTracker(orca.TrackerConfig{}), Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</x>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusAccepted)
		})}
		client, url := serve(t, proto, h)
		hints := 0
		req := request(t, "GET", url)
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
				hints++
				if header.Get(orcahttp.HeaderBin) != "" {
					t.Error("the early hints have a report")
				}
				return nil
			},
		}))
		if a := do(t, client, req); a.StatusCode != http.StatusAccepted || !a.inHeader || hints != 1 {
			t.Errorf("status %d, %d early hints, report %v", a.StatusCode, hints, a.inHeader)
		}
	})
}

func TestHandlerCountsFailures(t *testing.T) {
	eachProto(t, func(t *testing.T, proto string) {
		own := func(status int) bool { return status == http.StatusTeapot }
		for _, c := range []struct {
			name   string
			next   http.HandlerFunc
			failed func(int) bool
			eps    bool
			broken bool
		}{
			{name: "200", next: func(http.ResponseWriter, *http.Request) {}},
			{name: "404", next: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }},
			{name: "500", next: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, eps: true},
			{name: "501", next: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(501) }},
			{name: "own failure", next: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) }, failed: own, eps: true},
			{name: "own success", next: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, failed: own},
			{name: "panic", next: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, eps: true, broken: true},
			{name: "panic in the body", next: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
				panic(http.ErrAbortHandler)
			}, eps: true, broken: true},
		} {
			h := &orcahttp.Handler{Tracker: orca.NewTracker(orca.TrackerConfig{}), Next: c.next, Failed: c.failed, Trailer: true}
			client, url := serve(t, proto, h)
			resp, err := client.Do(request(t, "GET", url))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			if (err != nil) != c.broken {
				t.Errorf("%s: %v", c.name, err)
			}
			client.CloseIdleConnections()
			for h.Tracker.InFlight() != 0 {
				runtime.Gosched() // the client has seen the end of the connection, the server unwinds
			}
			var r orca.Report
			h.Tracker.Report(&r, h.Tracker.Now()+int64(time.Second))
			if (r.EPS > 0) != c.eps || !(r.QPS > 0) {
				t.Errorf("%s: %v requests and %v errors per second", c.name, r.QPS, r.EPS)
			}
			if _, ok := r.Named.Get(orca.LatencyMetric); ok == c.eps {
				t.Errorf("%s: latency there is %v", c.name, ok)
			}
		}
	})
}

func TestHandlerReportsInTheFormatAskedFor(t *testing.T) {
	for _, c := range []struct {
		ask       string
		onRequest bool
		prefix    string // of endpoint-load-metrics; "-" is -bin, "" none
	}{
		{"", false, "-"}, {"", true, ""}, {"text", true, "TEXT "}, {"JSON", false, "JSON {"}, {"bin", true, "BIN "}, {"xml", true, ""},
	} {
		h := &orcahttp.Handler{Tracker: orca.NewTracker(orca.TrackerConfig{}), OnRequest: c.onRequest, Next: http.NotFoundHandler()}
		req := httptest.NewRequest("GET", "/", nil)
		if c.ask != "" {
			req.Header.Set("endpoint-load-metrics-format", c.ask)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		header, bin := w.Result().Header.Get(orcahttp.Header), w.Result().Header.Get(orcahttp.HeaderBin)
		switch c.prefix {
		case "", "-":
			if (bin != "") != (c.prefix == "-") || header != "" {
				t.Errorf("%+v: %q, -bin %q", c, header, bin)
			}
		default:
			if !strings.HasPrefix(header, c.prefix) || bin != "" {
				t.Errorf("%+v: %q, -bin %q", c, header, bin)
			}
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, c := range []struct {
		name string
		h    http.Handler
	}{
		{"bare", next},
		{"bin", &orcahttp.Handler{Tracker: orca.NewTracker(orca.TrackerConfig{}), Next: next}},
		{"text", &orcahttp.Handler{Tracker: orca.NewTracker(orca.TrackerConfig{}), Next: next, Format: orcahttp.Text}},
	} {
		b.Run("handler="+c.name, func(b *testing.B) {
			w := &nullWriter{header: http.Header{}}
			req := httptest.NewRequest("GET", "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				c.h.ServeHTTP(w, req)
			}
		})
	}
}

type nullWriter struct{ header http.Header }

func (w *nullWriter) Header() http.Header         { return w.header }
func (w *nullWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *nullWriter) WriteHeader(int)             {}
func (w *nullWriter) Flush()                      {}
