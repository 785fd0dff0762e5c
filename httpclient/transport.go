package httpclient

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel"
)

// Transport is an http.RoundTripper that spreads the requests for one host over its
// endpoints, choosing for each request. The zero value is ready: it balances over the
// addresses that DNS has for the URL's host, by latency.
//
// The first request starts it, and fails if a field cannot be used, naming all that
// cannot. Fields must not be changed after that, and a Transport must not be copied.
// A Transport that is no longer needed must be closed. All methods are safe for
// concurrent use.
type Transport struct {
	// Resolver finds the endpoints of each target; nil means DNS of the URL's host.
	Resolver Resolver

	// Config says how endpoints are chosen. The zero value is the default.
	Config evenkeel.Config

	// Key returns a request's affinity key, for policies that use one; false, or an empty
	// key, leaves it to Config.Keys. It is called for each request, concurrently, and must
	// neither change the request nor read its body. nil means Config.Keys alone.
	Key func(*http.Request) (key string, ok bool)

	// Base is the template of the http.Transport that each endpoint gets for itself, so
	// that limits on connections hold for each endpoint. It is not changed. Fields left
	// at zero, or all if Base is nil, mean: dial in 3 s, TLSHandshakeTimeout 5 s,
	// MaxIdleConnsPerHost 64, IdleConnTimeout 50 s, ExpectContinueTimeout 1 s, and in
	// HTTP2 SendPingTimeout 15 s, PingTimeout 5 s, WriteByteTimeout 10 s.
	//
	// DialContext is called with the endpoint's address in place of the URL's host.
	// HTTP/2 is used over TLS where the server has it, unless Protocols says otherwise
	// or TLSNextProto is a map without "h2". What x/net/http2.ConfigureTransport set up
	// is replaced by net/http's own HTTP/2.
	//
	// Refused are Proxy, Dial, DialTLS and DialTLSContext, which would all choose the
	// connection instead of the Transport; protocols besides HTTP/2 in TLSNextProto;
	// MaxConnsPerHost together with HTTP/2; and negative durations. http.DefaultTransport
	// has a Proxy, so that a clone of it needs one more line:
	//
	//	base := http.DefaultTransport.(*http.Transport).Clone()
	//	base.Proxy = nil
	//
	// Protocols registered with RegisterProtocol are not taken over.
	Base *http.Transport

	// MaxTargets is how many targets (scheme, host and port) may be in use at a time. One
	// more takes the place of the one that has been without requests for longest; if
	// all have requests in flight it fails with ErrTooManyTargets. 0 means 256; at most
	// 65,536.
	MaxTargets int

	// TargetIdleTimeout is how long a target without requests is kept: its lookups, its
	// connections and what is known of its endpoints. 0 means 15 minutes; otherwise at
	// least 1 s.
	TargetIdleTimeout time.Duration

	// The tests' own: nil means clones of Base, and the runtime's randomness.
	newLeaf func(target Target, addr string) leaf
	rand    func() uint64

	started atomic.Pointer[startup]
	mu      sync.Mutex // held to set started
}

// startup is what became of a Transport's first use.
type startup struct {
	fleet *fleet // nil if err is not
	err   error
}

// RoundTrip sends req to an endpoint of its target, as http.RoundTripper says. The
// request is passed on as it is, with its body watched for errors, which are not the
// endpoint's. It counts as in flight until the answer's body is at
// its end or closed; the endpoint's latency is the time to the headers, and what their
// status says of it counts from then on.
//
// Errors before an endpoint was chosen are *TargetError, ErrClosed,
// ErrTooManyTargets, the cause of a context that is done already, or say what is wrong
// with the request or the Transport. After that they are those of http.Transport. Where nothing was sent they are an
// [ErrUnreached]. A request is sent once: there are no retries (see the package's
// documentation).
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	g, pick, err := t.pick(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	e := pick.Handle()
	if err := ended(req); err != nil { // during the pick
		pick.Done(evenkeel.Result{Outcome: evenkeel.Unknown})
		e.release()
		closeBody(req)
		return nil, err
	}
	out, sent := watched(req)
	resp, err := e.leaf().RoundTrip(out)
	if err == nil {
		if sent != nil {
			resp.Request = req
		}
		answered(req, sent, resp, pick)
		return resp, nil
	}
	err = e.explain(err)
	outcome := evenkeel.Unknown
	if !sent.bodyFailed() {
		outcome = outcomeOfError(req, err)
	}
	pick.Done(evenkeel.Result{Outcome: outcome})
	e.release()
	if outcome == evenkeel.Unreached || outcome == evenkeel.Failure {
		g.hint()
	}
	if outcome == evenkeel.Unreached {
		err = unreached(err)
	}
	return nil, err
}

// pick chooses the endpoint for req, on first use starting what that takes.
func (t *Transport) pick(req *http.Request) (*group, evenkeel.Pick[*endpoint], error) {
	var none evenkeel.Pick[*endpoint]
	f, err := t.start()
	if err != nil {
		return nil, none, err
	}
	for {
		g, err := f.group(req.URL)
		if err != nil {
			return nil, none, err
		}
		p, err := g.pick(req)
		if err != errEvicted {
			return g, p, err
		}
		// The target was evicted between the two; or the Transport was closed, which
		// the next round finds. It finds too whether the request's context is done.
	}
}

// start returns the fleet, which the first call makes.
func (t *Transport) start() (*fleet, error) {
	if s := t.started.Load(); s != nil {
		return s.fleet, s.err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.started.Load(); s != nil {
		return s.fleet, s.err
	}
	f, err := newFleet(t)
	t.started.Store(&startup{fleet: f, err: err})
	return f, err
}

// CloseIdleConnections closes the connections that have no request. New requests make
// new ones.
func (t *Transport) CloseIdleConnections() {
	if f := t.running(); f != nil {
		for _, g := range *f.groups.Load() {
			g.closeIdle()
		}
	}
}

// Close stops the lookups and closes the connections that have no request; requests in
// flight go on, and their connections close when they end. New requests fail with
// ErrClosed. Close does not wait, and calling it again does nothing.
func (t *Transport) Close() {
	t.mu.Lock()
	f := t.running()
	t.started.Store(&startup{err: ErrClosed})
	t.mu.Unlock()
	if f != nil {
		f.close()
	}
}

// running returns the fleet of a Transport that was started and not closed, else nil.
func (t *Transport) running() *fleet {
	if s := t.started.Load(); s != nil {
		return s.fleet
	}
	return nil
}

// closeBody closes the request's body, as a RoundTripper must on errors too.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // the error that matters is the one that is returned
	}
}
