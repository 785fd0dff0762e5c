package httpclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"
)

// Defaults for what Base leaves at zero.
const (
	dialTimeout         = 3 * time.Second
	tlsHandshakeTimeout = 5 * time.Second
	// net/http keeps 2 idle connections for a host, which makes a new one for most
	// requests of a busy client.
	maxIdleConnsPerHost = 64
	// Servers commonly close idle connections after 60 s. Who closes first cannot send
	// a request into a connection that is just being closed.
	idleConnTimeout       = 50 * time.Second
	expectContinueTimeout = time.Second
	// A dead peer of an idle-looking HTTP/2 connection is found after these instead of
	// the 15 minutes that TCP takes.
	sendPingTimeout  = 10 * time.Second
	pingTimeout      = 5 * time.Second
	writeByteTimeout = 10 * time.Second
)

// template returns the http.Transport that those of all endpoints are clones of. base
// is not changed. The error names every field that cannot work.
func template(base *http.Transport) (*http.Transport, error) {
	if base == nil {
		base = &http.Transport{}
	}
	t := base.Clone()
	if err := errors.Join(checkBase(base), ownHTTP2(t), checkConnLimit(t)); err != nil {
		return nil, err
	}
	setDefaults(t)
	return t, nil
}

// checkConnLimit refuses what hangs: net/http miscounts connections of HTTP/2
// (golang.org/issue/34941).
func checkConnLimit(t *http.Transport) error {
	if t.MaxConnsPerHost > 0 && (t.Protocols == nil || t.Protocols.HTTP2() || t.Protocols.UnencryptedHTTP2()) {
		return fmt.Errorf("httpclient: Base.MaxConnsPerHost is %d, want 0, or Base.Protocols without HTTP/2", t.MaxConnsPerHost)
	}
	return nil
}

// checkBase reports what of base would bypass the choice of an endpoint, or would
// fail each request.
func checkBase(base *http.Transport) error {
	var problems []error
	refuse := func(set bool, field, why string) {
		if set {
			problems = append(problems, fmt.Errorf("httpclient: Base.%s is set, want nil: %s", field, why))
		}
	}
	refuse(base.Proxy != nil, "Proxy", "a proxy would choose the endpoint itself")
	refuse(base.DialTLSContext != nil, "DialTLSContext", "it would be called with the URL's host; use DialContext and TLSClientConfig")
	//lint:ignore SA1019 a deprecated field is refused, not used
	refuse(base.DialTLS != nil, "DialTLS", "it would be called with the URL's host; use DialContext and TLSClientConfig")
	//lint:ignore SA1019 a deprecated field is refused, not used
	refuse(base.Dial != nil, "Dial", "it cannot be cancelled; use DialContext")
	notNegative := func(field string, d time.Duration) {
		if d < 0 {
			problems = append(problems, fmt.Errorf("httpclient: Base.%s is %v, want at least 0", field, d))
		}
	}
	notNegative("TLSHandshakeTimeout", base.TLSHandshakeTimeout)
	notNegative("IdleConnTimeout", base.IdleConnTimeout)
	notNegative("ResponseHeaderTimeout", base.ResponseHeaderTimeout)
	notNegative("ExpectContinueTimeout", base.ExpectContinueTimeout)
	if h2 := base.HTTP2; h2 != nil {
		notNegative("HTTP2.SendPingTimeout", h2.SendPingTimeout)
		notNegative("HTTP2.PingTimeout", h2.PingTimeout)
		notNegative("HTTP2.WriteByteTimeout", h2.WriteByteTimeout)
	}
	return errors.Join(problems...)
}

// ownHTTP2 makes t, a clone, start HTTP/2 by itself. What a base that was used before,
// or that http2.ConfigureTransport has touched, has in TLSNextProto hands connections
// to its one HTTP/2 pool, keyed by the URL's host: inherited by the clones it would
// send all requests to whichever endpoint was connected first.
func ownHTTP2(t *http.Transport) error {
	protos := t.TLSNextProto
	t.TLSNextProto = nil
	for name := range protos {
		if name != "h2" && name != "unencrypted_http2" {
			return fmt.Errorf("httpclient: Base.TLSNextProto has %q, want only h2: its function would mix the endpoints' connections", clip(name))
		}
	}
	if t.Protocols != nil {
		return nil
	}
	if _, h2 := protos["h2"]; protos != nil && !h2 {
		// A map without h2 is how HTTP/2 was switched off before there was Protocols.
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		return nil
	}
	// Otherwise a transport with a dialer of its own leaves HTTP/2 off.
	t.ForceAttemptHTTP2 = true
	return nil
}

func setDefaults(t *http.Transport) {
	if t.DialContext == nil {
		t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	if t.MaxIdleConnsPerHost == 0 {
		t.MaxIdleConnsPerHost = maxIdleConnsPerHost
	}
	setDefault(&t.TLSHandshakeTimeout, tlsHandshakeTimeout)
	setDefault(&t.IdleConnTimeout, idleConnTimeout)
	setDefault(&t.ExpectContinueTimeout, expectContinueTimeout)
	if t.HTTP2 == nil {
		t.HTTP2 = new(http.HTTP2Config)
	}
	setDefault(&t.HTTP2.SendPingTimeout, sendPingTimeout)
	setDefault(&t.HTTP2.PingTimeout, pingTimeout)
	setDefault(&t.HTTP2.WriteByteTimeout, writeByteTimeout)
}

func setDefault(field *time.Duration, value time.Duration) {
	if *field == 0 {
		*field = value
	}
}

// trackedDial is fixedDial with a grip on the connections.
func trackedDial(tmpl *http.Transport, addr string) *trackedLeaf {
	l := &trackedLeaf{Transport: fixedDial(tmpl, addr)}
	l.DialContext = l.conns.tracked(l.DialContext)
	return l
}

// fixedDial returns a clone of tmpl that connects to addr, whatever host is asked for.
func fixedDial(tmpl *http.Transport, addr string) *http.Transport {
	t := tmpl.Clone()
	if c := t.TLSClientConfig; c != nil {
		c.NextProtos = slices.Clone(c.NextProtos) // net/http adds to it, and all clones have one array
	}
	dial := tmpl.DialContext
	addr = dialed(addr)
	t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil && conn == nil {
			err = errors.New("httpclient: Base.DialContext returned neither a connection nor an error")
		}
		if err != nil {
			return nil, unreached(err)
		}
		return conn, nil
	}
	return t
}
