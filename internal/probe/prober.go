package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

// ProberOptions are what a prober takes from whoever sends the requests.
type ProberOptions struct {
	// Host is the target's, with its port unless that is the scheme's own. It is the Host header,
	// :authority and the name in certificates where the configuration has none.
	Host string
	// TLS says that requests go over TLS, so that CheckGRPC does too.
	TLS bool
	// DialContext connects to an endpoint; nil means net.Dialer's.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLSConfig is the requests'; nil means the zero one. It is not changed. A ServerName of its own
	// counts unless the configuration has a Host.
	TLSConfig *tls.Config
	// Protocols are those of CheckHTTP and CheckHTTPS; nil means HTTP/1, and HTTP/2 over TLS where the
	// endpoint has it.
	Protocols *http.Protocols
	// OnWarning is told, once, what passes and may not be what is meant; nil means nobody.
	OnWarning func(text string)
}

// NewProber returns what makes the checks that c describes, or every problem of it. What it returns
// keeps connections; a Runner closes it.
func NewProber(c evenkeel.HealthConfig, o ProberOptions) (Prober, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	d := &dialer{dial: o.DialContext, port: c.Port, conns: map[string]map[*conn]bool{}}
	if d.dial == nil {
		d.dial = new(net.Dialer).DialContext
	}
	host := c.Host
	if host == "" {
		host = o.Host
	}
	switch c.Protocol {
	case evenkeel.CheckHTTP, evenkeel.CheckHTTPS:
		return newHTTPProber(c, o, d, host), nil
	case evenkeel.CheckGRPC:
		return newGRPCProber(c, o, d, host), nil
	}
	return tcpProber{d}, nil
}

// tcpProber opens a connection and closes it.
type tcpProber struct{ dialer *dialer }

// Probe makes one check.
func (p tcpProber) Probe(ctx context.Context, addr string) (health.Result, string) {
	c, err := p.dialer.dialTo(ctx, addr)
	if err != nil {
		return health.Failed, err.Error()
	}
	_ = c.Close() // it was opened, which is all that was asked
	return health.Passed, "connected"
}

// tlsConfig is the configuration of connections to a host that may have a port.
func tlsConfig(base *tls.Config, c evenkeel.HealthConfig, host string) *tls.Config {
	t := base.Clone() // nil of nil
	if t == nil {
		t = new(tls.Config)
	}
	if c.Host != "" || t.ServerName == "" {
		t.ServerName = hostname(host)
	}
	t.InsecureSkipVerify = t.InsecureSkipVerify || c.SkipVerify
	return t
}

// hostname is host without its port and brackets.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
		return host[1 : n-1]
	}
	return host
}

var errNoConn = errors.New("probe: the dialer returned neither a connection nor an error")
