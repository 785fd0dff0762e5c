package health

import "time"

// WatchEvent is what happens on the stream of a gRPC health Watch.
type WatchEvent uint8

// The events.
const (
	// WatchServing is a message that says SERVING.
	WatchServing WatchEvent = iota
	// WatchNotServing is a message that says anything else, SERVICE_UNKNOWN included.
	WatchNotServing
	// WatchUnimplemented is a stream that ended with UNIMPLEMENTED: the server does not know
	// the health service.
	WatchUnimplemented
	// WatchBroken is a stream that ended in any other way.
	WatchBroken
)

// The wait before a broken Watch is begun again: doubled each time, spread by a fifth.
const (
	watchBackoffLeast  = time.Second
	watchBackoffMost   = 30 * time.Second
	watchBackoffJitter = 0.2
)

// Watch follows one endpoint's gRPC health Watch, as gRFC A17 has it. It is a value; the
// zero Watch has seen nothing.
type Watch struct {
	failures int  // streams in a row that ended without a message
	messages bool // on the stream that is open
	warned   bool
}

// WatchAnswer is what follows from an event.
type WatchAnswer struct {
	// Healthy is the endpoint's status from here on.
	Healthy bool
	// Stop says that no stream is to be begun again on this connection.
	Stop bool
	// RetryAfter is the wait before the next stream, when one has ended and Stop is
	// false: none if there was a message on it.
	RetryAfter time.Duration
	// Warn is true once, when the server does not know the health service.
	Warn bool
}

// Next takes an event and returns what follows; random spreads the waits.
func (w *Watch) Next(e WatchEvent, random uint64) WatchAnswer {
	switch e {
	case WatchServing, WatchNotServing:
		w.failures, w.messages = 0, true
		return WatchAnswer{Healthy: e == WatchServing}
	case WatchUnimplemented:
		// A server without the service is no sick server.
		warn := !w.warned
		w.warned = true
		w.failures, w.messages = 0, false
		return WatchAnswer{Healthy: true, Stop: true, Warn: warn}
	}
	if w.messages {
		w.messages = false
		return WatchAnswer{}
	}
	wait := min(watchBackoffLeast<<min(w.failures, 10), watchBackoffMost)
	w.failures++
	return WatchAnswer{RetryAfter: time.Duration(spread(wait, watchBackoffJitter, random))}
}
