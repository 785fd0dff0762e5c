package outlier

import "github.com/evenkeel/evenkeel/picker"

// Event is what one request, or one attempt to connect, says about an endpoint. Events
// are finer than [picker.Outcome], because the documents that [Envoy] and [A50] follow
// draw their lines elsewhere; [EventOf] is enough for [Soft].
type Event uint8

// The events. "Failure" below means that the mode books it against the endpoint.
const (
	// Ignored says nothing in any mode: a caller that left, a limit or a full queue
	// of this client's own, a pick that became no request.
	Ignored Event = iota
	// Succeeded is a good answer.
	Succeeded
	// CallerFault is an answer that blames the caller (4xx but 429, NOT_FOUND …): a
	// success; a failure in A50.
	CallerFault
	// Unimplemented is HTTP 501: the caller's fault in Soft, a failure in the others.
	Unimplemented
	// Failed is an answer that blames the endpoint, or a connection that broke after
	// sending: a failure.
	Failed
	// GatewayFailed is HTTP 502, 503 or 504: a failure, and Envoy counts it twice.
	GatewayFailed
	// Unreached is a refused connection or a failed handshake, with nothing sent: a
	// failure; with Envoy's split, one of local origin.
	Unreached
	// TimedOut is a time limit that ran out after sending: a failure, which Soft does
	// not book while many endpoints fail at once; with Envoy's split, one of local
	// origin.
	TimedOut
	// Connected is a connection that came about: with Envoy's split a success of
	// local origin, else nothing.
	Connected
	// Throttled is HTTP 429 or RESOURCE_EXHAUSTED: nothing in Soft, a success in
	// Envoy (it is no 5xx), a failure in A50.
	Throttled
	// Shed is HTTP 503 with Retry-After: nothing in Soft, else as GatewayFailed.
	Shed
	// Unclear is an answer that blames nobody in particular, such as a CANCELLED that
	// the server sent: nothing in Soft, a success in Envoy (HTTP 499), a failure in A50.
	Unclear

	events = iota
)

var eventNames = [events]string{"ignored", "succeeded", "caller fault", "unimplemented", "failed",
	"gateway failed", "unreached", "timed out", "connected", "throttled", "shed", "unclear"}

// String returns the event's name.
func (e Event) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return "invalid"
}

// EventOf returns the event for an outcome. Status codes that an outcome no longer
// shows are gone: NOT_FOUND is a success in A50 too, and Envoy's count of gateway
// failures sees none. Values that are no Outcome are Ignored.
func EventOf(o picker.Outcome) Event {
	switch o {
	case picker.Success:
		return Succeeded
	case picker.Failure:
		return Failed
	case picker.Unreached:
		return Unreached
	case picker.Timeout:
		return TimedOut
	case picker.Overload:
		return Throttled
	}
	return Ignored
}

// EventOfResult is EventOf with the distinctions that the result's Status adds. A status that
// contradicts the outcome, which a caller's own mapping may, adds none.
func EventOfResult(r picker.Result) Event {
	if status, ok := r.Status.HTTP(); ok {
		retryAfter := status == 503 && r.Outcome == picker.Overload
		if r.Outcome == picker.OutcomeOfHTTP(status, retryAfter) {
			return EventOfHTTP(status, retryAfter)
		}
		return EventOf(r.Outcome)
	}
	if code, ok := r.Status.GRPC(); ok {
		return refinedByGRPC(r.Outcome, code)
	}
	return EventOf(r.Outcome)
}

// EventOfHTTP returns the event for the status of an HTTP answer; retryAfter says
// whether it has a valid Retry-After header. Numbers that are no status are Ignored.
func EventOfHTTP(status int, retryAfter bool) Event {
	switch {
	case status == 429:
		return Throttled
	case status == 501:
		return Unimplemented
	case status == 503 && retryAfter:
		return Shed
	case status == 502, status == 503, status == 504:
		return GatewayFailed
	case status >= 500 && status < 600:
		return Failed
	case status >= 400 && status < 500:
		return CallerFault
	case status >= 100 && status < 400:
		return Succeeded
	}
	return Ignored
}

// EventOfGRPC returns the event for a gRPC attempt's status code: what
// [picker.OutcomeOfGRPC] makes of it, with the distinctions that A50 and Envoy need.
// A caller that left is Ignored in every mode, although gRFC A50 counts its
// CANCELLED against the endpoint: nobody is to blame for it.
func EventOfGRPC(code uint32, f picker.GRPCFacts) Event {
	return refinedByGRPC(picker.OutcomeOfGRPC(code, f), code)
}

// refinedByGRPC adds to an outcome what its status code tells.
func refinedByGRPC(o picker.Outcome, code uint32) Event {
	const canceled, unavailable = 1, 14
	switch {
	case o == picker.Success && code != 0:
		return CallerFault
	case o == picker.Unknown && code == canceled:
		return Unclear // the server's word: a caller that left is Canceled
	case o == picker.Failure && code == unavailable:
		return GatewayFailed // what Envoy maps to 503
	}
	return EventOf(o)
}

// effect is what an event does in one mode.
type effect struct {
	// answers and locals are what to add to the counts of those names: 1 for a
	// success, 1<<32 for a failure.
	answers, locals uint64
	flags           effectFlags
}

type effectFlags uint8

const (
	runGood  effectFlags = 1 << iota // ends a run of failures
	runBad                           // extends it
	gateway                          // extends the run of gateway failures
	locGood                          // ends the run of local failures
	locBad                           // extends it
	late                             // a time limit that ran out
	waitMore                         // an endpoint that asks for less, though it is no failure
)

const (
	oneGood = uint64(1)
	oneBad  = uint64(1) << 32
)

type effects [events]effect

// effectsOf returns the table of a mode. split is Envoy's split of failures by origin.
func effectsOf(m Mode, split bool) effects {
	good := effect{answers: oneGood, flags: runGood}
	bad := effect{answers: oneBad, flags: runBad}
	switch m {
	case A50: // "success" is status OK and nothing else
		return effects{Succeeded: good, CallerFault: bad, Unimplemented: bad, Failed: bad, GatewayFailed: bad,
			Unreached: bad, TimedOut: bad, Throttled: bad, Shed: bad, Unclear: bad}
	case Envoy:
		viaGateway := effect{answers: oneBad, flags: runBad | gateway}
		t := effects{Succeeded: good, CallerFault: good, Unimplemented: bad, Failed: bad, GatewayFailed: viaGateway,
			Unreached: viaGateway, TimedOut: viaGateway, Throttled: good, Shed: viaGateway, Unclear: good}
		if split {
			t[Unreached] = effect{locals: oneBad, flags: locBad}
			t[TimedOut] = t[Unreached]
			t[Connected] = effect{locals: oneGood, flags: locGood}
		}
		return t
	}
	return effects{Succeeded: good, CallerFault: good, Unimplemented: good, Failed: bad, GatewayFailed: bad,
		Unreached: bad, TimedOut: {locals: oneBad, flags: runBad | late},
		Throttled: {flags: waitMore}, Shed: {flags: waitMore}}
}
