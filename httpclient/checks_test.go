package httpclient

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// ward is a server whose answers to checks are not those to requests.
type ward struct {
	*server
	status  atomic.Int64 // of checks; 0: 200
	traffic atomic.Int64 // status of requests; 0: 200
	checks  atomic.Int64
	served  atomic.Int64
	waits   atomic.Pointer[chan struct{}] // checks do, if it is set
	host    atomic.Pointer[string]        // of the last check
}

func (w *ward) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	counter, status := &w.served, &w.traffic
	if r.URL.Path == "/healthz" {
		counter, status = &w.checks, &w.status
		w.host.Store(&r.Host)
	}
	counter.Add(1)
	if c := w.waits.Load(); c != nil && counter == &w.checks {
		select {
		case <-*c:
		case <-r.Context().Done():
		}
	}
	if s := status.Load(); s != 0 {
		rw.WriteHeader(int(s))
	}
}

func wards(t *testing.T, n int, start func(*httptest.Server)) []*ward {
	t.Helper()
	list := make([]*ward, n)
	for i := range list {
		list[i] = new(ward)
		list[i].server = serve(t, 1, list[i].ServeHTTP, start)[0]
	}
	return list
}

func listOf(list ...*ward) []Address {
	var all []Address
	for _, w := range list {
		all = append(all, Address{Addr: w.addr})
	}
	return all
}

// often are checks that come to something within a test's patience.
func often() evenkeel.HealthConfig {
	const every = 25 * time.Millisecond
	return evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP, Path: "/healthz", Interval: every, Timeout: every, NoTraffic: every}
}

// checked returns a Transport over the wards, and the resolver that changes their list.
func checked(t *testing.T, h evenkeel.HealthConfig, list ...*ward) (*Transport, *http.Client, *script) {
	t.Helper()
	r := &script{first: listOf(list...), started: make(chan struct{}, 1)}
	tr := &Transport{Resolver: r, Config: evenkeel.Config{Policy: picker.RoundRobin{}, Health: &h}}
	c := client(t, tr)
	fetch(t, c, svc)
	<-r.started
	return tr, c, r
}

func stateOf(t *testing.T, tr *Transport, w *ward) evenkeel.State {
	t.Helper()
	return endpointStats(t, one(t, tr), w.addr).State
}

// An endpoint whose checks are red gets nothing, though its requests would succeed, and comes back when they are
// green. What the checks say can be seen.
func TestRedChecksKeepRequestsAway(t *testing.T) {
	ws := wards(t, 3, plain)
	tr, c, _ := checked(t, often(), ws...)
	for range 2 {
		ws[1].status.Store(503)
		eventually(t, "it fails its checks", func() bool { return stateOf(t, tr, ws[1]) == evenkeel.Failing })
		s := one(t, tr)
		if e := endpointStats(t, s, ws[1].addr); e.Available || e.Reasons()[0] != "failing checks (checks)" || s.Checks[ws[1].addr] != "HTTP 503" {
			t.Errorf("%+v, %v", e, s.Checks)
		}
		before := ws[1].served.Load()
		for range 30 {
			fetch(t, c, svc)
		}
		if n := ws[1].served.Load() - before; n != 0 {
			t.Errorf("%d requests to an endpoint that fails its checks", n)
		}
		ws[1].status.Store(200)
		eventually(t, "it is back", func() bool {
			fetch(t, c, svc)
			return ws[1].served.Load() > before
		})
		if s := one(t, tr); s.Checks[ws[1].addr] != "HTTP 200" || slices.Contains(endpointStats(t, s, ws[1].addr).Reasons(), "failing checks (checks)") {
			t.Errorf("when it is back: %v", s.Checks)
		}
	}
	if got := *ws[0].host.Load(); got != "svc.test" {
		t.Errorf("checks are for the host %q", got)
	}
}

// A new endpoint gets its first request after its first check, and what was there before serves meanwhile.
func TestNewEndpointWaitsForItsFirstCheck(t *testing.T) {
	ws := wards(t, 3, plain)
	slow := often()
	slow.Timeout, slow.Interval, slow.NoTraffic = 10*time.Second, 10*time.Second, 10*time.Second
	tr, c, r := checked(t, slow, ws[0])
	eventually(t, "the first check has passed", func() bool { return one(t, tr).Checks[ws[0].addr] == "HTTP 200" })
	gate := make(chan struct{})
	ws[1].waits.Store(&gate)
	ws[2].waits.Store(&gate)
	ws[2].status.Store(500)

	var over atomic.Bool
	var users sync.WaitGroup
	for range 2 { // requests while the list changes
		users.Go(func() {
			for !over.Load() {
				fetch(t, c, svc)
			}
		})
	}
	if err := r.sink().Update(listOf(ws...)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new ones are being checked", func() bool { return ws[1].checks.Load() == 1 && ws[2].checks.Load() == 1 })
	served := ws[0].served.Load()
	eventually(t, "the old one serves", func() bool { return ws[0].served.Load() > served+50 })
	if a, b := ws[1].served.Load(), ws[2].served.Load(); a+b != 0 {
		t.Errorf("%d and %d requests before the first check", a, b)
	}
	s := one(t, tr)
	if e := endpointStats(t, s, ws[1].addr); e.State != evenkeel.Unchecked || e.Source != evenkeel.Checks || s.Checks[ws[1].addr] != "the first check has not ended" {
		t.Errorf("%+v, %v", e, s.Checks)
	}
	close(gate)
	eventually(t, "who passed serves", func() bool { return ws[1].served.Load() > 50 })
	over.Store(true)
	users.Wait()
	if n := ws[2].served.Load(); n != 0 || stateOf(t, tr, ws[2]) != evenkeel.Failing {
		t.Errorf("who failed its first check got %d requests", n)
	}
}

// Not even while a list is being taken over does a request get to who has to wait.
func TestNoRequestOvertakesTheFirstCheck(t *testing.T) {
	h := evenkeel.HealthConfig{Interval: time.Hour, Timeout: time.Hour}
	r := &script{first: addrs("10.0.0.1:80"), started: make(chan struct{}, 1)}
	var checks atomic.Int64
	tr := stubbed(t, &Transport{Resolver: r, Config: evenkeel.Config{Policy: picker.RoundRobin{}, Health: &h}, Base: &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			if checks.Add(1); addr != "10.0.0.1:80" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			a, b := net.Pipe()
			_ = b.Close() // a check asks for no more than a connection
			return a, nil
		},
	}}, func(addr string, req *http.Request) (*http.Response, error) {
		if addr != "10.0.0.1:80" {
			t.Errorf("a request to %s, which has to wait", addr)
		}
		return answer(req, 200, ""), nil
	})
	c := &http.Client{Transport: tr}
	fetch(t, c, svc)
	<-r.started
	eventually(t, "the first is known to be healthy", func() bool { return one(t, tr).Checks["10.0.0.1:80"] == "connected" })
	var over atomic.Bool
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for !over.Load() {
				fetch(t, c, svc)
			}
		})
	}
	list := addrs("10.0.0.1:80")
	for i := range 250 {
		list = append(list[:1:1], Address{Addr: fmt.Sprintf("10.0.%d.2:80", i)}, Address{Addr: fmt.Sprintf("10.0.%d.3:80", i)})
		if err := r.sink().Update(list); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the last two are being checked", func() bool { return checks.Load() >= 3 })
	over.Store(true)
	users.Wait()
}

// When all are replaced at once nobody is known to be healthy, so that nobody is waited for, and no
// request fails in between.
func TestListOfNewEndpointsIsUsedAtOnce(t *testing.T) {
	ws := wards(t, 4, plain)
	gate := make(chan struct{})
	defer close(gate)
	tr, c, r := checked(t, often(), ws[:2]...)
	eventually(t, "the first checks have passed", func() bool { return len(one(t, tr).Checks) == 2 && ws[0].checks.Load() > 2 && ws[1].checks.Load() > 2 })
	var over atomic.Bool
	var users sync.WaitGroup
	users.Go(func() {
		for !over.Load() {
			fetch(t, c, svc) // which fails the test if the request fails
		}
	})
	for i := range 20 {
		if err := r.sink().Update(listOf(ws[2*(i%2):][:2]...)); err != nil {
			t.Fatal(err)
		}
	}
	over.Store(true)
	users.Wait()
}

// Without requests checks are rare, and the first request brings them back.
func TestChecksFollowTheRequests(t *testing.T) {
	ws := wards(t, 1, plain)
	h := often()
	h.NoTraffic = time.Hour
	_, c, _ := checked(t, h, ws...)
	eventually(t, "with requests it is checked often", func() bool {
		fetch(t, c, svc)
		return ws[0].checks.Load() > 5
	})
	before := ws[0].checks.Load()
	pause := time.NewTimer(20 * h.Interval)
	<-pause.C
	if n := ws[0].checks.Load() - before; n > 6 {
		t.Errorf("%d checks without requests", n)
	}
	before = ws[0].checks.Load()
	fetch(t, c, svc)
	eventually(t, "a request brings them back", func() bool { return ws[0].checks.Load() > before })
}

// Endpoints that have left are not checked, and the connection for it closes; their checks begin again when they
// return. The others keep their verdicts over each list.
func TestChecksStopWhenAnEndpointLeaves(t *testing.T) {
	ws := wards(t, 3, plain)
	h := often()
	h.Fall = 1000 // a verdict that would take long to come back
	tr, _, r := checked(t, h, ws...)
	ws[2].status.Store(503)
	eventually(t, "two are checked", func() bool { return ws[0].checks.Load() > 3 && ws[1].checks.Load() > 3 })
	if err := r.sink().Update(listOf(ws[0])); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its connections close", func() bool { return ws[1].open.Load() == 0 && ws[2].open.Load() == 0 })
	n, others := ws[1].checks.Load(), ws[0].checks.Load()
	eventually(t, "the other is still checked", func() bool { return ws[0].checks.Load() > others+20 })
	if got := ws[1].checks.Load(); got != n {
		t.Errorf("%d checks after it left", got-n)
	}
	if got := one(t, tr).Checks; len(got) != 1 {
		t.Errorf("Checks are of %v", got)
	}
	eventuallyFailing := func(when string) {
		eventually(t, when, func() bool { return stateOf(t, tr, ws[2]) == evenkeel.Failing })
	}
	if err := r.sink().Update(listOf(ws...)); err != nil {
		t.Fatal(err)
	}
	eventuallyFailing("by the first check when it is back")
	for range 10 {
		if err := r.sink().Update(listOf(ws[2], ws[0])); err != nil {
			t.Fatal(err)
		}
		if stateOf(t, tr, ws[2]) != evenkeel.Failing {
			t.Error("a list has made it healthy")
		}
		if err := r.sink().Update(listOf(ws...)); err != nil {
			t.Fatal(err)
		}
	}
	tr.Close()
	eventually(t, "all connections close with the Transport", func() bool {
		return ws[0].open.Load()+ws[1].open.Load()+ws[2].open.Load() == 0
	})
}
