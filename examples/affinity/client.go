package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
	"github.com/evenkeel/evenkeel/picker"
)

// before is how many caches there are at first; then there is one more.
const before = 10

// contender is a policy to compare.
type contender struct {
	name   string
	policy evenkeel.Policy
}

var contenders = []contender{
	{"round robin", picker.RoundRobin{}},
	{"modulo", modulo{}},
	{"consistent", picker.Hash{}},
}

// client asks a tier of caches for objects.
type client struct {
	http      *http.Client
	transport *httpclient.Transport
	roster    *roster
}

// newClient returns a client that sends each object's path to the same cache, as far as
// policy does that.
func newClient(t *tier, policy evenkeel.Policy) *client {
	c := &client{roster: new(roster)}
	c.transport = &httpclient.Transport{
		Resolver: c.roster,
		Config:   evenkeel.Config{Policy: policy, Keys: []evenkeel.Key{{Path: true}}},
		// The caches have names, and ports that the system chose: a cache's place is by its
		// name, so that each run sends each key to the same one.
		Base: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, t.addrs[addr])
		}},
	}
	c.http = &http.Client{Transport: c.transport}
	return c
}

func (c *client) close() { c.transport.Close() }

// round asks for each of the objects, one after the other.
func (c *client) round(ctx context.Context, objects []int) (round, error) {
	r := round{served: make(map[int]string, len(objects))}
	for _, object := range objects {
		url := fmt.Sprintf("http://%s/objects/%d", serviceName, object)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return r, err
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return r, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); err != nil {
			return r, err
		}
		r.served[object] = resp.Header.Get(cacheHeader)
		if resp.Header.Get(hitHeader) != "" {
			r.hits++
		}
	}
	return r, nil
}

// roster is a resolver that says what it is told to.
type roster struct {
	mu    sync.Mutex
	names []httpclient.Address
	sink  httpclient.Sink // nil before the first request
}

// set replaces the list by the first n names. Requests that begin later go by it.
func (l *roster) set(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = nil
	for i := range n {
		l.names = append(l.names, httpclient.Address{Addr: cacheName(i)})
	}
	if l.sink == nil {
		return nil
	}
	return l.sink.Update(l.names)
}

// Watch implements httpclient.Resolver.
func (l *roster) Watch(ctx context.Context, _ httpclient.Target, sink httpclient.Sink) error {
	l.mu.Lock()
	l.sink = sink
	err := sink.Update(l.names)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}
