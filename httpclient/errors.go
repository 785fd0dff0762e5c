package httpclient

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/evenkeel/evenkeel"
)

// The errors of a Transport itself. Test for them with errors.Is: an http.Client wraps
// what a transport returns.
var (
	// ErrClosed says that the Transport was closed.
	ErrClosed = errors.New("httpclient: the Transport is closed")
	// ErrNoEndpoints says that a target has no endpoint that may be used: its list is empty
	// (evenkeel.ErrEmpty), or none of it is ready (evenkeel.ErrNoneReady).
	ErrNoEndpoints = errors.New("httpclient: there is no endpoint")
	// ErrOverloaded says that this client has as many requests in flight as evenkeel.LimitConfig
	// allows. It is evenkeel.ErrOverloaded.
	ErrOverloaded = evenkeel.ErrOverloaded
	// ErrTooManyTargets says that a request would need one more target than
	// Transport.MaxTargets, and that all of them have requests in flight.
	ErrTooManyTargets = errors.New("httpclient: MaxTargets targets are in use")
	// ErrDrained says that the endpoint left, or was drained, or that its connections were replaced (Transport.MaxConnAge),
	// while the request was under way, and that its time is over: see evenkeel.Config.DrainTimeout. What errors of connections are wrapped in
	// it says what happened to the request.
	ErrDrained = errors.New("httpclient: the endpoint or its connection was drained, and DrainTimeout is over")
	// ErrUnreached says that nothing of the request was sent, in none of its tries, so that sending it again can
	// do no harm, whatever its method: no endpoint was found (*TargetError), or no
	// connection to the one that was chosen could be made (refused, no answer to the
	// dialer in time, a failed TLS handshake), or it refused the request unread (HTTP/2's REFUSED_STREAM and GOAWAY). It is what such errors are, for errors.Is,
	// not what they say. A request's body was closed, as after any error: to send it again,
	// take another one from http.Request.GetBody.
	ErrUnreached = errors.New("httpclient: nothing of the request was sent")
)

// TargetError says why a request could not be sent to any endpoint of its target: no
// addresses could be found, or none in time, or there are none (evenkeel.ErrEmpty), or too many
// requests are in flight while answers are late, or as any endpoint may have (evenkeel.ErrOverloaded).
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

// Temporary is there to make it a net.Error.
func (e *TargetError) Temporary() bool { return false }

// Is says that it is an ErrUnreached, and whether it is an ErrNoEndpoints.
func (e *TargetError) Is(target error) bool {
	return target == ErrUnreached ||
		target == ErrNoEndpoints && (errors.Is(e.Err, evenkeel.ErrEmpty) || errors.Is(e.Err, evenkeel.ErrNoneReady))
}

// AttemptError says how the last try of a request failed, and the others before it. It wraps what http.Transport said of the
// last, and of that alone: whether an error is a timeout, say, is about the last try. Who cancels its context gets the cause
// instead; [WithTrace] tells of the tries then, too.
type AttemptError struct {
	// Target is the service.
	Target Target
	// Endpoint is the address of the endpoint.
	Endpoint string
	// Attempt is the number of the try, which is also how many there were, unless it was hedged.
	Attempt int
	// Outcome is what the endpoint's record was told.
	Outcome evenkeel.Outcome
	// Sent says that the endpoint may have acted on the try. If it is false, nothing of it was sent, or
	// it was refused unread, and sending the request again can do no harm (of an idempotent request that
	// http.Transport sent twice by itself, it is about the second time).
	Sent bool
	// Err is the cause.
	Err error
	// Earlier are the tries that ended before this one, in that order, as a Trace is told of them by AttemptDone: their endpoints,
	// times, statuses and errors. nil if there was one try. It must not be changed.
	Earlier []Event
}

// Error names the target, the endpoint, the try and the cause, and those of the tries before it.
func (e *AttemptError) Error() string {
	var b strings.Builder
	b.WriteString("httpclient: " + e.Target.String() + ": endpoint " + e.Endpoint + ", attempt " + strconv.Itoa(e.Attempt) + ": " + e.Err.Error())
	for i, ev := range e.Earlier {
		if i == 0 {
			b.WriteString(" (before that: ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString("endpoint " + ev.Endpoint + ", attempt " + strconv.Itoa(ev.Attempt) + ": " + clip(ev.cause()))
	}
	if len(e.Earlier) > 0 {
		b.WriteByte(')')
	}
	return b.String()
}

// cause says in a few words how a try ended.
func (e *Event) cause() string {
	var failed *AttemptError
	switch {
	case errors.As(e.Err, &failed):
		return failed.Err.Error()
	case e.Err != nil:
		return e.Err.Error()
	}
	return "status " + strconv.Itoa(e.Status)
}

// Unwrap returns the cause.
func (e *AttemptError) Unwrap() error { return e.Err }

// Timeout reports whether the cause is a time limit that ran out, so that url.Error
// and net.Error say so too.
func (e *AttemptError) Timeout() bool { return isTimeout(e.Err) }

// Temporary is there to make it a net.Error.
func (e *AttemptError) Temporary() bool { return false }

// Is says whether it is an ErrUnreached, which it is if nothing was sent in any of the tries.
func (e *AttemptError) Is(target error) bool {
	return target == ErrUnreached && !e.Sent && !wasSent(e.Earlier)
}

func wasSent(tries []Event) bool {
	return slices.ContainsFunc(tries, func(ev Event) bool { return ev.Sent })
}

// withEarlier returns a request's error with the tries that ended before its last one. It is a copy, as observers have been told
// of the other.
func withEarlier(err error, earlier []Event) error {
	failed, ok := err.(*AttemptError)
	if !ok || len(earlier) == 0 {
		return err
	}
	own := *failed
	own.Earlier = earlier
	if wasSent(earlier) {
		own.Err = reachedError{own.Err}
	}
	return &own
}

// reachedError is an error of a try that came to nothing, of a request that was sent before: all that it was but an ErrUnreached.
type reachedError struct{ err error }

func (e reachedError) Error() string { return e.err.Error() }
func (e reachedError) Is(target error) bool {
	return target != ErrUnreached && errors.Is(e.err, target)
}
func (e reachedError) As(target any) bool { return errors.As(e.err, target) }

// Reasons of a Transport's own to end a try, and errors that no caller sees.
var (
	errTryTimeout = error(&tryTimeoutError{})
	errLost       = errors.New("httpclient: another try was faster")
	errNoTime     = errors.New("httpclient: there is no time for another try")
	errNotYet     = errors.New("httpclient: there is none yet")
)

// tryTimeoutError says that RetryConfig.TryTimeout is over.
type tryTimeoutError struct{}

func (*tryTimeoutError) Error() string   { return "no answer within RetryConfig.TryTimeout" }
func (*tryTimeoutError) Timeout() bool   { return true }
func (*tryTimeoutError) Temporary() bool { return false }

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

// isDial reports whether err is one of the dialer, rather than of the handshake after it.
func isDial(err error) bool {
	var dial *unreachedError
	return errors.As(err, &dial)
}

func isDrained(err error) bool { return errors.Is(err, ErrDrained) }

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
