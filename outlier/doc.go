// Package outlier decides which endpoints of a pool get no requests for a while because of
// how their requests ended, when they come back, and when so many are out that the verdicts
// are no longer believed. It is pure: no clock, no goroutine, no lock of its own;
// instants and results come in, changes of state go out.
//
// # The parts
//
// A [Detector] belongs to one pool and needs its owner's lock. A [Host] belongs to one
// endpoint and is what requests touch, without a lock. A request takes a [Token] when it is
// sent and brings it to [Host.Observe] with an [Event] when it ends; if that returns
// true, the owner calls [Detector.Act], so that a run of failures ejects at once. The
// owner also calls [Detector.Sweep] when it says, hands members to [Detector.Update],
// and picks among [Detector.Available], which it asks again when [Detector.Version] changes.
//
// A request carries the epoch in which it was sent, and each ejection begins a new
// one. What comes from another epoch teaches nothing: late answers can neither eject an
// endpoint again nor decide whether it is well.
//
// # Modes
//
// [Soft], the default: available → ejected → probing → ramping → available.
//
//   - Five failures in a row eject at once; of an endpoint that has just come back, two.
//   - Every 10 s failure rates are compared. Who is below the median by more than three
//     median deviations (× 1.4826), ten points, and four standard errors of the pool's
//     rate, with five failures at least, is ejected; and who fails more than half while
//     the median is 90 % or better. A rate needs 20 requests; a client with fewer collects
//     them for up to 60 s.
//   - One real request at a time finds out whether an ejected endpoint is well, after
//     0.5 s · 2^k, at most 8 s, ± 20 %, preferably one that may be sent again
//     ([Detector.Probe]). Requests that overflow to it, and those of a panic, count too.
//     Three successes in a row bring it back, to a share that grows from 10 % to all in
//     10 s, at once if more than 40 % fail or there is a panic. If it fails on that ramp, the
//     back-off goes on where it was.
//   - (ejected + 1) / usable is at most what the Config says, and a single one is never
//     ejected. By default panic is the bound: of ten with six that fail, stopping at five
//     left four to carry all, in simulation, where all ten in a panic did no harm.
//   - While more than 40 % of them, and two at least, fail at once, and for 10 s after that,
//     timeouts eject nobody: what times out everywhere is the load, or this client. Those
//     whom they ejected within the 10 s before come back. Fast failures eject as ever, and
//     the wait between probes does not grow meanwhile.
//   - Verdicts survive that an endpoint leaves the list and returns within 60 s.
//
// [Envoy] is Envoy's outlier detection: runs of 5xx, gateway and local-origin failures,
// success rate, failure percentage, enforcement in percent; out for 30 s times a number that
// grows with each ejection and falls in each interval without, at most 300 s; back by
// time or by a passed check. Choose it to behave like an Envoy beside you. Know that with its
// cap of 10 % a pool of fewer than ten endpoints ejects nobody.
//
// [A50] is gRFC A50: success rate and failure percentage, each off unless set. Choose it to
// run the outlier_detection of a gRPC service config.
//
// Both follow their documents: what is known of an endpoint dies when it leaves the
// list, one of one may be ejected if the cap allows it, results go on counting
// while it is ejected, and there are no probes, ramps or guards. Three things are as in Soft, and
// are meant to be: requests from before an ejection teach nothing, a caller that
// left is nobody's failure (A50 counts its CANCELLED), and an endpoint that two rules
// find in one sweep is ejected once.
//
// # Panic
//
// Below half available ([Counts], over members that are not drained, checks included), all
// that can be reached are picked, until 60 % are available again. Ejections, probes and results
// go on, so that panic ends by itself. In Envoy it ends where it begins, and does not begin
// while 1.4 × the available share is 100 % or more ([EnvoyPanic]); A50 has none unless a
// threshold is set. [Panic].FailFast picks nobody instead.
//
// # What it is not for
//
// Ejection moves load, and does not create capacity: what keeps a bad deploy from becoming an
// outage is a limit of requests in flight. It sees failures, not slowness; picker's
// policies see both. Active checks are the owner's, who reports their verdict as a
// [Standing]; the worse of the two counts.
//
// # Cost
//
// Observe is a few loads and one atomic addition after a success, a compare-and-swap more
// after a failure; no allocation. Act and Probe are O(log n) unless a state changes; the
// Detector's other methods are O(n), Sweep's comparison of rates, once an Interval, O(n log n).
//
// # Time and chance
//
// Instants are int64 nanoseconds since an origin of the owner's choice. A clock that
// goes back counts as one that stood still, a gap above an hour as an hour. All
// randomness comes from the source given to [NewDetector], under the owner's lock.
//
// Sources: Envoy's documentation and protos of outlier detection, panic threshold and slow
// start; gRFC A50; the back-off of single probes is Linkerd's and Finagle's. What Soft adds was found by
// simulation: a limit in flight and probes bring a pool back within a second
// of a bad deploy's end, where timed ejection takes up to half a minute, or never ends.
package outlier
