package httpclient

import (
	"net/http"
	"net/url"
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
	// HTTP2 SendPingTimeout 10 s, PingTimeout 5 s, WriteByteTimeout 10 s.
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

	// Retry says when a request is sent once more. nil means &RetryConfig{}: when nothing was sent,
	// and if it is idempotent when its connection broke.
	Retry *RetryConfig

	// Hedge says when a request that has no answer yet is sent to a second endpoint as well. nil means never.
	Hedge *HedgeConfig

	// Classify says what an answer, or the error of a try, means for the endpoint; one of the two is nil. It is asked instead
	// of what package picker says of statuses, and of errors that may be the endpoint's, not of
	// those of the caller's or the Transport's own making. It must not read the body. What
	// is retried does not depend on it. Unknown teaches nothing; what is as usual is for [DefaultOutcome] to say, which nil
	// means. An Overload lasts as the answer's Retry-After says.
	Classify func(resp *http.Response, err error) evenkeel.Outcome

	// Observer is told of tries, retries and hedges. nil means nobody.
	Observer Observer

	// Balance says of a URL whether its host is balanced. nil means that all are.
	Balance func(*url.URL) bool

	// PassThrough sends the requests that are not balanced, as they are. nil means an http.Transport
	// like that of an endpoint, which connects to the URL's host.
	PassThrough http.RoundTripper

	// MaxTargets is how many targets (scheme, host and port) may be in use at a time. One
	// more takes the place of the one that has been without requests for longest; if
	// all have requests in flight it fails with ErrTooManyTargets. 0 means 256; at most
	// 65,536.
	MaxTargets int

	// TargetIdleTimeout is how long a target without requests is kept: its lookups, its
	// connections and what is known of its endpoints. 0 means 15 minutes; otherwise at
	// least 1 s.
	TargetIdleTimeout time.Duration

	// MaxConnAge is how old the connections of an endpoint become: then new ones are made, new requests use those, and the
	// old ones end when their requests have, however long that takes, or Config.DrainTimeout if it is set. What is behind
	// a virtual IP is found anew in this way, after a scale-out for example. 0 means any age; otherwise 1 s to 30 days.
	//
	// The oldest connection of an endpoint decides for all of them. Its age is a random part from 80 to
	// 100 % of MaxConnAge, so that connections made together do not end together. New ones are made one after the other, as many
	// as were in use lately and may be idle, and at one in 20 of a target's endpoints at a time, or one, once a second:
	// where more are due, the others become older. If none can be made the old ones stay, and
	// Snapshot says why.
	MaxConnAge time.Duration

	// HealLeaks has the garbage collector close the bodies of answers that callers drop without reading them to their end
	// or closing them: the connection is free again, and the request ends as if its body had been closed, at the
	// next collection and not before. Snapshot counts them. It is for programs that leak and cannot be mended today: it costs
	// five allocations for each answer with a body, where not having it costs nothing.
	HealLeaks bool

	// The tests' own: nil means clones of Base, and the runtime's randomness.
	newLeaf func(target Target, addr string) leaf
	rand    func() uint64

	started atomic.Pointer[startup]
	mu      sync.Mutex // held to set started
	leaving *fleet     // that Shutdown waits for; guarded by mu
}

// startup is what became of a Transport's first use.
type startup struct {
	fleet *fleet // nil if err is not
	err   error
}

// RoundTrip sends req to an endpoint of its target, as http.RoundTripper says, and again to
// another if that fails and Retry allows it. The
// request is passed on as it is, with its body watched for errors, which are not the
// endpoint's. It counts as in flight until the answer's body is at
// its end or closed; the endpoint's latency is the time to the headers, and what their
// status says of it counts from then on.
//
// Errors before an endpoint was chosen are *TargetError, ErrClosed,
// ErrTooManyTargets, the cause of a context that is done already, or say what is wrong
// with the request or the Transport. After that they are an *AttemptError with that of http.Transport in
// it, of the last try, or the cause of a context that was cancelled meanwhile. A *TargetError is an
// [ErrUnreached], and so is an *AttemptError where nothing was sent in any try.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	f, err := t.start()
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if f.balance != nil && req.URL != nil && !f.balance(req.URL) {
		return f.others.RoundTrip(req)
	}
	for {
		g, err := f.group(req.URL)
		if err != nil {
			closeBody(req)
			return nil, err
		}
		// The target may have been evicted between the two; or the Transport was closed, which
		// the next round finds. It finds too whether the request's context is done.
		if resp, err := g.send(req); err != errEvicted {
			return g.healed(resp), err
		}
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
		f.closeOthers()
	}
}

// Close stops the lookups and closes the connections that have no request; requests in
// flight go on, and their connections close when they end. New requests fail with
// ErrClosed. Close does not wait, and calling it again does nothing.
func (t *Transport) Close() {
	t.mu.Lock()
	f := t.running()
	if f == nil {
		f = t.leaving
	}
	t.started.Store(&startup{err: ErrClosed})
	t.mu.Unlock()
	if f != nil {
		f.close() // once more changes nothing
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
