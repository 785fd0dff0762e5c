package httpclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/picker"
)

// Twenty-four things that balancers over net/http get wrong. Each has a test that is named TestTrap and its number; those that
// are not here stand with what they are about.
//
//	 1  the answer belongs to the caller's request                   nethttp_test.go
//	 2  Host and server name are the URL's, on redirects too         nethttp_test.go
//	 3  the request's body is closed on every error                  errors_test.go
//	 4  waits end with the request's context                         lifecycle_test.go, here
//	 5  an upgraded connection can be written to                     nethttp_test.go
//	 6  HTTP/2 has an empty body of its own                          nethttp_test.go
//	 7  trailers come through, declared or not                       nethttp_test.go
//	 8  a request ends once                                          accounting_test.go
//	 9  a body that is never closed is not believed for ever         here, leak_test.go
//	10  the context says whether the caller left, not the error      outcome_test.go
//	11  fields of Base work or are refused                           base_test.go
//	12  a fresh endpoint gets requests while the others are loaded   here
//	13  ten thousand endpoints start fast, and one can come and go   here
//	14  connections are used again                                   nethttp_test.go
//	15  a restart fails no request                                   restart_test.go
//	16  of two endpoints neither is compared with itself             nethttp_test.go
//	17  a body is never sent again in part                           retry_test.go
//	18  Retry-After is bounded                                       retry_test.go
//	19  compression is the caller's and net/http's affair            here
//	20  the client's Timeout is a timeout                            outcome_test.go
//	21  HTTP/2 can be switched off for the process                   base_test.go
//	22  a refused Expect: 100-continue is retried with all the body  restart_test.go
//	23  an upload counts until it has ended, as its answer does      upload_test.go
//	24  nothing is left after the end                                lifecycle_test.go
const traps = 24

// numbersOf returns the numbers that tests have behind that prefix in their names.
func numbersOf(t *testing.T, prefix string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	name := regexp.MustCompile(`(?m)^func ` + prefix + `(\d+)[A-Z]\w*\(t \*testing\.T\)`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
	}
	return found
}

func TestEachTrapHasATest(t *testing.T) {
	found := numbersOf(t, "TestTrap")
	for i := 1; i <= traps; i++ {
		if !found[fmt.Sprint(i)] {
			t.Errorf("trap %d has no test", i)
		}
	}
}

// Nobody waits for a place: beyond a limit a request fails at once, whatever time it has.
func TestTrap4RequestBeyondALimitDoesNotWait(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-release
	}, plain)
	defer close(release)
	tr := &Transport{Resolver: static(s), Config: evenkeel.Config{Limit: evenkeel.LimitConfig{PerEndpoint: 1}}}
	c := client(t, tr)
	resp, err := c.Do(request(t, "GET", svc, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	body := &closable{Reader: strings.NewReader("x")}
	if _, err := c.Do(request(t, "POST", svc, body).WithContext(ctx)); !errors.Is(err, ErrOverloaded) || time.Since(start) > 30*time.Second || body.closed.Load() == 0 {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

// One body is left open. After ten minutes in which its endpoint has ended no request, the endpoint is as good as any other.
func TestTrap9BodyThatIsNeverClosedIsNotBelievedForEver(t *testing.T) {
	for _, p := range []evenkeel.Policy{nil, picker.P2C{Signal: picker.InFlight}, picker.Least{Signal: picker.InFlight}} {
		synctest.Test(t, func(t *testing.T) {
			got := map[string]int{}
			tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}}, Config: evenkeel.Config{Policy: p},
				TargetIdleTimeout: time.Hour}, func(addr string, req *http.Request) (*http.Response, error) {
				got[addr]++
				return stubAnswer(addr, req)
			})
			if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); err != nil { // its body is forgotten
				t.Fatal(err)
			}
			time.Sleep(picker.LeakAfter + 2*sweepEvery)
			leaked := int64(0)
			for _, e := range one(t, tr).Endpoints {
				leaked += e.Leaked
			}
			clear(got)
			for range 400 {
				roundTripAll(t, tr)
			}
			// Five standard deviations of a fair coin are 50.
			if a, b := got["10.0.0.1:80"], got["10.0.0.2:80"]; leaked != 1 || a < 150 || b < 150 {
				t.Errorf("%T: %d leaked; the next 400 requests are split %d : %d", p, leaked, a, b)
			}
			tr.Close()
		})
	}
}

// Of four endpoints each has five requests in flight. A fifth that joins is not overlooked.
func TestTrap12FreshEndpointAmongLoadedOnesGetsRequests(t *testing.T) {
	for _, c := range []struct {
		policy evenkeel.Policy
		within int
	}{
		{picker.Least{Signal: picker.InFlight}, 1},
		{picker.P2C{Signal: picker.InFlight}, 25}, // three of five pairs do not have it: by chance one in 350,000
		{nil, 25},
		{picker.RoundRobin{}, 5},
	} {
		release := make(chan struct{})
		s := serve(t, 5, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			if r.URL.Path == "/held" {
				<-release
			}
		}, plain)
		r := &script{first: addrs(s[0].addr, s[1].addr, s[2].addr, s[3].addr), started: make(chan struct{}, 1)}
		tr := &Transport{Resolver: r, Config: evenkeel.Config{Policy: c.policy}}
		cl := client(t, tr)
		var held []io.Closer
		for i := range 20 {
			req := request(t, "GET", svc+"held", nil)
			resp, err := cl.Do(req.WithContext(WithEndpoint(req.Context(), s[i%4].addr)))
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, resp.Body)
		}
		<-r.started
		if err := r.sink().Update(addrs(s[0].addr, s[1].addr, s[2].addr, s[3].addr, s[4].addr)); err != nil {
			t.Fatal(err)
		}
		picks := 0
		for ; s[4].requests.Load() == 0 && picks <= c.within; picks++ {
			fetch(t, cl, svc)
		}
		if picks > c.within {
			t.Errorf("%T: the fresh endpoint has nothing after %d requests", c.policy, picks)
		}
		close(release)
		for _, h := range held {
			h.Close()
		}
		tr.Close()
	}
}

// manyAddresses are so many addresses, of which somebody else answers all.
func manyAddresses(n int) (list []Address) {
	for i := range n {
		list = append(list, Address{Addr: fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255)})
	}
	return list
}

// Starting on 10,000 endpoints takes less than a second, and that one of them goes and comes back is work for that one and a few
// bytes for each other: hundred times as many endpoints must not make it hundred times as dear.
func TestTrap13TenThousandEndpointsStartFastAndFlapCheaply(t *testing.T) {
	if testcost.Race {
		t.Skip("the race detector makes memory dear")
	}
	const few, many, flaps = 100, 10_000, 20
	with := func(n int) (*Transport, func()) {
		tr := &Transport{Resolver: Static(manyAddresses(n))}
		tr.newLeaf = func(Target, string) leaf {
			return leafFunc(func(req *http.Request) (*http.Response, error) { return stubAnswer("", req) })
		}
		t.Cleanup(tr.Close)
		return tr, func() { roundTripAll(t, tr) }
	}
	start := testcost.Least(t, 3, func() { tr, first := with(many); first(); tr.Close() })[0]
	t.Logf("start: %v", start)
	if start > 2*time.Second {
		t.Errorf("the first answer of %d endpoints took %v of processor time, want at most 1s", many, start)
	}
	flap := func(n int) func() {
		tr, first := with(n)
		first()
		addr := manyAddresses(n)[n/2].Addr
		return func() {
			for range flaps {
				if !tr.Drain(addr) || !tr.Resume(addr) {
					t.Fatal("it is not listed")
				}
			}
		}
	}
	took := testcost.Least(t, 7, flap(few), flap(many))
	t.Logf("a flap: %v of %d, %v of %d", took[0]/flaps, few, took[1]/flaps, many)
	if took[1]/flaps > 2*time.Millisecond {
		t.Errorf("one flap among %d endpoints takes %v, want at most 1ms", many, took[1]/flaps)
	}
}

// What the caller says of compression is what the server sees; what net/http undoes, the caller sees undone.
func TestTrap19CompressionIsLeftToTheCallerAndNetHTTP(t *testing.T) {
	zipped := new(bytes.Buffer)
	z := gzip.NewWriter(zipped)
	_, _ = io.WriteString(z, "hello")
	_ = z.Close()
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Asked", r.Header.Get("Accept-Encoding"))
		if r.Header.Get("Accept-Encoding") == "gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes())
			return
		}
		_, _ = io.WriteString(w, "hello")
	}
	for _, p := range []struct {
		url string
		s   []*server
	}{{svc, serve(t, 1, handler, plain)}, {"https://example.com/", serve(t, 1, handler, withHTTP2)}} {
		for _, c := range []struct {
			ask     string // by the caller
			off     bool   // in Base
			asked   string
			body    string
			undone  bool
			encoded string
		}{
			{"", false, "gzip", "hello", true, ""},
			{"gzip", false, "gzip", zipped.String(), false, "gzip"},
			{"identity", false, "identity", "hello", false, ""},
			{"", true, "", "hello", false, ""},
		} {
			base := p.s[0].trusting()
			if base == nil {
				base = &http.Transport{}
			}
			base.DisableCompression = c.off
			tr := &Transport{Resolver: static(p.s), Base: base}
			req := request(t, "GET", p.url, nil)
			if c.ask != "" {
				req.Header.Set("Accept-Encoding", c.ask)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != c.body || err != nil || resp.Header.Get("X-Asked") != c.asked || resp.Uncompressed != c.undone ||
				resp.Header.Get("Content-Encoding") != c.encoded || len(req.Header) > 1 {
				t.Errorf("%s, %+v: %q, %v, uncompressed %v, headers %v of a request with %v", resp.Proto, c, body, err, resp.Uncompressed, resp.Header, req.Header)
			}
			if n := inFlight(tr); n != 0 {
				t.Errorf("%s, %+v: %d in flight", resp.Proto, c, n)
			}
			tr.Close()
		}
	}
}

// What 1 asks for holds for bodies that are read long after, and from several goroutines, and once they are closed.
func TestTrap1RequestStaysTheCallersAfterClose(t *testing.T) {
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }, plain)
	tr := &Transport{Resolver: static(s), Retry: &RetryConfig{TryTimeout: time.Minute}, Hedge: &HedgeConfig{Delay: time.Millisecond}}
	defer tr.Close()
	var mu sync.Mutex
	kept := map[*http.Request]*http.Response{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 25 {
				req := request(t, "PUT", fmt.Sprintf("%s%d/%d", svc, i, k), strings.NewReader("x"))
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(body) != req.URL.Path || err != nil {
					t.Errorf("%q, %v", body, err)
				}
				mu.Lock()
				kept[req] = resp
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	tr.Close()
	for req, resp := range kept {
		if resp.Request != req {
			t.Errorf("the answer to %v is now that to %v", req.URL, resp.Request.URL)
		}
	}
}
