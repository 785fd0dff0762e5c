package httpclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// closable is a request body that knows whether it was closed.
type closable struct {
	io.Reader
	closed atomic.Int64
}

func (c *closable) Close() error { c.closed.Add(1); return nil }

func TestTrap3RequestBodyIsClosedOnEveryErrorPath(t *testing.T) {
	done := func(t *Transport) *Transport { t.Close(); return t }
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		tr   *Transport
		url  *url.URL
		ctx  context.Context
		want error
		text string
	}{
		{"closed", done(&Transport{}), parse(t, svc), nil, ErrClosed, ""},
		{"bad setting", &Transport{MaxTargets: -1}, parse(t, svc), nil, nil, "httpclient: MaxTargets is -1, want 0 to 65536"},
		{"nil URL", &Transport{}, nil, nil, nil, "httpclient: URL is nil, want http or https"},
		{"scheme", &Transport{}, parse(t, "ftp://svc.test/"), nil, nil, `httpclient: URL.Scheme is "ftp", want http or https`},
		{"no host", &Transport{}, parse(t, "http:///path"), nil, nil, `httpclient: URL.Host is "", want an IP address or a name`},
		{"not ASCII", &Transport{}, parse(t, "http://bücher.example/"), nil, nil, `httpclient: URL.Host is "bücher.example", want`},
		{"port", &Transport{}, parse(t, "http://svc.test:99999/"), nil, nil, `httpclient: port of URL.Host is "99999", want 1 to 65535`},
		{"port 0", &Transport{}, parse(t, "http://svc.test:0/"), nil, nil, `httpclient: port of URL.Host is "0", want 1 to 65535`},
		{"no endpoints", &Transport{Resolver: &script{first: []Address{}}}, parse(t, svc), nil, evenkeel.ErrEmpty,
			"httpclient: http://svc.test:80: pick an endpoint: "},
		{"first list is late", &Transport{Resolver: &script{}}, parse(t, svc), canceled, context.Canceled,
			"httpclient: http://svc.test:80: wait for the first list of addresses: context canceled"},
		{"no such host", &Transport{Resolver: failingResolver{}}, parse(t, svc), nil, errResolve,
			"httpclient: http://svc.test:80: resolve: no such host"},
		{"refused list", &Transport{Resolver: &script{first: addrs("::1:80", "")}}, parse(t, svc), nil, nil,
			`httpclient: http://svc.test:80: resolve: httpclient: address 0: Addr is "::1:80", want brackets`},
		{"an address with and without the target's port", &Transport{Resolver: Static{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.1"}}}, parse(t, svc), nil, nil,
			`address 1: Addr is "10.0.0.1", the same as address 0, want each once`},
		{"resolver ended", &Transport{Resolver: mute{}}, parse(t, svc), nil, errNoList, ""},
	} {
		body := &closable{Reader: strings.NewReader("x")}
		req := &http.Request{Method: "POST", URL: c.url, Header: http.Header{}, Body: body, ContentLength: 1}
		if c.ctx != nil {
			req = req.WithContext(c.ctx)
		}
		resp, err := c.tr.RoundTrip(req)
		if resp != nil || err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v %q", c.name, err, c.want, c.text)
		}
		if body.closed.Load() == 0 {
			t.Errorf("%s: the request's body is open", c.name)
		}
		c.tr.Close()
	}
}

func parse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var errResolve = errors.New("no such host")

// failingResolver fails, as DNS does while a name does not exist.
type failingResolver struct{}

func (failingResolver) Watch(ctx context.Context, _ Target, sink Sink) error {
	sink.Error(errResolve)
	<-ctx.Done()
	return ctx.Err()
}

// mute is a resolver that has nothing to say.
type mute struct{}

func (mute) Watch(context.Context, Target, Sink) error { return nil }

func TestEveryWrongSettingIsNamedAtOnce(t *testing.T) {
	tr := &Transport{
		Resolver:          Static{{Addr: "::1:80"}, {Addr: "", Weight: evenkeel.WeightOf(-1)}},
		Base:              &http.Transport{Proxy: http.ProxyFromEnvironment},
		MaxTargets:        1 << 20,
		TargetIdleTimeout: -time.Second,
	}
	for range 2 { // the second request is refused too
		_, err := tr.RoundTrip(request(t, "GET", svc, nil))
		for _, want := range []string{"address 0", "address 1: Weight", "address 1: Addr", "Base.Proxy", "MaxTargets is 1048576", "TargetIdleTimeout is -1s"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %q in it", err, want)
			}
		}
	}
	tr.Close()
}

func TestBadListChangesNothing(t *testing.T) {
	r := &script{first: addrs("10.0.0.1", "10.0.0.2"), started: make(chan struct{}, 1)}
	tr := stubbed(t, &Transport{Resolver: r}, stubAnswer)
	roundTripAll(t, tr)
	<-r.started
	for i, bad := range [][]Address{addrs("10.0.0.3", "10.0.0.3"), addrs("::1:80"), {{Addr: "10.0.0.3", Weight: evenkeel.WeightOf(-1)}}} {
		if err := r.sink().Update(bad); err == nil {
			t.Errorf("list %v was taken", bad)
		}
		roundTripAll(t, tr)
		s := one(t, tr)
		if len(s.Endpoints) != 2 || s.Endpoints[0].ID != "10.0.0.1:80" || s.ResolveErrors != uint64(i+1) || s.ResolveError == nil {
			t.Errorf("after %v: %+v", bad, s)
		}
	}
	if err := r.sink().Update(addrs("10.0.0.3")); err != nil {
		t.Fatal(err)
	}
	if s := one(t, tr); len(s.Endpoints) != 1 || s.ResolveError != nil || s.Updates != 2 {
		t.Errorf("after a good list: %+v", s)
	}
}

func TestDrainedEndpointGetsNoRequests(t *testing.T) {
	tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1", Weight: evenkeel.WeightOf(0)}, {Addr: "10.0.0.2"}}}, stubAnswer)
	for range 100 {
		roundTripAll(t, tr)
	}
	if e := endpointStats(t, one(t, tr), "10.0.0.1:80"); e.Picks != 0 {
		t.Errorf("%d requests to an endpoint of weight 0", e.Picks)
	}
}

func TestListOfDrainedEndpointsAloneServesEqually(t *testing.T) {
	zero := evenkeel.WeightOf(0)
	tr := stubbed(t, &Transport{
		Resolver: Static{{Addr: "10.0.0.1", Weight: zero}, {Addr: "10.0.0.2", Weight: zero}},
		Config:   evenkeel.Config{Policy: picker.WeightedRoundRobin{}},
	}, stubAnswer)
	for range 10 {
		roundTripAll(t, tr)
	}
	s := one(t, tr)
	if !s.AllDrained || s.Endpoints[0].Picks != 5 || s.Endpoints[1].Picks != 5 {
		t.Errorf("%+v, want 5 requests to each", s.Stats)
	}
}

// moody is a resolver whose Watch fails, except each third time.
type moody struct{ calls atomic.Int64 }

func (m *moody) Watch(ctx context.Context, _ Target, sink Sink) error {
	if m.calls.Add(1)%3 != 0 {
		return errResolve
	}
	_ = sink.Update(addrs("10.0.0.1"))
	<-ctx.Done()
	return ctx.Err()
}

func TestResolverThatFailsIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{}
		tr := stubbed(t, &Transport{Resolver: m}, stubAnswer)
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); !errors.Is(err, errResolve) {
			t.Errorf("%v, want %v", err, errResolve)
		}
		time.Sleep(4 * time.Second) // 1 s and 2 s, each up to 20 % longer
		roundTripAll(t, tr)
		if n := m.calls.Load(); n != 3 {
			t.Errorf("Watch was called %d times, want 3", n)
		}
		tr.Close()
	})
}

func TestErrorsOfTheDialerReachTheCaller(t *testing.T) {
	tr := &Transport{Resolver: Static{{Addr: "127.0.0.1:1"}}} // nobody listens there
	_, err := client(t, tr).Get(svc)
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, want what the dialer said", err)
	}
	if e := one(t, tr).Endpoints[0]; e.InFlight != 0 || e.Success >= 1 || e.Latency != 0 {
		t.Errorf("in flight %d, success %v, latency %v", e.InFlight, e.Success, e.Latency)
	}
	tr = &Transport{Resolver: Static{{Addr: "127.0.0.1:1"}}, Base: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
		},
	}}
	_, err = client(t, tr).Get(svc)
	var ue *url.Error
	if !errors.As(err, &ue) || !ue.Timeout() {
		t.Errorf("%v, want a timeout", err)
	}
}
