package orcahttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcahttp"
)

// shapes answers in each way that a handler can.
func shapes() http.Handler {
	next := http.NewServeMux()
	write := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	next.HandleFunc("/short", write("body"))
	next.HandleFunc("/long", write(strings.Repeat("0123456789", 100_000)))
	next.HandleFunc("/nothing", func(http.ResponseWriter, *http.Request) {})
	next.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	next.HandleFunc("/204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	next.HandleFunc("/304", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	next.HandleFunc("/sized", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "body")
	})
	next.HandleFunc("/file", func(w http.ResponseWriter, req *http.Request) {
		http.ServeContent(w, req, "x.txt", time.Time{}, strings.NewReader("body"))
	})
	next.HandleFunc("/500", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "body")
	})
	next.HandleFunc("/copied", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("body")})
	})
	next.HandleFunc("/flushed", func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "body")
	})
	next.HandleFunc("/own-trailer", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Own")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Own", "1")
	})
	return next
}

// A connection that a handler takes over stays in flight until the handler returns, gets no report and
// gives no latency.
func TestHandlerHijacks(t *testing.T) {
	goOn := make(chan struct{})
	h := &orcahttp.Handler{Tracker: orca.NewTracker(orca.TrackerConfig{}), Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello\n")
		_ = rw.Flush()
		<-goOn
	})}
	_, url := serve(t, "HTTP/1.1", h)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	head := ""
	for in := bufio.NewReader(conn); !strings.HasSuffix(head, "hello\n"); {
		line, err := in.ReadString('\n')
		if head += line; err != nil {
			t.Fatalf("%q, %v", head, err)
		}
	}
	if strings.Contains(head, "Endpoint-Load-Metrics") {
		t.Errorf("there is a report in %q", head)
	}
	if h.Tracker.InFlight() != 1 {
		t.Error("not in flight")
	}
	close(goOn)
	_, _ = io.Copy(io.Discard, conn)
	for h.Tracker.InFlight() != 0 {
		runtime.Gosched() // the connection is closed, the handler returns
	}
	var r orca.Report
	h.Tracker.Report(&r, h.Tracker.Now())
	if _, ok := r.Named.Get(orca.LatencyMetric); ok {
		t.Error("an upgraded connection's life counts as a latency")
	}
}

// Handlers find out by assertions what they can do: as much as without the middleware.
func TestHandlerKeepsOptionalInterfaces(t *testing.T) {
	eachProto(t, func(t *testing.T, proto string) {
		kinds := func(w http.ResponseWriter) string {
			_, a := w.(http.Flusher)
			_, b := w.(http.Hijacker)
			_, c := w.(http.Pusher)
			_, d := w.(io.ReaderFrom)
			_, e := w.(io.StringWriter)
			return fmt.Sprint(a, b, c, d, e)
		}
		var bare, wrapped string
		h := &orcahttp.Handler{Tracker: orca.NewTracker(orca.TrackerConfig{}), Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			wrapped = kinds(w)
			if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
				t.Errorf("SetReadDeadline: %v", err)
			}
		})}
		client, url := serve(t, proto, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			bare = kinds(w)
			h.ServeHTTP(w, req)
		}))
		do(t, client, request(t, "GET", url))
		if bare != wrapped {
			t.Errorf("flush, hijack, push, read from, write strings: %s, want %s", wrapped, bare)
		}
	})
}
