// Package ewma holds what a backend's past says about it: how slow its answers
// were (LogMean, Peak, PeakEWMA), how often it failed (Success), and how long the work
// it has not answered yet has been waiting (Age).
//
// Each estimator but PeakEWMA is one 64-bit word: any number of goroutines may write
// and read it at once, without locks and without allocation, and its zero value is
// ready and means "nothing known". Reads are pure: looking at an estimate never
// changes it, so an endpoint that is compared often does not fade faster than one that
// is not. Writes are one compare-and-swap loop (Age: one addition). PeakEWMA is what
// others define, their lock and their reads that write included.
//
// Instants are int64 nanoseconds since any fixed origin that the caller chooses,
// the same for all calls on one value; a pool uses its own start. Instants below 0
// count as 0. Only differences matter: a negative gap (an instant older than the
// stored one) is 0, and one above [MaxGap] is cut as it says. Times are kept with the
// resolution stated at each type, for nine years from the origin (LogMean: four
// and a half); later instants count as the last of them.
//
// Logarithms are to base 2 in fixed point with 16 fractional bits ("Q16"), so that
// products of costs become sums that cannot overflow, and so that results are the
// same on every platform.
//
// Use the package alone when you have a selection rule of your own. Package picker
// uses it for the rules of this module. It is not a general statistics library:
// there are no percentiles and no means over a window.
//
// Sources: the peak-sensitive average is Finagle's (PeakEwma in its load
// balancers); the age of work in flight as a lower bound of latency follows
// ServiceTalk and RSocket; both are reshaped here to fit one word.
package ewma
