package picker

import (
	"slices"
	"time"
)

// Request describes one request to a Picker. The zero Request is a unary request
// without a key. It is passed by value so that it never escapes to the heap.
type Request struct {
	// Key is the affinity key's hash; used only if HasKey is set, by policies that
	// hash. Others ignore it.
	Key uint64
	// HasKey says that Key counts (0 is a valid key).
	HasKey bool
	// Kind says what may be concluded from how long the request takes. The zero value
	// is Unary.
	Kind Kind
	// Idempotent says that sending the request twice does no harm.
	Idempotent bool
	// Avoid lists endpoints not to pick if any other is available, such as those that
	// an earlier attempt already tried. It is not kept after the call.
	Avoid []*Record
}

// Kind is what is known of a request's shape.
type Kind uint8

const (
	// Unary is one answer to one request: the time to it is its latency, and waiting
	// for it longer than usual is a sign of a hang.
	Unary Kind = iota
	// Stream is long-lived (a stream, a tunnel, a long poll): it counts in flight
	// until it ends, its latency is the time to its first byte, and waiting means
	// nothing.
	Stream
	// UnknownKind may be either. It ages only since the endpoint's last Done, and a
	// duration above [UnknownKindCutoff] is no latency.
	UnknownKind
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Unary:
		return "unary"
	case Stream:
		return "stream"
	case UnknownKind:
		return "unknown"
	}
	return "invalid"
}

// UnknownKindCutoff is the duration above which a request of [UnknownKind] is taken
// for a stream. Unary calls have deadlines below it almost everywhere.
const UnknownKindCutoff = 10 * time.Second

// avoids reports whether the request asks not to be sent to rec.
func (r *Request) avoids(rec *Record) bool { return slices.Contains(r.Avoid, rec) }

// Result says how a picked request ended. The zero Result is Unknown.
type Result struct {
	// Outcome is how it ended.
	Outcome Outcome
	// Status is what the answer said in its own protocol, if there was one. It refines
	// Outcome for the rules of package outlier that follow other documents, and nothing else.
	Status Status
	// RetryAfter is how long an endpoint that answered Overload asked not to be used.
	// 0 or less means that it gave no hint.
	RetryAfter time.Duration
	// Load is what the endpoint reported about itself with the answer, good or bad. The zero Load
	// says nothing: the policies then go by what this client has seen. It counts for those that go
	// by the expected wait; see [BuiltinSignal].
	Load Load
}
