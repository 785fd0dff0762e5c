package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// work is how long a request takes a backend.
const work = 5 * time.Millisecond

// backend is one server. It is started anew at the address that it had.
type backend struct {
	name    string
	addr    string
	leaving atomic.Bool // its checks fail
	server  *http.Server
	served  chan error
}

func newBackend(name string) *backend { return &backend{name: name, addr: "127.0.0.1:0"} }

// start serves until stop is called.
func (b *backend) start() error {
	l, err := net.Listen("tcp", b.addr)
	if err != nil {
		return err
	}
	b.addr = l.Addr().String()
	b.leaving.Store(false)
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", b.health)
	mux.HandleFunc("/", b.answer)
	b.server, b.served = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, make(chan error, 1)
	go func(s *http.Server, served chan error) { served <- s.Serve(l) }(b.server, b.served)
	return nil
}

// stop refuses connections, and waits for the requests that are under way. It may be called again.
func (b *backend) stop() error {
	if b.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := b.server.Shutdown(ctx)
	if e := <-b.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	b.server = nil
	return err
}

// health is what clients ask before they send requests, and while they do.
func (b *backend) health(w http.ResponseWriter, _ *http.Request) {
	if b.leaving.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// servedBy is the header that says which backend answers.
const servedBy = "Served-By"

func (b *backend) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	time.Sleep(work)
	w.Header().Set(servedBy, b.name)
	_, _ = w.Write(body) // who left does not read it
}
