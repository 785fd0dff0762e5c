package httpclient

import (
	"errors"
	"net"
)

// The errors of a Transport itself. Test for them with errors.Is: an http.Client wraps
// what a transport returns.
var (
	// ErrClosed says that the Transport was closed.
	ErrClosed = errors.New("httpclient: the Transport is closed")
	// ErrTooManyTargets says that a request would need one more target than
	// Transport.MaxTargets, and that all of them have requests in flight.
	ErrTooManyTargets = errors.New("httpclient: MaxTargets targets are in use")
)

// TargetError says why a request could not be sent to any endpoint of its target: no
// addresses could be found, or none in time, or there are none (evenkeel.ErrEmpty).
// Nothing of the request was sent.
type TargetError struct {
	// Target is the service that the request was for.
	Target Target
	// Op says what was being done.
	Op string
	// Err is the cause.
	Err error
}

// Error names the target, what was being done, and the cause.
func (e *TargetError) Error() string {
	return "httpclient: " + e.Target.String() + ": " + e.Op + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *TargetError) Unwrap() error { return e.Err }

// Timeout reports whether the cause is a time limit that ran out, so that url.Error
// and net.Error say so too.
func (e *TargetError) Timeout() bool { return isTimeout(e.Err) }

// dialError marks an error of the dialer: nothing of the request was sent. Its text
// and what it wraps are the dialer's.
type dialError struct{ err error }

func (e *dialError) Error() string   { return e.err.Error() }
func (e *dialError) Unwrap() error   { return e.err }
func (e *dialError) Timeout() bool   { return isTimeout(e.err) }
func (e *dialError) Temporary() bool { return false } // with Timeout it makes a net.Error

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
