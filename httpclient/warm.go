package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
)

// warmKey is the key of a *warming in the context of its dial.
type warmKey struct{}

// warming is one connection that is made before there is a request for it. net/http makes none of its own accord, but
// goes on making one whose request has left, as another may want it: so a request asks for it and leaves when its dial
// begins. Nothing of that request is ever sent.
type warming struct {
	leave context.CancelFunc // of the request
	turn  chan struct{}      // closed when it may be dialed
	over  <-chan struct{}    // closed when it need not be any more
	tls   bool
	made  chan error // holds one: nil when the connection can be used
	alone bool       // it serves all requests, as one of HTTP/2 does; set before made is sent to
}

var (
	errNotNeeded = errors.New("httpclient: the connection is not needed any more")
	errNoDial    = errors.New("httpclient: http.Transport did not connect")
)

// dial waits for its turn.
func (w *warming) dial(connect func() (net.Conn, error)) (net.Conn, error) {
	w.leave()
	select {
	case <-w.turn:
	case <-w.over:
		return nil, errNotNeeded
	}
	conn, err := connect()
	if err != nil || !w.tls {
		w.made <- err
	}
	return conn, err
}

// shaken is httptrace's word that the handshake is over.
func (w *warming) shaken(state tls.ConnectionState, err error) {
	w.alone = state.NegotiatedProtocol == "h2"
	w.made <- err
}

// warm makes n connections of l to target, one after the other, so that they are there for the first requests. l must
// be in nobody's use yet. It returns how many were made; those before an error stay.
func warm(ctx context.Context, l http.RoundTripper, target Target, n int) (made int, err error) {
	over := make(chan struct{})
	defer close(over)
	asked := make([]*warming, 0, n)
	for range n {
		w, err := ask(ctx, l, target, over)
		if err != nil {
			return 0, err
		}
		asked = append(asked, w)
	}
	for _, w := range asked {
		close(w.turn)
		select {
		case err = <-w.made:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return made, err
		}
		if made++; w.alone {
			break
		}
	}
	return made, nil
}

// ask has l begin one more connection, which waits for its turn.
func ask(ctx context.Context, l http.RoundTripper, target Target, over <-chan struct{}) (*warming, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	w := &warming{leave: leave, turn: make(chan struct{}), over: over, tls: target.Scheme == "https", made: make(chan error, 1)}
	of := httptrace.WithClientTrace(context.WithValue(ctx, warmKey{}, w), &httptrace.ClientTrace{TLSHandshakeDone: w.shaken})
	req := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: target.Scheme, Host: net.JoinHostPort(target.Host, target.Port), Path: "/"}, Header: http.Header{}}
	resp, err := l.RoundTrip(req.WithContext(of))
	switch {
	case err == nil: // of a kind that answers without a connection
		_ = resp.Body.Close() // nobody asked for it
		return nil, errNoDial
	case ctx.Err() == nil:
		return nil, err
	}
	return w, nil
}
