// Package limit holds what keeps one client from making a bad day of its backends worse:
// an adaptive limit on a pool's requests in flight (Limiter), a hard one for an endpoint (Cap), and
// a budget for the attempts beyond the first (Budget).
//
// # The limit
//
// A Limiter does nothing until there is distress: more than 5 % of a window's results, and
// at least three, that timed out or used more than three fifths of their time. A window is a
// second, or as long as it takes to see 20 results, ten seconds at most. Then a limit appears,
// at what is in flight (with room to spare if the median result came within an eighth of its
// time, or nobody took the time of most), and moves every 100 ms (with few requests: when there are ten results,
// or after a second): down by a tenth while the median result takes more than half of its
// time; up, when the limit is what holds requests back, by one for each limit of good
// answers, or by a tenth if the median comes at once, within an eighth. It goes after ten
// seconds in which it did not matter. Cuts that do not help (ten seconds at a quarter, and the
// median as late as ever) are undone, and not tried again for 30 s, then for a minute, up
// to ten. Failures that come fast, refusals of the client's own and streams are no part of any
// of it.
//
// The median, because a queue makes everybody wait: a single host that hangs, or a kind of
// request that does, is distress too, but sending less would not mend it, and the limit
// then makes way. Ejection and the choice of endpoint are for that.
//
// What a refused request gets is the owner's choice: an endpoint that is ejected, as a free
// probe, or one that has just come back and is idle ([Limiter.AcquireBeyond]), and otherwise [Limiter.Err], which is [ErrOverloaded]. It
// is nobody's failure.
//
// The limit is held as tokens, in padded stripes of which each processor mostly uses one.
// Requests cannot overshoot it, in no race. More than the limit are in flight only when it falls
// below what has begun, and by the requests that began or ended in the instant in
// which it appeared, until the second sweep after it. One that ends while another begins may be
// missed by the latter, which is refused then.
//
// # The budget
//
// A Budget grants retries and hedges up to 20 % of the requests of the last ten seconds and ten a
// second, and at once up to three or 20 % of the requests in flight. Its arithmetic is in
// whole thousandths. Grants are made by compare-and-swap on one word, so that no race
// grants one too many.
//
// # Cost
//
// Without distress Acquire and Release are one load each of a line that nobody writes, Observe
// one addition in the caller's stripe, which an owner who counts requests anyway can spare answers to
// requests without a deadline ([Limiter.Ended]). Nothing on a request's way allocates or locks; a
// refusal reads all stripes. There are no goroutines, clocks or timers here: instants are
// int64 nanoseconds since any fixed origin, and the owner calls Sweep.
//
// Sources: the limit's purpose and first constants come from a simulation of a known outage, which
// incident_test.go repeats in small; its rule from Chiu and Jain (1989). The budget's window
// is Finagle's RetryBudget, its bound at once Envoy's retry budget.
package limit
