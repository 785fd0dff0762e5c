package httpclient

import (
	"net/http"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// Behind a virtual IP each connection may lead to another machine: HTTP/2 alone would have one.
func TestMinBackendsHaveConnectionsOfTheirOwn(t *testing.T) {
	s := serve(t, 1, hello, withHTTP2)
	for _, drainTimeout := range []time.Duration{0, time.Minute} { // with and without tracked connections
		before := s[0].conns.Load()
		tr := &Transport{
			Resolver: &MinBackends{Resolver: static(s), N: 3},
			Base:     s[0].trusting(),
			Config:   evenkeel.Config{Policy: picker.RoundRobin{}, DrainTimeout: drainTimeout},
		}
		c := client(t, tr)
		for range 12 {
			fetch(t, c, "https://example.com/")
		}
		if n := s[0].conns.Load() - before; n != 3 {
			t.Errorf("%d connections, want 3", n)
		}
		for _, e := range one(t, tr).Endpoints {
			if e.Picks != 4 {
				t.Errorf("%s was picked %d times, want 4", e.ID, e.Picks)
			}
		}
		second := s[0].addr + "#2"
		if !tr.Drain(second) {
			t.Errorf("%s cannot be drained", second)
		}
		fetch(t, c, "https://example.com/")
		if e := endpointStats(t, one(t, tr), second); e.Picks != 4 {
			t.Errorf("%s is picked while it is drained", second)
		}
	}
}

func TestMinBackendsAreCheckedAtTheirAddress(t *testing.T) {
	s := serve(t, 1, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }, plain)
	tr := &Transport{
		Resolver: &MinBackends{Resolver: static(s), N: 2},
		Config:   evenkeel.Config{Health: &evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP, Path: "/healthz"}},
	}
	c := client(t, tr)
	fetch(t, c, "http://orders.test/")
	eventually(t, "both are checked", func() bool {
		checks := one(t, tr).Checks
		return checks[s[0].addr] == "HTTP 200" && checks[s[0].addr+"#2"] == "HTTP 200"
	})
}
