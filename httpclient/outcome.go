package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// result maps what the headers of an answer say, as the Transport's Classify has it.
func (e *endpoint) result(resp *http.Response) evenkeel.Result {
	r := resultOfAnswer(resp)
	if e.classify != nil {
		r.Outcome = e.classify(resp, nil)
	}
	return r
}

// DefaultOutcome returns what a Transport without a Classify makes of an answer, or of the error of a try; one of the two
// is nil. Answers are as picker.OutcomeOfHTTP has them; an error is an Unreached, a Timeout or a Failure. A Classify
// calls it for all but the few that it wants otherwise.
func DefaultOutcome(resp *http.Response, err error) evenkeel.Outcome {
	switch {
	case resp != nil:
		return resultOfAnswer(resp).Outcome
	case err == nil:
		return evenkeel.Unknown
	case isUnreached(err):
		return evenkeel.Unreached
	case isTimeout(err):
		return evenkeel.Timeout
	}
	return evenkeel.Failure
}

// resultOfAnswer maps what the headers of an answer say.
func resultOfAnswer(resp *http.Response) evenkeel.Result {
	// Only these two statuses make something of the header, and looking it up costs
	// on each request.
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return evenkeel.Result{Outcome: picker.OutcomeOfHTTP(resp.StatusCode, false), Status: picker.HTTPStatus(resp.StatusCode)}
	}
	after, ok := retryAfter(resp.Header, time.Now())
	return evenkeel.Result{Outcome: picker.OutcomeOfHTTP(resp.StatusCode, ok), Status: picker.HTTPStatus(resp.StatusCode), RetryAfter: after}
}

// maxRetryAfter bounds what a server can ask for. The pool has a lower bound for how long
// it does without an endpoint.
const maxRetryAfter = 300 * time.Second

// retryAfter reads Retry-After, a number of seconds or a date (RFC 9110, 10.2.3). ok
// says that there is a valid one; dates in the past are 0.
func retryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	values := h["Retry-After"]
	if len(values) == 0 {
		return 0, false
	}
	v := strings.TrimSpace(values[0])
	if v != "" && strings.Trim(v, "0123456789") == "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter, true // more digits than fit, or simply much
		}
		return time.Duration(n) * time.Second, true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return min(max(t.Sub(now), 0), maxRetryAfter), true
}

// outcomeOfError maps an error of sending req, or of reading its answer. Whether the
// caller left or ran out of time is for the request's context to say, never for the
// error: net/http returns whatever cause the caller gave, and an endpoint that is
// itself a client can fail with a cancellation of its own.
func outcomeOfError(req *http.Request, err error) evenkeel.Outcome {
	switch {
	case req.Context().Err() != nil, legacyCanceled(req):
		if isExpired(req.Context()) {
			return evenkeel.Timeout
		}
		return evenkeel.Canceled
	case errors.Is(err, ErrDrained): // this side's doing
		return evenkeel.Unknown
	case isUnreached(err):
		return evenkeel.Unreached
	case isCallersFault(req, err):
		return evenkeel.Unknown
	case isTimeout(err):
		return evenkeel.Timeout
	default:
		return evenkeel.Failure
	}
}

// isExpired reports whether the deadline of ctx has passed. The Timeout of an
// http.Client comes as a context with that deadline and also as a cancellation at the
// same time, and either of the two can be first.
func isExpired(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == context.DeadlineExceeded || ok && !time.Now().Before(deadline)
}

// causeOf returns the error of a caller that left, as net/http does: its own if it gave
// one.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case cause != nil && cause != context.Canceled:
		return cause
	case isExpired(ctx):
		return context.DeadlineExceeded
	default:
		return context.Canceled
	}
}

// legacyCanceled reports whether the request was cancelled in the way before contexts.
func legacyCanceled(req *http.Request) bool {
	//lint:ignore SA1019 net/http honours it, so callers may use it
	cancel := req.Cancel
	select {
	case <-cancel:
		return true
	default:
		return false // a nil channel too
	}
}

// isUnreached reports whether err is of a connection that came to nothing, so that
// nothing of the request was sent.
func isUnreached(err error) bool {
	var (
		dial     *unreachedError
		cert     *tls.CertificateVerificationError
		notTLS   tls.RecordHeaderError
		ech      *tls.ECHRejectionError
		fromPeer *net.OpError
	)
	switch {
	case errors.As(err, &dial), errors.As(err, &cert), errors.As(err, &ech):
		return true
	case errors.As(err, &notTLS):
		return notTLS.Conn != nil // only set in a handshake
	case errors.As(err, &fromPeer) && fromPeer.Op == "remote error":
		return isHandshakeAlert(fromPeer.Err)
	}
	return err.Error() == "net/http: TLS handshake timeout" // its type is net/http's own
}

// isHandshakeAlert reports whether err is an alert that a server sends only before it
// has read anything of a request (RFC 8446, 6.2). Others, such as the refusal of a
// client certificate, can come when the request is on its way already.
func isHandshakeAlert(err error) bool {
	const (
		handshakeFailure      = 40
		protocolVersion       = 70
		insufficientSecurity  = 71
		unrecognizedName      = 112
		noApplicationProtocol = 120
	)
	// The alert's type is crypto/tls's own; its text is that of the exported one.
	for _, alert := range []tls.AlertError{
		handshakeFailure, protocolVersion, insufficientSecurity, unrecognizedName, noApplicationProtocol,
	} {
		if err.Error() == alert.Error() {
			return true
		}
	}
	return false
}

// isCallersFault reports whether err says nothing of the endpoint: net/http refused
// the request, or its body was not what it was said to be. That reading the body failed is
// seen where it does (sent); still, with a body only errors that are known to be a
// connection's are the endpoint's.
func isCallersFault(req *http.Request, err error) bool {
	// net/http closes the connection of a request that it cannot send to its end.
	text := strings.TrimPrefix(err.Error(), "net/http: HTTP/1.x transport connection broken: ")
	for _, prefix := range []string{
		"net/http: invalid ", "http: nil Request.", "http: Request.", "http: ContentLength=",
		"http: invalid Read on closed Body", "http2: request body larger than specified content length",
		"net/http: can't write control character in Request.URL", "invalid Trailer key ",
		"http2: invalid Connection request header", "http2: invalid Upgrade request header",
		"http2: invalid Transfer-Encoding request header", "http2: invalid Host header", "http2: invalid Trailer key ",
	} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	hasBody := req.Body != nil && req.Body != http.NoBody || req.ContentLength != 0 // said to have one
	return hasBody && !isConnError(err, text)
}

// isConnError reports whether err is one of a connection, or of what came over it. Reading
// from a connection that was closed on this side is not: net/http closes it when a body
// is longer than it was said to be. Writing to one is: it was closed while the body was
// on its way because the endpoint had hung up.
func isConnError(err error, text string) bool {
	var ne net.Error
	if errors.Is(err, net.ErrClosed) {
		var op *net.OpError
		return errors.As(err, &op) && op.Op != "read"
	}
	if errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	for _, prefix := range []string{"http: ", "net/http: ", "http2: ", "malformed HTTP ", "tls: ", "stream error: ", "connection error: "} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
