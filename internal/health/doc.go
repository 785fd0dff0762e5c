// Package health knows what active checks say of a pool's endpoints and when the next is due
// (Checks), and how an endpoint leaves (Departure). What checks and other sources amount to together is
// the pool's to say, and how an endpoint comes up to its share package outlier's.
//
// Everything is values in, values out: nothing here sends, waits, locks, reads a clock or starts
// a goroutine. Probers over TCP, HTTP and gRPC are the adapters'; they take checks with Due
// and bring the results to Done, or to Tell when the endpoint speaks of itself (Watch). Instants
// are int64 nanoseconds since any fixed origin, the same for all calls on one value. No type
// is safe for concurrent use, as the owner of a pool holds its lock anyway.
//
// # Checks
//
// The first check of an endpoint is due at once, and decides alone. From there on two in a row
// must pass to bring it back and three fail to take it out; an answer that is not an expected
// one counts like any failure, or at once if so configured. Intervals run from start to start,
// with a jitter, and are longer while the pool has no requests. What is known of an endpoint is
// kept over updates and changes of the configuration; of one that has left nothing is kept,
// and a result that comes late for it is nobody's. A check of ten thousand endpoints costs
// O(log n) each: there is one queue of timers, and none for each endpoint.
//
// Do not let a check depend on what all endpoints share (a database): it would take them all
// out at once.
//
// Sources: Envoy's health checker (the first check decides), HAProxy's rise and
// fall, gRFC A17 for Watch.
package health
