package httpclient

import (
	"errors"
	"net/http"
	"strings"
)

// isIdempotentRequest reports whether sending req twice does no harm: by its method (RFC 9110, 9.2.2)
// or because it has a key by which the server knows it again.
func isIdempotentRequest(req *http.Request) bool {
	if isIdempotent(req.Method) {
		return true
	}
	// A key without a value counts, as it does for net/http.
	if _, has := req.Header["Idempotency-Key"]; has {
		return true
	}
	_, has := req.Header["X-Idempotency-Key"]
	return has
}

// hasBody reports whether req has a body that something can be read from.
func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// isReplayable reports whether the whole of req can be sent again.
func isReplayable(req *http.Request) bool { return !hasBody(req) || req.GetBody != nil }

// streamError has the fields of net/http's own error of an HTTP/2 stream, which can be had as one.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// Error is there for errors.As.
func (streamError) Error() string { return "stream error" }

// refusedStream is HTTP/2's code for a request that was not looked at (RFC 9113, 8.7).
const refusedStream = 7

// isUnprocessed reports whether err says that the endpoint has not acted on the request, though it may have come
// there: an HTTP/2 stream was refused, or is beyond the last that a GOAWAY names.
func isUnprocessed(err error) bool {
	var stream streamError
	if errors.As(err, &stream) {
		return stream.Code == refusedStream
	}
	text := err.Error() // the types of these are net/http's own
	return strings.Contains(text, "http2: Transport received Server's graceful shutdown GOAWAY") ||
		strings.Contains(text, "http2: client conn not usable") ||
		strings.Contains(text, "http2: client conn could not be established") || // it ended before it carried anything
		// It would have been sent again, but for its body.
		strings.HasPrefix(text, "http2: Transport: cannot retry err [stream error: ") && strings.Contains(text, "; REFUSED_STREAM; ")
}
