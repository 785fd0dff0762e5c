package httpclient

import (
	"time"

	"github.com/evenkeel/evenkeel"
)

// Observer is told of what a Transport does with its requests: for metrics.
type Observer interface {
	// Observe is called on the request's way, without locks and concurrently, and must not block.
	Observe(Event)
}

// Trace is told of what becomes of one request, as net/http/httptrace tells of its connections, which
// works here too: see [WithTrace]. Any of its functions may be nil. They are called on the
// request's way, and of a hedged request concurrently, some after its answer is there.
type Trace struct {
	// GotEndpoint is called when the endpoint of a try was chosen.
	GotEndpoint func(Event)
	// AttemptDone is called when a try has its headers or has failed.
	AttemptDone func(Event)
	// Retry is called before a try that follows a failed one.
	Retry func(Event)
	// Hedge is called before a try that is made beside another.
	Hedge func(Event)
}

// EventKind says what an Event is of.
type EventKind uint8

const (
	// GotEndpoint is the choice of a try's endpoint. Observers are not told.
	GotEndpoint EventKind = iota
	// AttemptDone is the end of a try, at its headers or an error.
	AttemptDone
	// Retried is the decision to send a request again, after Event.Delay.
	Retried
	// Hedged is the decision to send a request twice.
	Hedged
	// Refused is a retry or hedge for which there was no budget. Traces are not told.
	Refused
)

// String returns the kind's name.
func (k EventKind) String() string {
	names := [...]string{"got endpoint", "attempt done", "retried", "hedged", "refused"}
	if int(k) < len(names) {
		return names[k]
	}
	return "invalid"
}

// Event is something that happened to one try of a request. Fields that its kind does not have are zero.
type Event struct {
	// Kind says what happened.
	Kind EventKind
	// Target is the service.
	Target Target
	// Endpoint is the address of the try's endpoint; of Retried, Hedged and Refused that of the last try.
	Endpoint string
	// Attempt is the number of the try, from 1; of Retried, Hedged and Refused that of the last one.
	Attempt int
	// Hedge says that the try was made beside another.
	Hedge bool
	// Outcome is how the try ended, of AttemptDone.
	Outcome evenkeel.Outcome
	// Status is that of its answer, 0 if there was none.
	Status int
	// Sent says that the endpoint may have acted on the try; see [AttemptError].
	Sent bool
	// Elapsed is the time from the choice to the headers or the error, of AttemptDone.
	Elapsed time.Duration
	// Delay is how long is waited before the next try, of Retried.
	Delay time.Duration
	// Err is the try's error, an *AttemptError, which names target, endpoint and attempt itself.
	Err error
}

// watched reports whether somebody is told of the call's events.
func (c *call) watched() bool {
	return c.group.observer != nil || c.control != nil && c.control.trace != nil
}

// tell tells who wants to know.
func (c *call) tell(ev Event) {
	ev.Target = c.group.target
	if o := c.group.observer; o != nil && ev.Kind != GotEndpoint {
		o.Observe(ev)
	}
	if c.control == nil || c.control.trace == nil {
		return
	}
	t := c.control.trace
	funcs := [...]func(Event){GotEndpoint: t.GotEndpoint, AttemptDone: t.AttemptDone, Retried: t.Retry, Hedged: t.Hedge, Refused: nil}
	if f := funcs[ev.Kind]; f != nil {
		f(ev)
	}
}
