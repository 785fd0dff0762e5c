package httpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// pinnedTo returns a request that goes to addr alone.
func pinnedTo(t testing.TB, addr string) *http.Request {
	t.Helper()
	return request(t, "GET", svc, nil).WithContext(WithEndpoint(t.Context(), addr))
}

// Every pick is the request's own: an endpoint that nobody has used yet is not looked for among all.
func TestPinTakesOnePick(t *testing.T) {
	a := act(t, 9, &Transport{}, ok)
	for _, addr := range []string{"10.0.0.9", "10.0.0.8:80", "10.0.0.9:80"} {
		if _, err := a.get(pinnedTo(t, addr)); err != nil {
			t.Fatal(err)
		}
	}
	picks := uint64(0)
	for _, e := range one(t, a.Transport).Endpoints {
		picks += e.Picks
	}
	if got := strings.Join(a.sent, " "); got != "10.0.0.9:80 10.0.0.8:80 10.0.0.9:80" || picks != 3 {
		t.Errorf("sent to %s with %d picks", got, picks)
	}
}

// Who names an endpoint gets it, whatever is thought of it; and what comes of that is booked.
func TestPinReachesAnEjectedEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := true
		a := act(t, 4, &Transport{Retry: &RetryConfig{Disabled: true}, Config: evenkeel.Config{Outlier: &outlier.Config{}}},
			func(_ int, addr string, req *http.Request) (*http.Response, error) {
				if bad && addr == "10.0.0.1:80" {
					return answer(req, 500, ""), nil
				}
				return answer(req, 200, "x"), nil
			})
		for range 40 {
			_, _ = a.get(request(t, "GET", svc, nil))
		}
		e := endpointStats(t, one(t, a.Transport), "10.0.0.1:80")
		if e.Available {
			t.Fatalf("%+v is not ejected", e)
		}
		a.tries()
		for _, want := range []int{500, 200} {
			if status, err := a.get(pinnedTo(t, "10.0.0.1")); status != want || err != nil || a.sent[len(a.sent)-1] != "10.0.0.1:80" {
				t.Errorf("%d, %v, want %d", status, err, want)
			}
			bad = false
		}
		if inFlight(a.Transport) != 0 {
			t.Errorf("%d in flight", inFlight(a.Transport))
		}
		a.Close()
	})
}

func TestPinSaysWhyItsEndpointCannotBeAsked(t *testing.T) {
	tr := stubbed(t, &Transport{
		Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2", Weight: evenkeel.WeightOf(0)}, {Addr: "10.0.0.3"}},
	}, stubAnswer)
	roundTripAll(t, tr)
	tr.Drain("10.0.0.1")
	for addr, why := range map[string]string{"10.0.0.1": "is drained", "10.0.0.2:80": "is drained", "10.0.0.3:8080": "is not in the list"} {
		body := &closable{Reader: strings.NewReader("x")}
		req := request(t, "POST", svc, body)
		_, err := tr.RoundTrip(req.WithContext(WithEndpoint(req.Context(), addr)))
		if !errors.Is(err, ErrNoEndpoints) || !errors.Is(err, ErrUnreached) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), addr) || body.closed.Load() == 0 {
			t.Errorf("%s: %v, want %q", addr, err, why)
		}
	}
	tr.Resume("10.0.0.1")
	if _, err := tr.RoundTrip(pinnedTo(t, "10.0.0.1")); err != nil {
		t.Errorf("resumed: %v", err)
	}
	some := stubbed(t, &Transport{
		Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}, {Addr: "10.0.0.3"}},
		Config:   evenkeel.Config{Subset: &subset.Config{Size: 1, Seed: 1}},
	}, stubAnswer)
	roundTripAll(t, some)
	refused := 0
	for _, addr := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		if _, err := some.RoundTrip(pinnedTo(t, addr)); err != nil && strings.Contains(err.Error(), "is not in this client's subset") && errors.Is(err, ErrNoEndpoints) {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d of 3 are not in the subset of one", refused)
	}
}

// A limit is not a matter of preference.
func TestPinKeepsToTheEndpointsLimit(t *testing.T) {
	tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}},
		Config: evenkeel.Config{Limit: evenkeel.LimitConfig{PerEndpoint: 1}}}, stubAnswer)
	first, err := tr.RoundTrip(pinnedTo(t, "10.0.0.2"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.RoundTrip(pinnedTo(t, "10.0.0.2")); !errors.Is(err, ErrOverloaded) || errors.Is(err, ErrNoEndpoints) {
		t.Errorf("%v, want %v", err, ErrOverloaded)
	}
	first.Body.Close()
	if resp, err := tr.RoundTrip(pinnedTo(t, "10.0.0.2")); err != nil {
		t.Error(err)
	} else {
		resp.Body.Close()
	}
}

// A target that was evicted in the meantime is asked for anew, as for any request.
func TestPinOutlivesTheTargetsEviction(t *testing.T) {
	tr := tenStubs(t, nil)
	onlyGroup(tr).close()
	if _, err := onlyGroup(tr).send(pinnedTo(t, "10.0.0.15:80")); err != errEvicted {
		t.Errorf("%v, want %v", err, errEvicted)
	}
}

// Text that is no address is somebody's mistake, and nobody's endpoint.
func TestPinOfNoAddressIsRefused(t *testing.T) {
	a := act(t, 2, &Transport{}, ok)
	for _, addr := range []string{"::1:80", "a b", "10.0.0.1:99999", "\x00", strings.Repeat("x", 1000), "10.0.0.1#0"} {
		_, err := a.get(pinnedTo(t, addr))
		if err == nil || errors.Is(err, ErrNoEndpoints) || !strings.Contains(err.Error(), "want ") || len(err.Error()) > 400 {
			t.Errorf("%.20q: %v", addr, err)
		}
	}
	if status, err := a.get(request(t, "GET", svc, nil).WithContext(WithEndpoint(WithEndpoint(t.Context(), "a b"), ""))); status != 200 {
		t.Errorf("a pin that was taken back: %v", err)
	}
	if n := a.tries(); n != 1 {
		t.Errorf("%d were sent", n)
	}
}

// A pin costs the text of the endpoint's ID if the port has to be filled in, and nothing else.
func TestPinAllocatesNothingMore(t *testing.T) {
	tr := tenStubs(t, picker.RoundRobin{})
	plain := request(t, "GET", svc, nil)
	floor := testing.AllocsPerRun(200, func() { roundTrip(t, tr, plain) })
	for addr, most := range map[string]float64{"10.0.0.15:80": 0, "10.0.0.15": 3} {
		req := pinnedTo(t, addr)
		if n := testing.AllocsPerRun(200, func() { roundTrip(t, tr, req) }) - floor; n > most {
			t.Errorf("%s: %v allocations more than without a pin, want at most %v", addr, n, most)
		}
	}
}

// What is avoided is found without a walk over the list, and costs no request a pick for long.
func TestAvoidingFindsOutOnce(t *testing.T) {
	a := act(t, 9, &Transport{}, ok)
	ctx := WithAvoid(t.Context(), "10.0.0.1", "10.0.0.2:80", "not one", "")
	for range 90 {
		if _, err := a.get(request(t, "GET", svc, nil).WithContext(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	picks := uint64(0)
	for _, e := range one(t, a.Transport).Endpoints {
		picks += e.Picks
	}
	if picks > 92 {
		t.Errorf("%d picks of 90 requests", picks)
	}
	for _, addr := range a.sent {
		if addr == "10.0.0.1:80" || addr == "10.0.0.2:80" {
			t.Fatalf("sent to %s", addr)
		}
	}
	if n := inFlight(a.Transport); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// One context is shared by requests to targets whose ports differ.
func TestPinWithoutAPortHasTheTargets(t *testing.T) {
	tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}}}, func(addr string, req *http.Request) (*http.Response, error) {
		return answer(req, 200, addr), nil
	})
	ctx := WithEndpoint(t.Context(), "10.0.0.2")
	for url, want := range map[string]string{"http://svc.test/": "10.0.0.2:80", "https://svc.test/": "10.0.0.2:443", "http://svc.test:8080/": "10.0.0.2:8080"} {
		resp, err := tr.RoundTrip(request(t, "GET", url, nil).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(resp.Body); string(got) != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// Ready is who has passed a check, if there are checks: who waits for that does not want the first failures.
func TestWaitReadyWaitsForAPassedCheck(t *testing.T) {
	w := wards(t, 2, plain)
	for _, w := range w {
		w.status.Store(503)
	}
	h := often()
	tr := &Transport{Resolver: Static(listOf(w...)), Config: evenkeel.Config{Health: &h}}
	defer tr.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := tr.WaitReady(ctx, svc)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no endpoint has passed its health check") {
		t.Errorf("%v, want what was waited for", err)
	}
	w[1].status.Store(0)
	if err := tr.WaitReady(t.Context(), svc); err != nil {
		t.Error(err)
	}
	if w[0].served.Load()+w[1].served.Load() != 0 {
		t.Error("it sent requests of its own")
	}
}
