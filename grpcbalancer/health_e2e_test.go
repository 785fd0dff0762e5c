package grpcbalancer

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/test/bufconn"

	"github.com/evenkeel/evenkeel"
)

const watchedByName = `{"policy": "round_robin", "outlier": {"mode": "off"}, "health": {"protocol": "grpc", "service": "orders", "timeout": "200ms"}}`

// isState waits until the pool has an endpoint in a state.
func (c *client) isState(addr string, want evenkeel.State) {
	c.t.Helper()
	eventually(c.t, addr+" is "+want.String(), func() bool {
		p := c.policy()
		p.calls.Lock()
		defer p.calls.Unlock()
		return p.pool != nil && statsOf(p)[addr].State == want
	})
}

// gets reports how many of 30 calls each backend gets.
func (c *client) gets(backends []*backend) []int64 {
	c.t.Helper()
	before := make([]int64, len(backends))
	for i, b := range backends {
		before[i] = b.calls.Load()
	}
	c.calls(30)
	for i, b := range backends {
		before[i] = b.calls.Load() - before[i]
	}
	return before
}

func healthyFleet(t *testing.T, n int, service string) []*backend {
	servers := fleet(t, n)
	for _, s := range servers {
		s.health.SetServingStatus(service, serving)
	}
	return servers
}

// Traffic moves when a server says so, and its connection stays; the channel is READY throughout.
func TestServersMoveTrafficByWhatTheySay(t *testing.T) {
	servers := healthyFleet(t, 3, "orders")
	c := connect(t, lbConfigOf(watchedByName), servers)
	for range 3 {
		began := time.Now()
		servers[0].health.SetServingStatus("orders", notServing)
		c.isState(servers[0].addr, evenkeel.Failing)
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("it took %v", d)
		}
		if got := c.gets(servers); got[0] != 0 || got[1] == 0 || got[2] == 0 {
			t.Errorf("shares %v while the first does not serve", got)
		}
		servers[0].health.SetServingStatus("orders", serving)
		c.isState(servers[0].addr, evenkeel.Ready)
		if got := c.gets(servers); got[0] == 0 {
			t.Errorf("shares %v when all serve", got)
		}
	}
	for _, s := range servers {
		s.health.SetServingStatus("orders", notServing)
	}
	for _, s := range servers {
		c.isState(s.addr, evenkeel.Failing)
	}
	if got := c.gets(servers); got[0] == 0 || got[1] == 0 || got[2] == 0 || c.cc.GetState() != connectivity.Ready {
		t.Errorf("shares %v, and the channel is %v, when none serves", got, c.cc.GetState())
	}
	for _, s := range servers {
		if n := s.conns.Load(); n != 1 {
			t.Errorf("%d connections, want the one that calls use", n)
		}
	}
}

func TestServersThatDoNotKnowTheServiceByName(t *testing.T) {
	servers := healthyFleet(t, 3, "orders")
	servers[0].health.Shutdown() // says so of all
	servers[0].health.Resume()
	servers = append(servers, start(t, "")) // SERVICE_UNKNOWN
	c := connect(t, lbConfigOf(watchedByName), nil)
	c.resolver.UpdateState(endpointsOf(servers...))
	c.isState(servers[3].addr, evenkeel.Failing)
	for _, s := range servers[:3] {
		c.isState(s.addr, evenkeel.Ready)
	}
	if got := c.gets(servers); got[3] != 0 {
		t.Errorf("shares %v, want nothing for who does not know the service", got)
	}
}

func TestServersWithoutHealthServiceAreUsed(t *testing.T) {
	servers := healthyFleet(t, 2, "orders")
	for range 2 {
		servers = append(servers, startWith(t, "", func(*backend) {}))
	}
	c := connect(t, lbConfigOf(watchedByName), servers)
	eventually(t, "there is a warning", func() bool { return len(c.policy().warnings.list()) > 0 })
	if got := c.gets(servers); got[2] == 0 || got[3] == 0 {
		t.Errorf("shares %v, want some for all", got)
	}
	if w := c.policy().warnings.list(); len(w) != 1 {
		t.Errorf("warnings %q, want one", w)
	}
}

// mute is a health service whose Watch never answers.
type mute struct {
	healthgrpc.UnimplementedHealthServer
	watches atomic.Int64
}

func (m *mute) Watch(_ *healthgrpc.HealthCheckRequest, s grpc.ServerStreamingServer[healthgrpc.HealthCheckResponse]) error {
	m.watches.Add(1)
	<-s.Context().Done()
	return s.Context().Err()
}

func TestServersThatHangTheirWatchWait(t *testing.T) {
	m := &mute{}
	hung := startWith(t, "", func(b *backend) { healthgrpc.RegisterHealthServer(b.server, m) })
	alone := dial(t, lbConfigOf(watchedByName))
	alone.resolver.InitialState(endpointsOf(hung))
	alone.calls(10)
	alone.isState(hung.addr, evenkeel.Failing)
	alone.calls(10)

	servers := append(healthyFleet(t, 2, "orders"), hung)
	alone.resolver.UpdateState(endpointsOf(servers...))
	alone.isState(servers[0].addr, evenkeel.Ready)
	alone.isState(servers[1].addr, evenkeel.Ready)
	before := hung.calls.Load()
	alone.calls(30)
	if n := hung.calls.Load() - before; n > 0 {
		t.Errorf("%d calls went to the one that says nothing", n)
	}
	_ = alone.cc.Close()
	eventually(t, "the server has no stream any more", func() bool {
		hung.server.GracefulStop() // waits for them
		return true
	})
}

// A connection that is lost and comes back: nothing that was said on the old one counts.
func TestWatchBeginsAnewOnANewConnection(t *testing.T) {
	servers := healthyFleet(t, 3, "orders")
	c := connect(t, lbConfigOf(watchedByName), servers)
	c.calls(3)
	servers[0].stop()
	c.waitReady(2)
	again := startWith(t, servers[0].addr, func(b *backend) {
		b.health.SetServingStatus("orders", notServing)
		healthgrpc.RegisterHealthServer(b.server, b.health)
	})
	c.isState(again.addr, evenkeel.Failing)
	c.calls(30)
	if n := again.calls.Load(); n != 0 {
		t.Errorf("%d calls went to a server that never served", n)
	}
	again.health.SetServingStatus("orders", serving)
	c.waitReady(3)
	c.calls(30)
	if again.calls.Load() == 0 {
		t.Error("it serves, and gets nothing")
	}
}

// gRPC's own checks, which take the connection out, and ours beside them.
func TestBothKindsOfHealthChecks(t *testing.T) {
	servers := healthyFleet(t, 4, "orders")
	c := connect(t, `{"healthCheckConfig": {"serviceName": "theirs"}, "loadBalancingConfig": [{"`+spiedName+`": `+watchedByName+`}]}`, nil)
	for _, s := range servers {
		s.health.SetServingStatus("theirs", serving)
	}
	c.resolver.UpdateState(endpointsOf(servers...))
	c.waitReady(4)
	servers[0].health.SetServingStatus("theirs", notServing)
	servers[1].health.SetServingStatus("orders", notServing)
	c.isState(servers[0].addr, evenkeel.NotReady)
	c.isState(servers[1].addr, evenkeel.Failing)
	if got := c.gets(servers); got[0] != 0 || got[1] != 0 {
		t.Errorf("shares %v, want none for the first two", got)
	}
	servers[0].health.SetServingStatus("theirs", serving)
	servers[1].health.SetServingStatus("orders", serving)
	c.waitReady(4)
}

// configure has the resolver give the channel another config.
func (c *client) configure(config string, backends []*backend) {
	state := endpointsOf(backends...)
	state.ServiceConfig = c.resolver.CC().ParseServiceConfig(lbConfigOf(config))
	c.resolver.UpdateState(state)
}

// checked is a server for checks beside those of the calls.
func checked(t *testing.T) (port int, broken *atomic.Bool, asked *atomic.Int64) {
	broken, asked = new(atomic.Bool), new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if broken.Load() || r.URL.Path != "/ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	_, text, _ := net.SplitHostPort(s.Listener.Addr().String())
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port, broken, asked
}

// Protocols change while calls are made, and the connections stay.
func TestChecksOfEveryProtocolOnTheSameConnections(t *testing.T) {
	port, broken, asked := checked(t)
	servers := healthyFleet(t, 3, "orders")
	c := connect(t, lbConfigOf(watchedByName), servers)
	load := startLoad(c, 2)
	http := `{"policy": "round_robin", "health": {"protocol": "http", "path": "/ready", "interval": "20ms", "fall": 1, "rise": 1, "port": ` + strconv.Itoa(port) + `}}`
	for range 2 {
		servers[0].health.SetServingStatus("orders", notServing)
		c.isState(servers[0].addr, evenkeel.Failing)
		c.configure(http, servers)
		c.isState(servers[0].addr, evenkeel.Ready)
		broken.Store(true)
		for _, s := range servers {
			c.isState(s.addr, evenkeel.Failing)
		}
		c.configure(`{"health": {"protocol": "tcp", "interval": "20ms"}}`, servers)
		c.waitReady(3)
		c.configure(http, servers)
		c.isState(servers[1].addr, evenkeel.Failing)
		c.configure(`{}`, servers)
		c.waitReady(3)
		broken.Store(false)
		servers[0].health.SetServingStatus("orders", serving)
		c.configure(watchedByName, servers)
		c.waitReady(3)
	}
	load.stop(t)
	if asked.Load() == 0 {
		t.Error("nobody was asked over HTTP")
	}
	for _, s := range servers {
		if n := s.conns.Load(); n > 8 { // one for calls, others for TCP checks
			t.Errorf("%d connections", n)
		}
	}
}

// The system's roots are trusted, which do not know the server's, or everybody is.
func TestChecksOverTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	servers := fleet(t, 2)
	config := `{"health": {"protocol": "https", "interval": "20ms", "no_traffic": "20ms", "rise": 1, "fall": 1, "port": ` + port + `}}`
	c := connect(t, lbConfigOf(config), servers)
	for range 2 {
		c.configure(config, servers)
		c.isState(servers[0].addr, evenkeel.Failing)
		c.calls(5)
		c.configure(strings.Replace(config, `"interval"`, `"skip_verify": true, "interval"`, 1), servers)
		c.isState(servers[0].addr, evenkeel.Ready)
		c.calls(5)
	}
}

func TestChecksDialAsTheChannelDoes(t *testing.T) {
	listener := bufconn.Listen(1 << 16)
	b := &backend{server: grpc.NewServer()}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = b.server.Serve(listener)
	}()
	t.Cleanup(func() { b.server.Stop(); <-served })
	var dials atomic.Int64
	c := dial(t, lbConfigOf(`{"health": {"protocol": "tcp", "interval": "10ms", "no_traffic": "10ms"}}`), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		if addr != "bufnet" {
			t.Errorf("dialed %q", addr)
		}
		dials.Add(1)
		return listener.DialContext(ctx)
	}))
	c.resolver.InitialState(resolver.State{Endpoints: each("bufnet")})
	c.cc.Connect()
	c.waitReady(1)
	eventually(t, "there are checks", func() bool { return dials.Load() > 3 })
	c.isState("bufnet", evenkeel.Ready)
}

// A port that is not the endpoint's own, and an address that has none: said once, and nobody is checked.
func TestAddressesWithoutAPortAreNotChecked(t *testing.T) {
	for _, addr := range []string{"unix:/run/orders", "/run/orders", "bufnet", "@abstract", "fe80::1"} {
		c := dial(t, lbConfigOf(`{"health": {"protocol": "http", "port": 8080, "interval": "10ms"}}`),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, net.ErrClosed }))
		c.resolver.InitialState(resolver.State{Endpoints: each(addr)})
		c.cc.Connect()
		eventually(t, "there is a warning", func() bool { return c.policy() != nil && len(c.policy().warnings.list()) > 0 })
		if w := c.policy().warnings.list(); len(w) != 1 || !strings.Contains(w[0], strconv.Quote(addr)) {
			t.Errorf("warnings %q, want one that names %q", w, addr)
		}
		c.isState(addr, evenkeel.NotReady)
		_ = c.cc.Close()
	}
}

func TestHealthOnAnotherPortOrHostIsRefused(t *testing.T) {
	_, err := builder{}.ParseConfig([]byte(`{"health": {"protocol": "grpc", "port": 9, "host": "x"}}`))
	if err == nil || !strings.Contains(err.Error(), "Health.Port is 9, want 0") || !strings.Contains(err.Error(), `Health.Host is "x"`) {
		t.Errorf("error %v", err)
	}
	if err := Register("watched_elsewhere", evenkeel.Config{Health: &evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC, Port: 9}}); err == nil {
		t.Error("registered")
	}
}
