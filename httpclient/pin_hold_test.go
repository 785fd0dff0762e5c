package httpclient

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// WithEndpoint goes to an endpoint that waits for its first check: also while a list is taken over, which holds it for a moment.
func TestPinnedEndpointIsNotHeldWhileItJoins(t *testing.T) {
	s := serve(t, 2, hello, plain)
	r := &script{first: addrs(s[0].addr), started: make(chan struct{}, 1)}
	tr := &Transport{Resolver: r, Config: evenkeel.Config{Policy: picker.Hash{}, Health: &evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP}}}
	c := client(t, tr)
	if err := tr.WaitReady(t.Context(), svc); err != nil {
		t.Fatal(err)
	}
	<-r.started
	var held atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(300 * time.Millisecond)
	for range 2 {
		wg.Go(func() {
			for time.Now().Before(end) {
				req := request(t, "GET", svc, nil)
				resp, err := c.Do(req.WithContext(WithEndpoint(req.Context(), s[1].addr)))
				switch {
				case err == nil:
					resp.Body.Close()
				case strings.Contains(err.Error(), "is not ready"):
					held.Add(1)
				}
			}
		})
	}
	for time.Now().Before(end) {
		_ = r.sink().Update(addrs(s[0].addr, s[1].addr))
		_ = r.sink().Update(addrs(s[0].addr))
	}
	wg.Wait()
	if n := held.Load(); n > 0 {
		t.Errorf("%d requests were told that the endpoint is not ready", n)
	}
}
