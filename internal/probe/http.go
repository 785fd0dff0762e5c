package probe

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

const (
	// maxBody is how much of an answer's body is read, so that the next check can have the connection.
	// One with more is closed.
	maxBody = 512 << 10
	// maxHeader bounds an answer's headers.
	maxHeader = 64 << 10
	// idleConnTimeout keeps connections over the 60 s from one check to the next without requests.
	idleConnTimeout = 90 * time.Second
)

// userAgent tells checks from requests in a server's log, unless the configuration has another.
const userAgent = "evenkeel-health-check"

// httpProber sends a GET.
type httpProber struct {
	dialer    *dialer
	transport *http.Transport
	url       url.URL // without a host
	host      string
	header    http.Header
	expect    []evenkeel.StatusRange
}

func newHTTPProber(c evenkeel.HealthConfig, o ProberOptions, d *dialer, host string) *httpProber {
	p := &httpProber{dialer: d, host: host, expect: c.Expect, header: http.Header{"User-Agent": {userAgent}}}
	if len(p.expect) == 0 {
		p.expect = []evenkeel.StatusRange{{From: http.StatusOK}}
	}
	given := http.Header{}
	for _, h := range c.Headers {
		given.Add(h.Name, h.Value)
	}
	maps.Copy(p.header, given)
	path := c.Path
	if path == "" {
		path = "/"
	}
	if u, err := url.ParseRequestURI(path); err == nil { // which Validate has seen to
		p.url = *u
	}
	p.url.Scheme = c.Protocol.String()
	protocols := o.Protocols
	if protocols == nil {
		protocols = new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
	}
	p.transport = d.transport(protocols, tlsConfig(o.TLSConfig, c, host))
	return p
}

// Probe makes one check.
func (p *httpProber) Probe(ctx context.Context, addr string) (health.Result, string) {
	u := p.url
	u.Host = addr
	req := (&http.Request{Method: http.MethodGet, URL: &u, Host: p.host, Header: p.header.Clone()}).WithContext(calling(ctx, addr))
	resp, err := p.transport.RoundTrip(req) // which follows no redirects
	if err != nil {
		return health.Failed, err.Error()
	}
	defer resp.Body.Close()
	// The body of an answer that switches protocols is the connection, which no context ends.
	defer context.AfterFunc(ctx, func() { _ = resp.Body.Close() })()
	if _, err := io.CopyN(io.Discard, resp.Body, maxBody); err != nil && err != io.EOF {
		return health.Failed, fmt.Sprintf("HTTP %d, and the answer breaks off: %v", resp.StatusCode, err)
	}
	detail := fmt.Sprintf("HTTP %d", resp.StatusCode)
	if slices.ContainsFunc(p.expect, func(r evenkeel.StatusRange) bool { return r.Has(resp.StatusCode) }) {
		return health.Passed, detail
	}
	return health.Unexpected, detail
}

// Left closes the connections to an address.
func (p *httpProber) Left(addr string) { p.dialer.left(addr) }

// Close closes all connections.
func (p *httpProber) Close() { closeAll(p.transport, p.dialer) }

func closeAll(t *http.Transport, d *dialer) {
	t.CloseIdleConnections()
	d.close()
}
