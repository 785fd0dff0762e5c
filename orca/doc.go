// Package orca holds load reports in the form of Open Request Cost Aggregation (ORCA): what a
// backend says about itself on its responses or in a stream beside them. It has the plain type
// ([Report]) with its binary form, what a client makes of reports ([Weights] and, where
// utilization itself is to be equal, [Feedback]), and what a backend counts to send them
// ([Tracker]).
//
// The package depends on the standard library alone and speaks no protocol. Package orcahttp
// reads and writes the headers and has a middleware; package orcagrpc has the message, the
// interceptors and the out-of-band service.
//
// A report is foreign input. Whoever parses one has checked it: every number finite, those that
// cannot be negative not negative, at most [MaxEntries] names. What passes can still be wrong on
// purpose, so weights are bounded by what the others report: an endpoint cannot take more than a
// chosen multiple of the median, nor lose more than a chosen part of it.
//
// # Cost
//
// Taking a report ([Weights.Take]) is a few atomic stores, without locks or allocation:
// it is for the end of each request. Recomputing weights ([Weights.Update]) sorts, O(n log n)
// without allocation once it has grown, and belongs on a timer of the owner's, once per update
// period. One request counted by a Tracker is a handful of atomic additions; the only words that
// requests share are the number in flight and the samples of the median they add to.
//
// # Concurrency
//
// Take, and all of Tracker, may be called by any number of goroutines. Update and Feedback belong
// to their owner's lock. A Report is a plain value.
//
// Instants are int64 nanoseconds since any fixed origin that the caller chooses, the same for
// all calls on one value and not negative; [Tracker.Now] is one for trackers. Nothing here
// starts a goroutine or a timer.
//
// Sources: the message is xds.data.orca.v3.OrcaLoadReport; the weight is that of gRFC A58, with
// the median for unknown endpoints as in Envoy's client-side weighted round robin; the number in
// flight and the median service time at that number are what Prequal's servers answer.
package orca
