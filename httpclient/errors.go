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
	// ErrDrained says that the endpoint left, or was drained, while the request was under way, and
	// that its time is over: see evenkeel.Config.DrainTimeout. What errors of connections are wrapped in
	// it says what happened to the request.
	ErrDrained = errors.New("httpclient: the endpoint was drained, and DrainTimeout is over")
	// ErrUnreached says that nothing of the request was sent, so that sending it again can
	// do no harm, whatever its method: no endpoint was found (*TargetError), or no
	// connection to the one that was chosen could be made (refused, no answer to the
	// dialer in time, a failed TLS handshake). It is what such errors are, for errors.Is,
	// not what they say. A request's body was closed, as after any error: to send it again,
	// take another one from http.Request.GetBody.
	ErrUnreached = errors.New("httpclient: nothing of the request was sent")
)

// TargetError says why a request could not be sent to any endpoint of its target: no
// addresses could be found, or none in time, or there are none (evenkeel.ErrEmpty), or too many
// requests are in flight while answers are late (evenkeel.ErrOverloaded).
// Nothing of the request was sent: it is an [ErrUnreached].
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

// Is says that it is an ErrUnreached.
func (e *TargetError) Is(target error) bool { return target == ErrUnreached }

// unreachedError makes an ErrUnreached of an error of connecting. Its text and what it
// wraps are those of that error.
type unreachedError struct{ err error }

func (e *unreachedError) Error() string        { return e.err.Error() }
func (e *unreachedError) Unwrap() error        { return e.err }
func (e *unreachedError) Is(target error) bool { return target == ErrUnreached }
func (e *unreachedError) Timeout() bool        { return isTimeout(e.err) }
func (e *unreachedError) Temporary() bool      { return false } // with Timeout it makes a net.Error

// unreached makes err an ErrUnreached, if it is none yet.
func unreached(err error) error {
	if errors.Is(err, ErrUnreached) {
		return err
	}
	return &unreachedError{err}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// drainedError makes an ErrDrained of what came of the connections' end.
type drainedError struct {
	addr string
	err  error
}

func (e *drainedError) Error() string {
	if e.err == ErrDrained {
		return ErrDrained.Error() + " (" + e.addr + ")"
	}
	return ErrDrained.Error() + " (" + e.addr + "): " + e.err.Error()
}
func (e *drainedError) Unwrap() error        { return e.err }
func (e *drainedError) Is(target error) bool { return target == ErrDrained }

// maxQuoted is how many characters of what came from outside an error quotes.
const maxQuoted = 100

// clip returns s as an error quotes it.
func clip(s string) string {
	n := 0
	for i := range s {
		if n == maxQuoted {
			return s[:i] + "..."
		}
		n++
	}
	return s
}
