package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
)

// service stands for all backends.
var service = &url.URL{Scheme: "http", Host: "orders.example"}

// newTransport chooses a backend for each request.
func newTransport(backends []*backend) *httpclient.Transport {
	var list httpclient.Static // stands for DNS
	for _, b := range backends {
		list = append(list, httpclient.Address{Addr: b.addr})
	}
	return &httpclient.Transport{
		Resolver: list,
		Config: evenkeel.Config{Health: &evenkeel.HealthConfig{
			Protocol: evenkeel.CheckHTTP,
			Path:     "/healthz",
			// A service would leave this at five seconds, and its servers would take as long again to leave.
			Interval: 200 * time.Millisecond,
			// A server that says no means it. One that does not answer in time is asked twice more.
			UnexpectedAtOnce: true,
		}},
	}
}

// newHandler is a reverse proxy over a transport.
func newHandler(tr http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Transport: tr,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(service)
			r.SetXForwarded()
			keepSmallBody(r.Out)
		},
	}
}

// smallBody is how many bytes the proxy keeps of a request, for another backend.
const smallBody = 64 << 10

// keepSmallBody lets a request with a small body be sent again, if nothing of it reached the backend that
// it was for: net/http has the body closed by then, and a proxy's is not in memory.
func keepSmallBody(r *http.Request) {
	if r.ContentLength <= 0 || r.ContentLength > smallBody {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		// The client broke off: so does the request.
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
		return
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
}

// proxy is the handler at work.
type proxy struct {
	url    string
	tr     *httpclient.Transport
	server *http.Server
	served chan error
}

// startProxy starts a proxy that knows all backends.
func startProxy(backends []*backend) (*proxy, error) {
	p := &proxy{tr: newTransport(backends), served: make(chan error, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := p.tr.WaitReady(ctx, service.String())
	if err != nil {
		p.tr.Close()
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.tr.Close()
		return nil, err
	}
	p.url = "http://" + l.Addr().String() + "/"
	p.server = &http.Server{Handler: newHandler(p.tr), ReadHeaderTimeout: 5 * time.Second}
	go func() { p.served <- p.server.Serve(l) }()
	return p, nil
}

// stop ends requests, then the proxy, then its connections.
func (p *proxy) stop() error {
	defer p.tr.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if e := <-p.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
