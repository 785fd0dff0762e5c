// Package probe makes the active health checks of one pool: a Runner has endpoints checked when
// their checks are due, and tells the pool what has come of it; Probers send the checks, over TCP,
// HTTP, HTTPS and gRPC.
//
//	r, err := probe.NewRunner(probe.Options{Config: *c.Health, Prober: p, Out: func(list []evenkeel.StateChange) { pool.SetStates(list) }})
//	...
//	r.Update([]probe.Endpoint{{ID: addr, Addr: addr}}) // after each list
//	r.Used()                                           // on each request
//	r.Stop()
//
// It is the part of the adapters that has goroutines and clocks; when a check is due and what
// its result means is package health's. Each Runner has one goroutine and one timer, whatever the
// number of its endpoints, and makes at most 64 checks at a time, each in a goroutine of its own.
// A check costs O(log n) beside what the prober sends. Used is one atomic load and can be called
// on the hot path; all methods are safe for concurrent use.
//
// # Who waits
//
// An endpoint that joins while another is known to be healthy is [evenkeel.Unchecked] until its
// first check has ended, which decides alone. While nobody is known to be healthy, nobody waits:
// the first list is used at once, and whoever waits when the last healthy one fails or leaves is
// let go. Of the first checks of a long list some are made later, in an order of the client's own,
// so that neither this client nor an endpoint gets them all at once.
//
// # What is said
//
// The Runner says Unchecked, Ready and Failing, in the name of [evenkeel.Checks]: each change, and a
// Ready for each check that a healthy endpoint passes. Changes come in order, in batches, one
// call at a time and without locks. A check that is broken off, because its endpoint has left or
// speaks for itself by now, or the Runner is stopped, says nothing.
//
// Sources: Envoy's health checking (a first check, expected statuses), gRFC A17 and the gRPC health
// checking protocol (SERVING; a server without the service is healthy).
package probe
