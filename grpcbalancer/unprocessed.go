package grpcbalancer

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// saysNothing reports whether an attempt's end says nothing of its endpoint.
func saysNothing(info balancer.DoneInfo) bool {
	switch {
	case !info.BytesSent && !info.BytesReceived:
		// gRPC picks connections that are READY. Where nothing was sent all the same, the connection went away
		// meanwhile, which its state tells, or something of the caller's own is wrong: the credentials of the call,
		// an authority, headers that are too large, a deadline while it waited for a stream. That has the codes of
		// failures, and would have all endpoints ejected.
		return true
	case info.Err != nil:
		return false
	case !info.BytesReceived:
		// A call that is well has had an answer. gRPC says that there is no error where a caller learns of one by
		// sending.
		return true
	default:
		// The same where the server failed the call before it had answered anything: what it sent is trailers alone,
		// which have the content type that otherwise headers have. A stream may end well in that way, too, if it has no
		// message; nothing tells the two apart, and to take a failure for a quick answer is the worse mistake.
		return len(info.Trailer["content-type"]) > 0
	}
}

// textClosing is grpc-go's own for the calls of a channel that is closed.
const textClosing = "grpc: the client connection is closing"

// Texts of grpc-go's own for attempts that the server did not process, which have no code of their own.
const (
	textDraining = "the connection is draining"
	textRejected = "the stream is rejected because server is draining the connection"
	textRefused  = "stream terminated by RST_STREAM with error code: REFUSED_STREAM"
)

// unprocessed returns what an attempt means that the server did not process, by HTTP/2's word for it; false if it
// is another one. gRPC makes these again by itself, most of the time. A server that goes away is not to blame for a
// stream that crossed its GOAWAY; one that refuses a stream has no place for it, and is left alone for a moment.
func unprocessed(info balancer.DoneInfo) (r evenkeel.Result, ok bool) {
	if info.BytesReceived || status.Code(info.Err) != codes.Unavailable { // then the words are a server's
		return r, false
	}
	switch status.Convert(info.Err).Message() {
	case textDraining, textRejected:
		return r, true
	case textRefused:
		return evenkeel.Result{Outcome: evenkeel.Overload, Status: picker.GRPCStatus(uint32(codes.Unavailable))}, true
	}
	return r, false
}
