package orcahttp_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcahttp"
)

// proxied are the ways in which what is behind a proxy reports: 8 in flight.
var proxied = map[string]func(w http.ResponseWriter){
	"header":     func(w http.ResponseWriter) { w.Header().Set(orcahttp.Header, "TEXT named_metrics.rif=8") },
	"bin header": func(w http.ResponseWriter) { eightInFlight(w.Header()) },
	"announced trailer": func(w http.ResponseWriter) {
		w.Header().Set("Trailer", "X-Own, endpoint-load-metrics-bin, endpoint-load-metrics")
		_, _ = io.WriteString(w, strings.Repeat("body", 3000))
		w.Header().Set("X-Own", "1")
		eightInFlight(w.Header())
	},
	"trailer": func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, strings.Repeat("body", 3000))
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"endpoint-load-metrics", "TEXT named_metrics.rif=8")
		w.Header().Set(http.TrailerPrefix+"endpoint-load-metrics-bin", "!")
	},
}

func eightInFlight(h http.Header) {
	r := orca.Report{Named: orca.Metrics{{Name: orca.InFlightMetric, Value: 8}}}
	if err := orcahttp.AppendHeader(h, &r, orcahttp.BinaryHeader); err != nil {
		panic(err)
	}
}

// A proxy reports on itself: what the server behind it says would be taken for that, or be a second report.
func TestHandlerAroundAProxyReportsOnThatAlone(t *testing.T) {
	for name, report := range proxied {
		_, behind := serve(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { report(w) }))
		target, err := url.Parse(behind)
		if err != nil {
			t.Fatal(err)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		t.Cleanup(transport.CloseIdleConnections)
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport,
			ErrorLog: log.New(io.Discard, "", 0)}
		for _, proto := range protos {
			for _, trailer := range []bool{false, true} {
				for _, format := range []orcahttp.Format{orcahttp.BinaryHeader, orcahttp.Text, orcahttp.JSON} {
					h := &orcahttp.Handler{Next: proxy, Tracker: orca.NewTracker(orca.TrackerConfig{}), Format: format, Trailer: trailer}
					what := fmt.Sprintf("%s, %s, format %v, Trailer %v", name, proto, format, trailer)
					client, front := serve(t, proto, h)
					a := do(t, client, request(t, "GET", front)) // fails if there are two
					if rif, ok := a.report.Named.Get(orca.InFlightMetric); !ok || rif > 1 {
						t.Errorf("%s: %v in flight, %v, want the proxy's own", what, rif, ok)
					}
					if a.inHeader == a.inTrailer {
						t.Errorf("%s: in the header %v, in the trailer %v, want one", what, a.inHeader, a.inTrailer)
					}
					if name == "announced trailer" && a.Trailer.Get("X-Own") != "1" {
						t.Errorf("%s: another trailer is lost", what)
					}
					quiet := *h
					quiet.OnRequest = true
					_, front = serve(t, proto, &quiet)
					if a = do(t, client, request(t, "GET", front)); a.inHeader || a.inTrailer {
						t.Errorf("%s: a report that nobody asked the proxy for", what)
					}
				}
			}
		}
	}
}

// What Add adds is sent in every format, and what everybody reports is not lost over it.
func TestHandlerSendsBinaryWhatAFormatCannotCarry(t *testing.T) {
	long := strings.Repeat("x", 40)
	adds := map[string]func(r *orca.Report){
		"many digits": func(r *orca.Report) {
			for i := range 100 {
				r.Utilizations.Set(long[:i%20+1]+string(rune('a'+i)), 5.123456789012345e-300)
			}
		},
		"many escapes": func(r *orca.Report) {
			for i := range 100 {
				r.Utilizations.Set(strings.Repeat("\x01", 30)+string(rune('a'+i)), 1)
			}
		},
	}
	for _, name := range []string{"cpu:0", "a=b", "a,b", " a", "a\n", "\"\\"} {
		adds[name] = func(r *orca.Report) { r.Named.Set(name, 1) }
	}
	for name, add := range adds {
		for _, format := range []orcahttp.Format{orcahttp.BinaryHeader, orcahttp.Text, orcahttp.JSON, orcahttp.Binary} {
			tr := orca.NewTracker(orca.TrackerConfig{Add: add})
			var r orca.Report
			tr.Report(&r, 2e9) // Add is called when rates are measured
			w := httptest.NewRecorder()
			h := &orcahttp.Handler{Next: http.NotFoundHandler(), Tracker: tr, Format: format}
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			found, err := orcahttp.ParseHeader(&r, w.Result().Header)
			if !found || err != nil || len(r.Named)+len(r.Utilizations) < 2 {
				t.Errorf("%q, format %v: found %v, %v, %d names", name, format, found, err, len(r.Named)+len(r.Utilizations))
			}
		}
	}
}

// Unknown members are a newer backend's, of which there are not hundreds.
func TestJSONWithHundredsOfMembersIsRefused(t *testing.T) {
	for n, want := range map[int]error{orca.MaxEntries - 1: nil, orca.MaxEntries: orca.TooManyEntries} {
		var text strings.Builder
		text.WriteString(`JSON {"cpu_utilization": 0.5`)
		for i := range n {
			fmt.Fprintf(&text, `, "unknown%d": 1`, i)
		}
		var r orca.Report
		if err := orcahttp.ParseValue(&r, text.String()+"}"); !errors.Is(err, want) || want == nil && r.CPU != 0.5 {
			t.Errorf("with %d unknown members: %v, CPU %v, want %v", n, err, r.CPU, want)
		}
	}
}
