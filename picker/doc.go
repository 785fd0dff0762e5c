// Package picker chooses which endpoint gets a request, and learns from how the
// request went. It is the core that the gRPC and HTTP adapters share, and it can be
// used alone in an RPC stack of your own; most users want evenkeel.Pool around it,
// which adds handles, states and housekeeping.
//
// # The parts
//
// A [Registry] keeps one [Record] per endpoint ID. [Registry.Members] turns a list of
// [Endpoint] into immutable Members; a [Policy] builds a [Picker] for them;
// [NewSnapshot] puts both together with who is available. [Snapshot.Pick] chooses
// and returns a [Pick], whose Done ends the request and teaches the record.
//
// # Which policy
//
//	RoundRobin   equal work on equal endpoints, few of them; blind to everything
//	Random       as RoundRobin for many clients that each send little
//	P2C InFlight uneven work; blind to endpoints that fail fast, and to slow ones
//	             when many clients share them
//	P2C Latency  the default: also sees slow, failing and hung endpoints
//
// # Cost
//
// Pick and Done take no lock and allocate nothing; their cost does not depend on
// the number of endpoints. Two picks of different endpoints write no common cache
// line, except for RoundRobin's counter. Building Members and snapshots is O(n).
//
// # Time
//
// Instants are int64 nanoseconds since an origin that the caller chooses, the same
// for a whole Registry, not below 0. They must come from a monotonic clock.
//
// # Concurrency
//
// Registry needs its owner's lock. Everything else is immutable or safe for
// concurrent use.
package picker
