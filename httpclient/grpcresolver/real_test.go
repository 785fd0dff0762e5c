package grpcresolver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	_ "google.golang.org/grpc" // registers dns, passthrough and unix
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
	"github.com/evenkeel/evenkeel/picker"
)

// served starts n servers that answer with their number.
func served(t *testing.T, n int) (addrs []string) {
	for i := range n {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, string(rune('a'+i)))
		}))
		t.Cleanup(s.Close)
		addrs = append(addrs, s.Listener.Addr().String())
	}
	return addrs
}

// get returns the body for url through tr.
func get(t *testing.T, tr *httpclient.Transport, url string) (string, error) {
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestTransportServesFromAResolverOfGRPC(t *testing.T) {
	addrs := served(t, 2)
	m := manual.NewBuilderWithScheme("test")
	m.InitialState(resolver.State{Endpoints: []resolver.Endpoint{endpoint(3, addrs[0]), endpoint(1, addrs[1])}})
	tr := &httpclient.Transport{
		Resolver: &Resolver{Builder: m},
		Config:   evenkeel.Config{Policy: picker.EDF{}},
	}
	defer tr.Close()
	got := map[string]int{}
	for range 40 {
		body, err := get(t, tr, "http://orders.test/")
		if err != nil {
			t.Fatal(err)
		}
		got[body]++
	}
	if got["a"] != 30 || got["b"] != 10 {
		t.Errorf("%v, want 30 of a and 10 of b, by their weights", got)
	}
	m.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{endpoint(0, addrs[1])}})
	for range 10 {
		if body, err := get(t, tr, "http://orders.test/"); body != "b" || err != nil {
			t.Errorf("%s, %v after a left", body, err)
		}
	}
	m.UpdateState(resolver.State{})
	if _, err := get(t, tr, "http://orders.test/"); !errors.Is(err, evenkeel.ErrEmpty) {
		t.Errorf("%v, want %v", err, evenkeel.ErrEmpty)
	}
}

func TestRealPassthroughAndDNSResolversServe(t *testing.T) {
	_, port, err := net.SplitHostPort(served(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		r    *Resolver
		url  string
	}{
		{"passthrough", &Resolver{Builder: resolver.Get("passthrough")}, "http://127.0.0.1:" + port},
		{"passthrough to a given target", &Resolver{Builder: resolver.Get("passthrough"), Target: "passthrough:///127.0.0.1:" + port}, "http://orders.test"},
		{"dns with an address", &Resolver{Builder: resolver.Get("dns")}, "http://127.0.0.1:" + port},
	} {
		tr := &httpclient.Transport{Resolver: c.r}
		if body, err := get(t, tr, c.url); body != "a" || err != nil {
			t.Errorf("%s: %q, %v", c.name, body, err)
		}
		tr.Close()
	}
}

// The real thing with a name: what this machine has for localhost, with the port.
func TestRealDNSResolverLooksNamesUp(t *testing.T) {
	if _, err := net.DefaultResolver.LookupHost(t.Context(), "localhost"); err != nil {
		t.Skip("this machine does not know localhost: ", err)
	}
	n := &noted{hints: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = (&Resolver{Builder: resolver.Get("dns")}).Watch(ctx, httpclient.Target{Scheme: "http", Host: "localhost", Port: "8080"}, n)
	})
	eventually(t, "a list", func() bool { return n.told() > 0 })
	got, err := n.last()
	if err != nil || !strings.Contains(got, "127.0.0.1:8080") && !strings.Contains(got, "[::1]:8080") {
		t.Errorf("%s, %v", got, err)
	}
	n.hints <- struct{}{}
	cancel()
	wg.Wait()
}

// A socket is no address of an HTTP endpoint: that is said, and nothing else happens.
func TestRealUnixResolverIsRefusedWithTheReason(t *testing.T) {
	tr := &httpclient.Transport{Resolver: &Resolver{Builder: resolver.Get("unix"), Target: "unix:///run/orders.sock"}}
	defer tr.Close()
	_, err := get(t, tr, "http://orders.test/")
	if err == nil || !strings.Contains(err.Error(), `Addr is "/run/orders.sock", want an IP address, or a name`) {
		t.Errorf("%v", err)
	}
}

func TestTransportRefusesAResolverWithoutABuilder(t *testing.T) {
	tr := &httpclient.Transport{Resolver: &Resolver{}}
	defer tr.Close()
	if _, err := get(t, tr, "http://orders.test/"); err == nil || !strings.Contains(err.Error(), "grpcresolver: Builder is nil") {
		t.Errorf("%v", err)
	}
}
