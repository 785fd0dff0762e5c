package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	serviceName = "cache.test"
	// What a cache says in its answers: its name, and whether it had the object.
	cacheHeader = "X-Cache"
	hitHeader   = "X-Hit"
)

// cacheName is the name of a cache in the client's list.
func cacheName(i int) string { return fmt.Sprintf("cache-%02d.test:80", i+1) }

// tier is a row of caches, each an HTTP server on loopback.
type tier struct {
	servers []*http.Server
	addrs   map[string]string // by the cache's name
	failed  chan error        // one value from each server that has ended
}

// startTier starts n caches for so many objects each.
func startTier(n, objects int) (*tier, error) {
	t := &tier{addrs: map[string]string{}, failed: make(chan error, n)}
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, t.stop())
		}
		s := &http.Server{Handler: &cache{name: cacheName(i), recent: newLRU(objects)}, ReadHeaderTimeout: 10 * time.Second}
		t.addrs[cacheName(i)] = l.Addr().String()
		t.servers = append(t.servers, s)
		go func() { t.failed <- s.Serve(l) }()
	}
	return t, nil
}

// stop stops the caches and waits until they have ended.
func (t *tier) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var problems []error
	for _, s := range t.servers {
		problems = append(problems, s.Shutdown(ctx))
	}
	for range t.servers {
		if err := <-t.failed; !errors.Is(err, http.ErrServerClosed) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// cache answers for a slow origin that nobody sees here.
type cache struct {
	name   string
	recent *lru
}

// ServeHTTP implements http.Handler.
func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(cacheHeader, c.name)
	if c.recent.touch(r.URL.Path) {
		w.Header().Set(hitHeader, "yes")
	}
	fmt.Fprintln(w, "the object at", r.URL.Path)
}
