package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// What a server may say costs at most its own request: neither a panic, nor a wait that the configuration does not allow, nor a
// request that stays in flight.
func FuzzHostileAnswers(f *testing.F) {
	for _, s := range []struct {
		status         int
		after, metrics string
		length         int64
		body           string
	}{
		{200, "", "", 0, ""},
		{503, "99999999999999999999", "TEXT cpu_utilization=nan", -1, "x"},
		{429, "Mon, 01 Jan 9999 00:00:00 GMT", "BIN ////", math.MaxInt64, "x"},
		{503, "-1", `JSON {"cpuUtilization": 1e999}`, -1, ""},
		{0, "0x10", "TEXT rps_fractional=1,rps_fractional=2", math.MinInt64, "y"},
		{-5, "\x00", strings.Repeat("TEXT ", 5000), 1, ""},
		{999, "1e9", "TEXT named_metrics.=1", 5, "z"},
		{304, " \t", "\xff\xfe", 10, ""},
		{100, "٣", "TEXT utilization.total=-0", 0, "x"},
		{501, "1, 2", "JSON []", 3, "abcdef"},
	} {
		f.Add(s.status, s.after, s.metrics, s.length, s.body)
	}
	f.Fuzz(func(t *testing.T, status int, after, metrics string, length int64, body string) {
		tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}},
			Config: evenkeel.Config{Reports: &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights}, Policy: picker.WeightedRoundRobin{}},
			Retry:  &RetryConfig{Statuses: []int{429, 503, 504}, Backoff: time.Millisecond, MaxRetryAfter: 1},
		}, func(_ string, req *http.Request) (*http.Response, error) {
			resp := answer(req, status, body)
			resp.ContentLength = length
			resp.Header["Retry-After"] = []string{after}
			resp.Header["Endpoint-Load-Metrics"] = []string{metrics}
			resp.Trailer = http.Header{"Endpoint-Load-Metrics": {metrics, after}}
			return resp, nil
		})
		req := request(t, "GET", svc, nil)
		resp, err := tr.RoundTrip(req)
		if err != nil || resp.Request != req || resp.StatusCode != status {
			t.Fatalf("%v", err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		for _, e := range one(t, tr).Endpoints {
			if e.InFlight != 0 || !(e.Weight >= 0) || math.IsInf(e.Weight, 0) || e.Avoided > 40*time.Second {
				t.Errorf("%+v", e)
			}
		}
	})
}

// Whatever a resolver says is taken as a whole, or refused as a whole with every problem's place, value and bound; the last good
// list serves on.
func FuzzHostileResolvers(f *testing.F) {
	for _, s := range []string{
		"10.0.0.9 1", "10.0.0.9 NaN", "10.0.0.9 -1", "10.0.0.9 +Inf\n10.0.0.9 1e300", "10.0.0.9 0", "10.0.0.9 1\n10.0.0.9:80 1", "::1:80 1", "[::1]:0 1",
		"10.0.0.9#1025 1", "a..b 1", strings.Repeat("x", 300) + " 1", "\x00 1", "10.0.0.1:99999 1", "10.0.0.9 5e-324", "[fe80::1%25eth0]:1 2", " 1", "10.0.0.9 1\n\n10.0.0.8 -0",
	} {
		f.Add(s)
	}
	f.Add(strings.Repeat("10.0.0.9 1\n", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		var list []Address
		for line := range strings.SplitSeq(text, "\n") {
			addr, weight, _ := strings.Cut(line, " ")
			w, _ := strconv.ParseFloat(weight, 64)
			list = append(list, Address{Addr: addr, Weight: evenkeel.WeightOf(w)})
		}
		r := &script{first: addrs("10.0.0.1"), started: make(chan struct{}, 1)}
		tr := stubbed(t, &Transport{Resolver: r}, stubAnswer)
		roundTripAll(t, tr)
		<-r.started
		err := r.sink().Update(list)
		roundTripAll(t, tr)
		s := one(t, tr)
		switch {
		case err == nil && (len(s.Endpoints) != len(list) || s.ResolveError != nil):
			t.Errorf("%q was taken and is %d endpoints, %v", text, len(s.Endpoints), s.ResolveError)
		case err != nil && (len(s.Endpoints) != 1 || s.Endpoints[0].ID != "10.0.0.1:80" || !errors.Is(s.ResolveError, err)):
			t.Errorf("%q was refused (%v), and there are %+v", text, err, s)
		case err != nil && (!strings.Contains(err.Error(), "address ") || !strings.Contains(err.Error(), ", want ") || len(err.Error()) > 16<<10):
			t.Errorf("%q: %d bytes of error do not say where and what: %.200v", text, len(err.Error()), err)
		}
	})
}

// Whatever stands in a URL, a Host, a pin or a method is refused by name, or passed on.
func FuzzHostileRequests(f *testing.F) {
	for _, s := range [][4]string{
		{"http", "svc.test", "svc.test", "10.0.0.1"}, {"", "", "", ""}, {"HTTP", "svc.test:", "", "::1:80"}, {"http", "[::1", "a b\r\nX: y", "\x00"},
		{"https", "%zz", "\xff", "10.0.0.1:0"}, {"http", "svc.test:080", "", "10.0.0.1#2"}, {"http", strings.Repeat("a.", 200), "", strings.Repeat("1", 99)},
		{"http", "1.2.3", "", "[::1]:80"}, {"http", "[fe80::1%25eth0]:80", "", "10.0.0.1:80:80"}, {"ws", "svc.test", "", "%"}, {"http", "user@svc.test", "", " "},
		{"http", "xn--bcher-kva.example", "bücher.example", "bücher.example"}, {"http", "svc.test:65536", "", ""}, {"http", ":80", "", ""},
	} {
		f.Add(s[0], s[1], s[2], s[3], "GET")
		f.Add(s[0], s[1], s[2], s[3], "CONNECT")
	}
	f.Fuzz(func(t *testing.T, scheme, host, header, pin, method string) {
		sent := 0
		tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}}}, func(addr string, req *http.Request) (*http.Response, error) {
			if sent++; req.Host != header {
				t.Errorf("Host %q became %q", header, req.Host)
			}
			req.Body.Close() // as net/http does
			return answer(req, 200, ""), nil
		})
		for _, ctx := range []context.Context{t.Context(), WithEndpoint(t.Context(), pin), WithAvoid(t.Context(), pin, host)} {
			body := &closable{Reader: strings.NewReader("x")}
			req := (&http.Request{Method: method, URL: &url.URL{Scheme: scheme, Host: host}, Host: header, Header: http.Header{}, Body: body}).WithContext(ctx)
			before := sent
			resp, err := tr.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
				continue
			}
			if sent != before || body.closed.Load() == 0 || !strings.HasPrefix(err.Error(), "httpclient: ") || len(err.Error()) > 4<<10 {
				t.Errorf("%q %q %q: %v; sent: %v, closed: %d", scheme, host, pin, err, sent != before, body.closed.Load())
			}
		}
		if n := inFlight(tr); n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// A server on the wire may say anything, too.
func TestHostileServersFailTheirRequestsAlone(t *testing.T) {
	for _, text := range []string{
		"", "\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "HTTP/1.1 101 Switching\r\n\r\n", "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope", "HTTP/1.1 503 x\r\nRetry-After: 1e99\r\nContent-Length: 9999\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 50), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		hostile := peer(t, func(conn net.Conn) { readRequest(conn); _, _ = io.WriteString(conn, text) })
		tr := &Transport{Resolver: Static{{Addr: hostile}}, Retry: &RetryConfig{Statuses: []int{503}, Attempts: 2, Backoff: time.Millisecond}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		resp, err := tr.RoundTrip(request(t, "GET", svc, nil).WithContext(ctx))
		var failed *AttemptError
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		} else if !errors.As(err, &failed) || failed.Endpoint != hostile {
			t.Errorf("%.40q: %v, want an AttemptError that names the endpoint", text, err)
		}
		if err != nil && ctx.Err() != nil {
			t.Errorf("%.40q: it took all its time: %v", text, err)
		}
		cancel()
		if n := inFlight(tr); n != 0 {
			t.Errorf("%.40q: %d in flight", text, n)
		}
		tr.Close()
	}
}

// The settings that take numbers take none that are not.
func TestNumbersThatAreNoneAreRefused(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), 1e300} {
		err := errors.Join(RetryConfig{Budget: RetryBudget{Percent: v, PerSecond: v}}.Validate(), HedgeConfig{Quantile: v}.Validate())
		for _, field := range []string{"RetryConfig.Budget.Percent is ", "RetryConfig.Budget.PerSecond is ", "HedgeConfig.Quantile is "} {
			if want := field + fmt.Sprint(v) + ", want "; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %q in it", err, want)
			}
		}
	}
}
