package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
	"github.com/evenkeel/evenkeel/picker"
)

// transport is one that finds its endpoints with r.
func transport(t *testing.T, policy evenkeel.Policy, r httpclient.Resolver) *httpclient.Transport {
	t.Helper()
	tr := &httpclient.Transport{Resolver: r, Config: evenkeel.Config{Policy: policy}}
	t.Cleanup(tr.Close)
	return tr
}

// fetching is a GET of the URL.
func fetching(tr http.RoundTripper, url string) func(context.Context) error {
	client := &http.Client{Transport: tr}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
}

// noneLeft waits until n calls in a row go to others than w.
func noneLeft(t *testing.T, load *traffic, n int64, w *webServer) {
	t.Helper()
	at, all := w.calls.Load(), load.calls.Load()
	eventually(t, "no calls go to "+w.ip, func() bool {
		if now := w.calls.Load(); now != at {
			at, all = now, load.calls.Load()
		}
		return load.calls.Load() >= all+n
	})
}

// resolveError returns what the only target's last lookup failed with.
func resolveError(tr *httpclient.Transport) error {
	if targets := tr.Snapshot(); len(targets) == 1 {
		return targets[0].ResolveError
	}
	return nil
}

// trouble is a name whose records fail for a while, and a client under load.
type trouble struct {
	name, host string
	answer     answer
	servers    []*webServer
	tr         *httpclient.Transport
	load       *traffic
}

// Whatever the name server says or does not say: the last good list serves, no request fails, and what
// is said when it is well again counts. The name server's TTLs of 0 make no difference.
func TestDNSFailuresLeaveTheLastGoodListInForce(t *testing.T) {
	ns := startNameServer(t)
	list := []*trouble{
		{name: "the name does not exist", answer: answer{code: dns.RcodeNameError}},
		{name: "the name has no addresses", answer: answer{}},
		{name: "SERVFAIL", answer: answer{code: dns.RcodeServerFailure}},
		{name: "REFUSED", answer: answer{code: dns.RcodeRefused}},
		{name: "no answer", answer: answer{silent: true}},
		{name: "truncated answers without addresses over TCP", answer: answer{truncated: true}},
	}
	for i, c := range list {
		c.host = fmt.Sprintf("svc%d.test", i)
		c.servers = startWebServers(t, fmt.Sprintf("127.0.%d.1", 10+i), fmt.Sprintf("127.0.%d.2", 10+i), fmt.Sprintf("127.0.%d.3", 10+i))
		ns.set(c.host, answer{a: []string{c.servers[0].ip, c.servers[1].ip}})
		c.tr = transport(t, picker.RoundRobin{}, &httpclient.DNS{Interval: 5 * time.Second, Lookup: impatient(ns)})
		c.load = keepCalling(t, fetching(c.tr, "http://"+c.host+":"+c.servers[0].port))
	}
	forgetful := startForgetful(t, ns, list[0])
	for _, c := range list {
		eventually(t, c.name+": both are called", func() bool { return c.servers[0].calls.Load() > 20 && c.servers[1].calls.Load() > 20 })
	}
	for _, c := range list {
		ns.set(c.host, c.answer)
	}
	for _, c := range list {
		eventually(t, c.name+": the failure shows", func() bool { return resolveError(c.tr) != nil })
		a, b := c.servers[0].calls.Load(), c.servers[1].calls.Load()
		eventually(t, c.name+": both are called still", func() bool { return c.servers[0].calls.Load() > a+20 && c.servers[1].calls.Load() > b+20 })
	}
	eventually(t, "who was told to forget does", func() bool { return errors.Is(forgetful(t.Context()), evenkeel.ErrEmpty) })
	for _, c := range list {
		ns.set(c.host, answer{a: []string{c.servers[1].ip, c.servers[2].ip}})
	}
	for _, c := range list {
		eventually(t, c.name+": the new one is called", func() bool { return c.servers[2].calls.Load() > 20 })
		noneLeft(t, c.load, 50, c.servers[0])
		c.load.stop()
		if err := resolveError(c.tr); err != nil {
			t.Errorf("%s: after the recovery: %v", c.name, err)
		}
		c.load.check(t)
	}
	eventually(t, "who forgot learns it again", func() bool { return forgetful(t.Context()) == nil })
}

// startForgetful returns a call of a client that empties its list when the name is gone for a second.
func startForgetful(t *testing.T, ns *nameServer, c *trouble) func(context.Context) error {
	t.Helper()
	tr := transport(t, picker.RoundRobin{}, &httpclient.DNS{Interval: 5 * time.Second, ForgetAfter: time.Second, Lookup: impatient(ns)})
	fetch := fetching(tr, "http://"+c.host+":"+c.servers[0].port)
	if err := fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	return fetch
}

// impatient waits for the server for half a second, where Go's own resolver would for ten.
func impatient(ns *nameServer) func(context.Context, string) ([]netip.Addr, error) {
	return func(ctx context.Context, host string) ([]netip.Addr, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second/2)
		defer cancel()
		return ns.resolver().LookupNetIP(ctx, "ip", host)
	}
}

// Addresses that come and go cost no request, also when the server fails to answer for IPv6, and says it
// over TCP alone.
func TestDNSChangesLoseNoRequest(t *testing.T) {
	ns := startNameServer(t)
	servers := startWebServers(t, "127.0.20.1", "127.0.20.2", "127.0.20.3")
	ns.set("svc.test", answer{a: []string{servers[0].ip, servers[1].ip}})
	tr := transport(t, picker.RoundRobin{}, &httpclient.DNS{Interval: 5 * time.Second, Resolver: ns.resolver()})
	load := keepCalling(t, fetching(tr, "http://svc.test:"+servers[0].port))
	eventually(t, "both are called", func() bool { return servers[0].calls.Load() > 20 && servers[1].calls.Load() > 20 })
	ns.set("svc.test", answer{a: []string{servers[1].ip, servers[2].ip}, noAAAA: true, truncated: true})
	eventually(t, "the new one is called", func() bool { return servers[2].calls.Load() > 20 })
	noneLeft(t, load, 50, servers[0])
	load.stop()
	load.check(t)
}

func TestDNSAnswerTooLongForUDPIsRead(t *testing.T) {
	ns := startNameServer(t)
	var ips []string
	for i := range 50 {
		ips = append(ips, fmt.Sprintf("127.0.21.%d", i+1))
	}
	servers := startWebServers(t, ips...)
	ns.set("svc.test", answer{a: ips, truncated: true})
	tr := transport(t, picker.RoundRobin{}, &httpclient.DNS{Resolver: ns.resolver()})
	fetch := fetching(tr, "http://svc.test:"+servers[0].port)
	for range 2 * len(servers) {
		if err := fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range servers {
		if n := w.calls.Load(); n != 2 {
			t.Errorf("%s was called %d times of 100, want 2", w.ip, n)
		}
	}
}
