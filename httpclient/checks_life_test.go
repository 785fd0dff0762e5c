package httpclient

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// Of a subset's endpoints alone is anything asked.
func TestOnlySelectedEndpointsAreChecked(t *testing.T) {
	ws := wards(t, 8, plain)
	h := often()
	tr := &Transport{Resolver: Static(listOf(ws...)), Config: evenkeel.Config{Health: &h, Subset: &subset.Config{Size: 3, Seed: 4}}}
	c := client(t, tr)
	fetch(t, c, svc)
	asked := func() (n int) {
		for _, w := range ws {
			if w.checks.Load() > 0 {
				n++
			}
		}
		return n
	}
	eventually(t, "they are checked", func() bool { return asked() == 3 })
	// One that fails has somebody take its place, who is checked then.
	for _, w := range ws {
		if w.checks.Load() > 0 {
			w.status.Store(503)
			break
		}
	}
	for _, w := range ws {
		if w.checks.Load() > 0 && w.status.Load() == 0 {
			w.status.Store(503)
			break
		}
	}
	eventually(t, "others are selected and checked", func() bool { return asked() > 3 })
	if n := asked(); n > 6 {
		t.Errorf("%d of 8 are checked", n)
	}
}

// Healthy endpoints stay so: no check's context ends with another's.
func TestBug41HealthyEndpointsStayHealthy(t *testing.T) {
	ws := wards(t, 2, plain)
	tr, c, _ := checked(t, often(), ws...)
	eventually(t, "each has had 40 checks", func() bool {
		fetch(t, c, svc)
		for _, w := range ws {
			if stateOf(t, tr, w) != evenkeel.Ready {
				t.Fatalf("%v", one(t, tr).Checks)
			}
		}
		return ws[0].checks.Load() > 40 && ws[1].checks.Load() > 40
	})
	for _, w := range ws {
		if n := w.conns.Load(); n > 4 { // one for the checks, the rest for requests
			t.Errorf("%d connections for %d checks", n, w.checks.Load())
		}
	}
}

// Checks that pass do not bring back who fails its requests.
func TestBug36GreenChecksBringNobodyBack(t *testing.T) {
	ws := wards(t, 5, plain)
	ws[4].traffic.Store(500)
	h := often()
	tr := &Transport{Resolver: Static(listOf(ws...)), Config: evenkeel.Config{Policy: picker.RoundRobin{}, Health: &h, Outlier: &outlier.Config{}}}
	c := client(t, tr)
	eventually(t, "it is ejected", func() bool {
		fetch(t, c, svc)
		return one(t, tr).Ejected == 1
	})
	before, checks := ws[4].served.Load(), ws[4].checks.Load()
	sent := 0
	eventually(t, "many checks have passed", func() bool {
		fetch(t, c, svc)
		sent++
		return ws[4].checks.Load() > checks+20
	})
	if n := ws[4].served.Load() - before; n > 3 {
		t.Errorf("%d of %d requests went to who fails them all", n, sent)
	}
	if e := endpointStats(t, one(t, tr), ws[4].addr); e.State != evenkeel.Ready || e.Ejection.State == outlier.Available {
		t.Errorf("%+v", e)
	}
}

// Checks connect as requests do: by Base's dialer, and trusting whom it trusts.
func TestChecksConnectAsRequestsDo(t *testing.T) {
	ws := wards(t, 2, withTLS)
	base := ws[0].trusting()
	var dials atomic.Int64
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	h := often()
	h.Protocol, h.Interval, h.Timeout, h.NoTraffic = evenkeel.CheckHTTPS, 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	tr := &Transport{Base: base, Resolver: Static(listOf(ws...)), Config: evenkeel.Config{Health: &h}}
	c := client(t, tr)
	fetch(t, c, "https://example.com/")
	eventually(t, "both pass", func() bool {
		s := one(t, tr)
		return s.Checks[ws[0].addr] == "HTTP 200" && s.Checks[ws[1].addr] == "HTTP 200"
	})
	if n := dials.Load(); n < 3 {
		t.Errorf("%d dials", n)
	}
	if got := *ws[0].host.Load(); got != "example.com" {
		t.Errorf("checks are for the host %q", got)
	}
}

// A server that speaks HTTP/2 and has no health service passes, and the picture has a warning.
func TestServerWithoutGRPCHealthIsWarnedOf(t *testing.T) {
	servers := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "12")
		}
	}, func(s *httptest.Server) {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP1(true)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	})
	h := evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC}
	tr := &Transport{Resolver: static(servers), Config: evenkeel.Config{Health: &h}}
	fetch(t, client(t, tr), svc)
	eventually(t, "there is a warning", func() bool { return len(one(t, tr).Warnings) == 1 })
	if s := one(t, tr); !strings.Contains(s.Warnings[0], "grpc.health.v1.Health") || !strings.Contains(s.Checks[servers[0].addr], "no health service") ||
		s.Endpoints[0].State != evenkeel.Ready {
		t.Errorf("%v, %v", s.Warnings, s.Checks)
	}
}

func TestWrongChecksAreRefusedWithEverythingElse(t *testing.T) {
	tr := &Transport{MaxTargets: -1, Config: evenkeel.Config{Health: &evenkeel.HealthConfig{Port: -1, Path: "x"}}}
	_, err := client(t, tr).Do(request(t, "GET", svc, nil))
	for _, want := range []string{"MaxTargets", "Health", "Port", "Path"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s: %v", want, err)
		}
	}
}

// Many targets with checks, made and closed at once: goleak finds what is left.
func TestBug41CloseDuringChecksLeavesNothing(t *testing.T) {
	ws := wards(t, 2, plain)
	for i := range 30 {
		ws[0].status.Store(int64(200 + 303*(i%2)))
		tr, c, r := checked(t, often(), ws...)
		var users sync.WaitGroup
		users.Go(func() { _ = r.sink().Update(listOf(ws[i%2])) }) // or it is closed already
		users.Go(func() { tr.Snapshot(); c.CloseIdleConnections() })
		tr.Close()
		users.Wait()
	}
}

func TestAuthorityIsTheHostHeader(t *testing.T) {
	for target, want := range map[Target]string{
		{"http", "a", "80"}: "a", {"https", "a", "443"}: "a", {"http", "a", "443"}: "a:443", {"https", "::1", "443"}: "[::1]", {"http", "::1", "81"}: "[::1]:81",
	} {
		if got := target.authority(); got != want {
			t.Errorf("%v: %q, want %q", target, got, want)
		}
	}
}
