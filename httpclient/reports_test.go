package httpclient

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcahttp"
	"github.com/evenkeel/evenkeel/picker"
)

// reportWriters write the report of a backend that could answer so many requests a second, by hand, in each
// form there is: before the body, or as a trailer, declared or not.
var reportWriters = map[string]func(w http.ResponseWriter, capacity float64){
	"TEXT": func(w http.ResponseWriter, capacity float64) {
		w.Header().Set("endpoint-load-metrics", fmt.Sprintf("TEXT application_utilization=0.5, rps_fractional=%g", capacity/2))
	},
	"JSON": func(w http.ResponseWriter, capacity float64) {
		text, _ := json.Marshal(map[string]any{"applicationUtilization": 0.5, "rpsFractional": capacity / 2})
		w.Header().Set("endpoint-load-metrics", "JSON "+string(text))
	},
	"BIN": func(w http.ResponseWriter, capacity float64) { writeReport(w.Header(), capacity, orcahttp.Binary) },
	"binary": func(w http.ResponseWriter, capacity float64) {
		writeReport(w.Header(), capacity, orcahttp.BinaryHeader)
	},
	"declared trailer": func(w http.ResponseWriter, capacity float64) {
		w.Header().Set("Trailer", "endpoint-load-metrics")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("endpoint-load-metrics", fmt.Sprintf("TEXT application_utilization=0.5, rps_fractional=%g", capacity/2))
	},
	"undeclared trailer": func(w http.ResponseWriter, capacity float64) {
		_, _ = io.WriteString(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"endpoint-load-metrics", fmt.Sprintf("TEXT application_utilization=0.5, rps_fractional=%g", capacity/2))
	},
}

func writeReport(h http.Header, capacity float64, f orcahttp.Format) {
	r := orca.Report{Application: 0.5, QPS: capacity / 2}
	if err := orcahttp.AppendHeader(h, &r, f); err != nil {
		panic(err)
	}
}

// reportedWeights takes weights from reports at once, and looks at them each 20 ms.
func reportedWeights(ask evenkeel.ReportFormat) evenkeel.Config {
	return evenkeel.Config{Policy: picker.WeightedRoundRobin{}, Reports: &evenkeel.ReportsConfig{
		Weights: evenkeel.ReportedWeights, Ask: ask,
		Weight: orca.WeightConfig{Blackout: -1, Period: 20 * time.Millisecond},
	}}
}

// unequal serves from three backends of capacities 100, 200 and 400 that report in this form.
func unequal(t *testing.T, start func(*httptest.Server), report func(w http.ResponseWriter, r *http.Request, capacity float64)) []*server {
	var all []*server
	for i := range 3 {
		capacity := 100 * float64(int(1)<<i)
		all = append(all, serve(t, 1, func(w http.ResponseWriter, r *http.Request) { report(w, r, capacity) }, start)...)
	}
	return all
}

func addresses(servers []*server) (list Static) {
	for _, s := range servers {
		list = append(list, Address{Addr: s.addr})
	}
	return list
}

// settled sends requests until the weights in force are 1/2, 1 and 2, and then checks the shares of 140 more.
func settled(t *testing.T, tr *Transport, servers []*server) {
	t.Helper()
	client := &http.Client{Transport: tr}
	send := func() {
		t.Helper()
		resp, err := client.Get("http://service.test/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	inForce := func() bool {
		stats := tr.Snapshot()[0]
		weights := map[string]float64{}
		for _, e := range stats.Endpoints {
			weights[e.ID] = e.Weight
		}
		return weights[servers[0].addr] == 0.5 && weights[servers[1].addr] == 1 && weights[servers[2].addr] == 2
	}
	deadline := time.Now().Add(20 * time.Second)
	for send(); !inForce(); send() {
		if time.Now().After(deadline) {
			t.Fatalf("the weights are %+v", tr.Snapshot()[0].Endpoints)
		}
	}
	var before [3]int64
	for i, s := range servers {
		before[i] = s.requests.Load()
	}
	for range 140 {
		send()
	}
	for i, want := range []int64{20, 40, 80} {
		if got := servers[i].requests.Load() - before[i]; got != want {
			t.Errorf("endpoint %d got %d of 140 requests, want %d", i, got, want)
		}
	}
}

func TestReportsOfEachFormBecomeWeights(t *testing.T) {
	for name, write := range reportWriters {
		for proto, start := range map[string]func(*httptest.Server){"HTTP/1.1": plain, "HTTP/2": unencryptedHTTP2} {
			t.Run(name+"/"+proto, func(t *testing.T) {
				t.Parallel()
				servers := unequal(t, start, func(w http.ResponseWriter, _ *http.Request, capacity float64) {
					write(w, capacity)
					if !strings.Contains(name, "trailer") {
						_, _ = io.WriteString(w, "body")
					}
				})
				tr := &Transport{Resolver: addresses(servers), Config: reportedWeights(evenkeel.AskNothing), Base: baseFor(proto)}
				defer tr.Close()
				settled(t, tr, servers)
			})
		}
	}
}

func unencryptedHTTP2(s *httptest.Server) {
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
}

func baseFor(proto string) *http.Transport {
	if proto == "HTTP/1.1" {
		return nil
	}
	base := &http.Transport{Protocols: new(http.Protocols)}
	base.Protocols.SetUnencryptedHTTP2(true)
	return base
}

// Some servers report only to those who ask. Asking changes nothing that the caller sees.
func TestServersThatReportOnlyWhenAskedAreAsked(t *testing.T) {
	servers := unequal(t, plain, func(w http.ResponseWriter, r *http.Request, capacity float64) {
		if r.Header.Get("endpoint-load-metrics-format") == "JSON" {
			reportWriters["JSON"](w, capacity)
		}
		_, _ = io.WriteString(w, r.Header.Get("X-Own"))
	})
	tr := &Transport{Resolver: addresses(servers), Config: reportedWeights(evenkeel.AskJSON)}
	defer tr.Close()
	settled(t, tr, servers)

	req, _ := http.NewRequest(http.MethodGet, "http://service.test/", nil)
	req.Header.Set("X-Own", "mine")
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if string(text) != "mine" || resp.Request != req || len(req.Header) != 1 {
		t.Errorf("the request became %+v, and the answer is %q of %p, want of %p", req.Header, text, resp.Request, req)
	}
	if resp.Header.Get("endpoint-load-metrics") == "" {
		t.Error("the report is not in the answer any more")
	}
}

func TestReportsThatAreNoGoodAreCountedAndHurtNobody(t *testing.T) {
	var calls atomic.Int64
	s := serve(t, 1, func(w http.ResponseWriter, _ *http.Request) {
		bad := []string{"TEXT cpu_utilization=nan", "JSON {", "whatever", "TEXT cpu_utilization=1e999, rps_fractional=-1"}
		w.Header().Set("endpoint-load-metrics", bad[calls.Add(1)%4])
		_, _ = io.WriteString(w, "body")
	}, plain)
	tr := &Transport{Resolver: addresses(s), Config: reportedWeights(evenkeel.AskNothing)}
	defer tr.Close()
	client := &http.Client{Transport: tr}
	for range 8 {
		resp, err := client.Get("http://service.test/")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "body" {
			t.Errorf("the answer is %q, %v", text, err)
		}
		_ = resp.Body.Close()
	}
	if stats := tr.Snapshot()[0]; stats.BadReports != 8 || stats.BadReport == nil {
		t.Errorf("%d bad reports are counted, the last %v, want 8", stats.BadReports, stats.BadReport)
	}
}

// A body may be closed while it is read. The trailer is net/http's until the read is over.
func TestTrailersAreLeftAloneWhileABodyIsClosed(t *testing.T) {
	servers := unequal(t, plain, func(w http.ResponseWriter, _ *http.Request, capacity float64) {
		reportWriters["undeclared trailer"](w, capacity)
	})
	tr := &Transport{Resolver: addresses(servers), Config: reportedWeights(evenkeel.AskNothing)}
	defer tr.Close()
	client := &http.Client{Transport: tr}
	for range 100 {
		resp, err := client.Get("http://service.test/")
		if err != nil {
			t.Fatal(err)
		}
		var reading sync.WaitGroup
		reading.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
		_ = resp.Body.Close()
		reading.Wait()
	}
}
