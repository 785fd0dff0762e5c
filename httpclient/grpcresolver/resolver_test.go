package grpcresolver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/evenkeel/evenkeel/httpclient"
)

// watching runs r's Watch in a bubble and calls f while it runs.
func watching(t *testing.T, r *Resolver, f func(*noted)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := &noted{hints: make(chan struct{}, 1)}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := r.Watch(ctx, svc, n); !errors.Is(err, context.Canceled) {
				t.Errorf("Watch: %v", err)
			}
		})
		synctest.Wait()
		f(n)
		cancel()
		wg.Wait()
	})
}

func endpoint(w uint32, addrs ...string) resolver.Endpoint {
	var e resolver.Endpoint
	for _, a := range addrs {
		e.Addresses = append(e.Addresses, resolver.Address{Addr: a})
	}
	if w > 0 {
		e = weight.Set(e, weight.EndpointInfo{Weight: w})
	}
	return e
}

func TestStatesBecomeLists(t *testing.T) {
	weighted := weight.Set(resolver.Endpoint{}, weight.EndpointInfo{Weight: 7}).Attributes
	for _, c := range []struct {
		name  string
		state resolver.State
		want  string
	}{
		{"nothing", resolver.State{}, ""},
		{"addresses", resolver.State{Addresses: []resolver.Address{{Addr: "10.0.0.1:80"}, {Addr: "svc:80", ServerName: "x"}}}, "10.0.0.1:80 svc:80"},
		{"endpoints win", resolver.State{Addresses: []resolver.Address{{Addr: "10.0.0.1:80"}}, Endpoints: []resolver.Endpoint{endpoint(0, "10.0.0.2:80")}}, "10.0.0.2:80"},
		{"weights", resolver.State{Endpoints: []resolver.Endpoint{endpoint(3, "10.0.0.1:80"), endpoint(0, "10.0.0.2:80")}}, "10.0.0.1:80=3 10.0.0.2:80"},
		{"weight of an address", resolver.State{Addresses: []resolver.Address{{Addr: "10.0.0.1:80", BalancerAttributes: weighted}}}, "10.0.0.1:80=7"},
		{"first of several addresses", resolver.State{Endpoints: []resolver.Endpoint{endpoint(0, "10.0.0.1:80", "[fd00::1]:80")}}, "10.0.0.1:80"},
		{"none of several", resolver.State{Endpoints: []resolver.Endpoint{{}, endpoint(0, "10.0.0.1:80")}}, "10.0.0.1:80"},
		{"twice", resolver.State{Endpoints: []resolver.Endpoint{endpoint(0, "10.0.0.1:80"), endpoint(0, "[::ffff:10.0.0.1]:80")}}, "10.0.0.1:80"},
		{"twice with weights", resolver.State{Endpoints: []resolver.Endpoint{endpoint(2, "10.0.0.1:80"), endpoint(3, "10.0.0.1:80")}}, "10.0.0.1:80=5"},
		{"other attributes", resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a:1"}}, Attributes: attributes.New("k", "v")}}}, "a:1"},
	} {
		m := manual.NewBuilderWithScheme("test")
		m.InitialState(c.state)
		watching(t, &Resolver{Builder: m}, func(n *noted) {
			if got, err := n.last(); got != c.want || err != nil {
				t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
			}
		})
	}
}

func TestUpdatesErrorsAndRefusalsAreTold(t *testing.T) {
	m := manual.NewBuilderWithScheme("test")
	var refused atomic.Pointer[error]
	m.UpdateStateCallback = func(err error) { refused.Store(&err) }
	watching(t, &Resolver{Builder: m}, func(n *noted) {
		m.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: "10.0.0.1:80"}}})
		if got, _ := n.last(); got != "10.0.0.1:80" || *refused.Load() != nil {
			t.Errorf("%s, %v", got, *refused.Load())
		}
		m.CC().ReportError(errTest)
		if _, err := n.last(); err != errTest {
			t.Errorf("%v, want %v", err, errTest)
		}
		m.CC().ReportError(nil)
		if _, err := n.last(); err == nil || !strings.Contains(err.Error(), "without saying which") {
			t.Errorf("%v", err)
		}
		//lint:ignore SA1019 old resolvers call it
		m.CC().NewAddress([]resolver.Address{{Addr: "10.0.0.2:80"}})
		if got, _ := n.last(); got != "10.0.0.2:80" {
			t.Errorf("%s", got)
		}
		n.refuse = errTest
		m.UpdateState(resolver.State{})
		if *refused.Load() != errTest {
			t.Errorf("%v, want the sink's error", *refused.Load())
		}
		if p := m.CC().ParseServiceConfig("{}"); p == nil || p.Err == nil {
			t.Errorf("%v, want a result with an error", p)
		}
	})
}

func TestTargetIsTheServiceOrWhatIsGiven(t *testing.T) {
	for _, c := range []struct{ given, url, endpoint, authority string }{
		{"", "test:///svc.test:8080", "svc.test:8080", "svc.test:8080"},
		{"test:///orders.shop:http", "test:///orders.shop:http", "orders.shop:http", "svc.test:8080"},
		{"test://server/orders?tag=a", "test://server/orders?tag=a", "orders", "svc.test:8080"},
		{"test:orders", "test:orders", "orders", "svc.test:8080"},
	} {
		m := manual.NewBuilderWithScheme("test")
		var got resolver.Target
		var opts resolver.BuildOptions
		m.BuildCallback = func(target resolver.Target, _ resolver.ClientConn, o resolver.BuildOptions) { got, opts = target, o }
		watching(t, &Resolver{Builder: m, Target: c.given}, func(*noted) {
			if got.URL.String() != c.url || got.Endpoint() != c.endpoint || opts.Authority != c.authority || !opts.DisableServiceConfig {
				t.Errorf("%q: %v, %q, %+v", c.given, &got.URL, got.Endpoint(), opts)
			}
		})
	}
	m := manual.NewBuilderWithScheme("test")
	var got string
	m.BuildCallback = func(target resolver.Target, _ resolver.ClientConn, _ resolver.BuildOptions) { got = target.Endpoint() }
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = (&Resolver{Builder: m}).Watch(ctx, httpclient.Target{Scheme: "http", Host: "fe80::1%eth0", Port: "80"}, &noted{})
		if got != "[fe80::1%eth0]:80" {
			t.Errorf("endpoint is %q", got)
		}
	})
}

func TestHintsAreResolveNowButNotOften(t *testing.T) {
	m := manual.NewBuilderWithScheme("test")
	var calls []time.Duration
	var start time.Time
	m.BuildCallback = func(resolver.Target, resolver.ClientConn, resolver.BuildOptions) { start = time.Now() }
	m.ResolveNowCallback = func(resolver.ResolveNowOptions) { calls = append(calls, time.Since(start)) }
	watching(t, &Resolver{Builder: m}, func(n *noted) {
		time.Sleep(time.Second)
		for range 120 { // 12 s
			select {
			case n.hints <- struct{}{}:
			default:
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		n.hints <- struct{}{}
		synctest.Wait()
		close(n.hints) // against the rules, and no reason to spin
		time.Sleep(time.Minute)
		want := []time.Duration{time.Second, 6 * time.Second, 11 * time.Second, 16 * time.Second, 73 * time.Second}
		synctest.Wait()
		if len(calls) != len(want) {
			t.Fatalf("calls at %v, want %v", calls, want)
		}
		for i := range want {
			if calls[i] != want[i] {
				t.Errorf("calls at %v, want %v", calls, want)
			}
		}
	})
}

// rogue is a builder, and resolver, that keeps to no rules.
type rogue struct {
	scheme    string
	buildErr  error
	noneAtAll bool
	closed    atomic.Int64
	stop      chan struct{}
	talkers   sync.WaitGroup
	cc        resolver.ClientConn
	late      atomic.Pointer[error]
}

func (r *rogue) Scheme() string { return r.scheme }

func (r *rogue) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	r.cc = cc
	for range 4 { // all at once, before Build returns, and for as long as they like
		r.talkers.Go(func() {
			for {
				_ = cc.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: "10.0.0.1:80"}, {}, {Addr: "\x00"}}})
				cc.ReportError(errTest)
				select {
				case <-r.stop:
					return
				default:
				}
			}
		})
	}
	if r.buildErr != nil || r.noneAtAll {
		return nil, r.buildErr
	}
	return r, nil
}

func (r *rogue) ResolveNow(resolver.ResolveNowOptions) {
	_ = r.cc.UpdateState(resolver.State{}) // from the call itself
}

// Close waits for its goroutines, and goes on talking all the same.
func (r *rogue) Close() {
	r.closed.Add(1)
	close(r.stop)
	r.talkers.Wait()
	err := r.cc.UpdateState(resolver.State{})
	r.late.Store(&err)
	r.cc.ReportError(errTest)
}

func TestResolverThatKeepsToNoRulesDoesNoHarm(t *testing.T) {
	for range 20 {
		r := &rogue{scheme: "rogue", stop: make(chan struct{})}
		n := &noted{hints: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- (&Resolver{Builder: r}).Watch(ctx, svc, n) }()
		eventually(t, "it is heard", func() bool { return n.told() > 10 })
		n.hints <- struct{}{}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch: %v", err)
		}
		told := n.told()
		if err := r.cc.UpdateState(resolver.State{}); !errors.Is(err, errClosed) || !errors.Is(*r.late.Load(), errClosed) {
			t.Errorf("%v, %v, want %v", err, *r.late.Load(), errClosed)
		}
		if n.told() != told || r.closed.Load() != 1 {
			t.Errorf("told %d times after the end, closed %d times", n.told()-told, r.closed.Load())
		}
	}
}

func TestBuilderThatFailsIsAnErrorOfWatch(t *testing.T) {
	for _, r := range []*rogue{
		{scheme: "rogue", stop: make(chan struct{}), buildErr: errTest},
		{scheme: "rogue", stop: make(chan struct{}), noneAtAll: true},
	} {
		n := &noted{}
		err := (&Resolver{Builder: r}).Watch(t.Context(), svc, n)
		if err == nil || !strings.HasPrefix(err.Error(), "grpcresolver: ") || r.buildErr != nil && !errors.Is(err, errTest) {
			t.Errorf("%v", err)
		}
		told := n.told()
		close(r.stop)
		r.talkers.Wait()
		if n.told() != told {
			t.Errorf("told %d times after the end", n.told()-told)
		}
	}
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	m := manual.NewBuilderWithScheme("test")
	for _, c := range []struct {
		r    *Resolver
		want string
	}{
		{nil, "Resolver is nil"},
		{&Resolver{}, "Builder is nil"},
		{&Resolver{Builder: resolver.Get("no such scheme")}, "Builder is nil"},
		{&Resolver{Builder: manual.NewBuilderWithScheme("xds")}, "Builder has the scheme xds"},
		{&Resolver{Builder: m, Target: "orders"}, `Target is "orders", want a URL with the Builder's scheme "test"`},
		{&Resolver{Builder: m, Target: "dns:///orders"}, `Target is "dns:///orders"`},
		{&Resolver{Builder: m, Target: "test://%zz"}, "Target is"},
	} {
		err := c.r.Validate()
		if err == nil || !strings.Contains(err.Error(), "grpcresolver: "+c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		if again := c.r.Watch(t.Context(), svc, &noted{}); again == nil {
			t.Errorf("%v: Watch takes it", c.want)
		}
	}
}
