package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// What other balancers over net/http were measured to do, and this one does not. Each has a test that is named TestPeerDefect
// and its number; some are traps too, whose tests go further.
//
//	 1  Host is the endpoint's address after a redirect, and of requests made by hand    trap 2
//	 2  the answer's request is another caller's by then                                  trap 1
//	 3  the end waits without a limit for bodies that nobody closes
//	 4  the wait for the first addresses ignores the request's context                    trap 4
//	 5  a connection for each request or two under concurrency                            trap 14
//	 6  a fresh endpoint is invisible behind loaded ones                                  trap 12
//	 7  the end forgets endpoints that were leaving already
//	 8  "no addresses" and "none healthy" are one error
//	 9  an endpoint that refuses connections fails its share of requests for ever
//	10  when all checks fail, all requests do
//	11  one body that is never closed biases the choice for ever                          trap 9
//	12  starting takes time that grows with the square of the endpoints                   trap 13
//	13  the request's body stays open when no endpoint can be picked                      trap 3
//	14  checks name the endpoint's address as Host
//	15  an endpoint is compared with itself, and ties have a favourite                    trap 16
//	16  the rewritten URL is what proxies, traces and redirects see                       trap 2
//	17  subsets of two targets share a hash, and sort the caller's list
const peerDefects = 17

func TestEachPeerDefectHasATest(t *testing.T) {
	found := numbersOf(t, "TestPeerDefect")
	for i := 1; i <= peerDefects; i++ {
		if !found[fmt.Sprint(i)] {
			t.Errorf("defect %d has no test", i)
		}
	}
}

func TestPeerDefect1RequestMadeByHandHasTheURLsHost(t *testing.T) {
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, r.Host)
	}, plain)
	c := client(t, &Transport{Resolver: static(s)})
	for _, host := range []string{"", "named.test"} {
		resp, err := c.Do(&http.Request{Method: "GET", URL: parse(t, "http://svc.test/b"), Host: host})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := map[string]string{"": "svc.test", "named.test": "named.test"}[host]; string(body) != want {
			t.Errorf("Host is %q, want %q", body, want)
		}
	}
	if _, body := fetch(t, c, "http://svc.test/a"); body != "svc.test" {
		t.Errorf("Host after a redirect is %q", body)
	}
}

func TestPeerDefect2AnswersKeepTheirRequests(t *testing.T) {
	c := client(t, &Transport{Resolver: static(serve(t, 2, hello, plain))})
	var all []*http.Response
	for i := range 200 {
		resp, err := c.Do(request(t, "GET", svc+fmt.Sprint(i), nil))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
		all = append(all, resp)
	}
	for i, resp := range all {
		if resp.Request.URL.Path != "/"+fmt.Sprint(i) {
			t.Fatalf("answer %d is to %s", i, resp.Request.URL)
		}
	}
}

// A caller forgets the body of one answer, and that of a 204, which has none to close.
func TestPeerDefect3EndIsBoundedWhateverIsLeftOpen(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/204" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.(http.Flusher).Flush()
		<-release
	}, plain)
	tr := &Transport{Resolver: static(s)}
	if _, err := tr.RoundTrip(request(t, "GET", svc+"204", nil)); err != nil || inFlight(tr) != 0 {
		t.Errorf("%v, %d in flight after a 204", err, inFlight(tr))
	}
	empty := &Transport{Resolver: static(s)}
	if _, err := empty.RoundTrip(request(t, "GET", svc+"204", nil)); err != nil {
		t.Error(err)
	}
	if err := empty.Shutdown(t.Context()); err != nil {
		t.Errorf("%v with an unclosed 204", err)
	}
	resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := tr.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	tr.Close()
	resp.Body.Close()
}

func TestPeerDefect4FirstAddressesAreNotWaitedForLongerThanTheCallerWants(t *testing.T) {
	c := client(t, &Transport{Resolver: &script{}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := c.Do(request(t, "GET", svc, nil).WithContext(ctx))
	var ue *url.Error
	if !errors.As(err, &ue) || !ue.Timeout() || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

func TestPeerDefect5ConcurrentRequestsShareConnections(t *testing.T) {
	s := serve(t, 4, hello, plain)
	c := client(t, &Transport{Resolver: static(s)})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 50 {
				fetch(t, c, svc)
			}
		})
	}
	wg.Wait()
	conns := int64(0)
	for _, one := range s {
		conns += one.conns.Load()
	}
	if conns > 4*32 { // as many as could be at work at once on each
		t.Errorf("%d connections of 1600 requests from 32 callers to 4 servers", conns)
	}
}

func TestPeerDefect6LeastLoadedSeesAFreshEndpointAtOnce(t *testing.T) {
	r := &script{first: addrs("10.0.0.1", "10.0.0.2", "10.0.0.3"), started: make(chan struct{}, 1)}
	got := map[string]int{}
	tr := stubbed(t, &Transport{Resolver: r, Config: evenkeel.Config{Policy: picker.Least{Signal: picker.InFlight}}},
		func(addr string, req *http.Request) (*http.Response, error) {
			got[addr]++
			return stubAnswer(addr, req)
		})
	for range 15 { // held open: five on each
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); err != nil {
			t.Fatal(err)
		}
	}
	<-r.started
	_ = r.sink().Update(addrs("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"))
	for range 5 {
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if got["10.0.0.4:80"] != 5 {
		t.Errorf("shares %v, want the next five on the fresh one", got)
	}
}

// An endpoint has left the list and still has a request. Shutdown waits for that too.
func TestPeerDefect7EndWaitsForEndpointsThatWereLeaving(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		if r.URL.Path == "/held" {
			<-release
		}
		_, _ = io.WriteString(w, "all of it")
	}, plain)
	r := &script{first: addrs(s[0].addr), started: make(chan struct{}, 1)}
	tr := &Transport{Resolver: r}
	resp, err := tr.RoundTrip(request(t, "GET", svc+"held", nil))
	if err != nil {
		t.Fatal(err)
	}
	<-r.started
	_ = r.sink().Update(addrs(s[1].addr))
	fetch(t, &http.Client{Transport: tr}, svc)
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := tr.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		over.Store(true)
	})
	wait(100 * time.Millisecond)
	if over.Load() {
		t.Error("Shutdown is over with a request in flight")
	}
	close(release)
	if body, err := io.ReadAll(resp.Body); string(body) != "all of it" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
	resp.Body.Close()
	wg.Wait()
}

func TestPeerDefect8ErrorsTellNoAddressesFromNoneReady(t *testing.T) {
	empty := client(t, &Transport{Resolver: &script{first: []Address{}}})
	_, err := empty.Get(svc)
	if !errors.Is(err, evenkeel.ErrEmpty) || errors.Is(err, evenkeel.ErrNoneReady) || !errors.Is(err, ErrNoEndpoints) {
		t.Errorf("no addresses: %v", err)
	}
	tr := &Transport{Resolver: static(serve(t, 1, hello, plain))}
	drained := client(t, tr)
	fetch(t, drained, svc)
	tr.Drain(one(t, tr).Endpoints[0].ID)
	_, err = drained.Get(svc)
	if !errors.Is(err, evenkeel.ErrNoneReady) || errors.Is(err, evenkeel.ErrEmpty) || !errors.Is(err, ErrNoEndpoints) {
		t.Errorf("none ready: %v", err)
	}
}

// One of three refuses connections. Under no rule does that fail a request, and after some it is left alone.
func TestPeerDefect9RefusingEndpointFailsNobodyAndIsLeftAlone(t *testing.T) {
	for _, p := range []evenkeel.Policy{picker.RoundRobin{}, picker.P2C{Signal: picker.InFlight}, picker.Least{Signal: picker.InFlight}, nil} {
		tr := &Transport{Resolver: append(static(serve(t, 2, hello, plain)), Address{Addr: "127.0.0.1:1"}), Config: evenkeel.Config{Policy: p}}
		c := client(t, tr)
		for i := range 600 {
			resp, err := c.Do(request(t, []string{"GET", "POST"}[i%2], svc, nil))
			if err != nil {
				t.Fatalf("%T: request %d: %v", p, i, err)
			}
			resp.Body.Close()
		}
		if dead := endpointStats(t, one(t, tr), "127.0.0.1:1"); dead.Picks > 100 {
			t.Errorf("%T: %d of 600 requests were tried at the dead endpoint", p, dead.Picks)
		}
	}
}

// All checks fail, and all endpoints serve.
func TestPeerDefect10FailingChecksAloneStopNobody(t *testing.T) {
	w := wards(t, 3, plain)
	for _, w := range w {
		w.status.Store(503)
	}
	tr, c, _ := checked(t, often(), w...)
	eventually(t, "all have failed their checks", func() bool {
		return !slices.ContainsFunc(one(t, tr).Endpoints, func(e evenkeel.EndpointStats) bool { return e.State != evenkeel.Failing })
	})
	for range 30 {
		if resp, _ := fetch(t, c, svc); resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
	for i, w := range w {
		if w.served.Load() < 5 {
			t.Errorf("endpoint %d served %d of 30", i, w.served.Load())
		}
	}
}

func TestPeerDefect11OneForgottenBodyIsForgotten(t *testing.T) {
	TestTrap9BodyThatIsNeverClosedIsNotBelievedForEver(t)
}

// Four times as many endpoints take about four times as long to start, not sixteen times.
func TestPeerDefect12StartIsLinear(t *testing.T) {
	if testcost.Race {
		t.Skip("the race detector makes memory dear")
	}
	s := serve(t, 1, hello, plain)[0]
	base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.addr)
	}}
	start := func(n int) func() {
		list := Static(manyAddresses(n))
		return func() {
			tr := &Transport{Resolver: list, Base: base}
			fetch(t, &http.Client{Transport: tr}, svc)
			tr.Close()
		}
	}
	took := testcost.Least(t, 5, start(1000), start(4000))
	t.Logf("%v for 1,000 endpoints, %v for 4,000", took[0], took[1])
	if took[1] > 2*5*took[0] {
		t.Errorf("%v for 1,000 endpoints, %v for 4,000, want about four times as much", took[0], took[1])
	}
}

func TestPeerDefect13BodyIsClosedWhenNobodyCanBePicked(t *testing.T) {
	body := &closable{Reader: strings.NewReader("x")}
	tr := &Transport{Resolver: &script{first: []Address{}}}
	defer tr.Close()
	if _, err := tr.RoundTrip(request(t, "POST", svc, body)); err == nil || body.closed.Load() != 1 {
		t.Errorf("%v, closed %d times", err, body.closed.Load())
	}
}

func TestPeerDefect14ChecksNameTheServiceAsHost(t *testing.T) {
	w := wards(t, 1, plain)
	checked(t, often(), w...)
	eventually(t, "it is checked", func() bool { return w[0].host.Load() != nil })
	if host := *w[0].host.Load(); host != "svc.test" {
		t.Errorf("Host of a check is %q, want svc.test", host)
	}
}

func TestPeerDefect15TiesHaveNoFavourite(t *testing.T) {
	got := map[string]int{}
	tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}}, Config: evenkeel.Config{Policy: picker.P2C{Signal: picker.InFlight}}},
		func(addr string, req *http.Request) (*http.Response, error) {
			got[addr]++
			return stubAnswer(addr, req)
		})
	for range 1000 { // both are idle each time; five standard deviations are 79
		roundTripAll(t, tr)
	}
	if a := got["10.0.0.1:80"]; a < 420 || a > 580 {
		t.Errorf("shares %v", got)
	}
}

func TestPeerDefect16NobodySeesAnAddressForTheURL(t *testing.T) {
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Location", "next") }, plain)
	tr := &Transport{Resolver: static(s)}
	defer tr.Close()
	resp, err := tr.RoundTrip(request(t, "GET", svc+"dir/page", nil))
	if err != nil {
		t.Fatal(err)
	}
	to, err := resp.Location()
	if err != nil || to.String() != svc+"dir/next" || resp.Request.URL.String() != svc+"dir/page" {
		t.Errorf("%v, %v, of a request for %v", to, err, resp.Request.URL)
	}
}

// Two targets get the same list at the same time, and choose subsets of it. Run with -race.
func TestPeerDefect17SubsetsShareNothingAndLeaveTheListAlone(t *testing.T) {
	var list Static
	for i := range 50 {
		list = append(list, Address{Addr: fmt.Sprintf("10.0.0.%d:80", 50-i)})
	}
	was := slices.Clone(list)
	for _, c := range []subset.Config{{Size: 5, Seed: 1}, {Size: 5, ClientIndex: subset.IndexOf(3)}} {
		tr := stubbed(t, &Transport{Resolver: list, Config: evenkeel.Config{Subset: &c}}, stubAnswer)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				resp, err := tr.RoundTrip(request(t, "GET", fmt.Sprintf("http://svc%d.test/", i%8), nil))
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			})
		}
		wg.Wait()
		for _, s := range tr.Snapshot() {
			if n := len(s.Endpoints); n < 5 || n > 10 {
				t.Errorf("%v has %d endpoints", s.Target, len(s.Endpoints))
			}
		}
	}
	if !slices.Equal(list, was) {
		t.Error("the caller's list was sorted")
	}
}
