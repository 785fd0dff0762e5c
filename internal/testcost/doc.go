// Package testcost measures what code costs in processor time, for tests that hold a bar and for
// benchmarks, and tells whether the race detector is on (Race). It is in no import arrow, so that only tests
// and the module of benchmarks can import it.
//
// Other processes lengthen the time that passes as they please, and processor time a little: they empty
// caches. So what is compared is measured in turns in the same process, and the least of several counts
// (Least). A bar that is a ratio of two holds on other machines too. Under the race detector no bar says
// anything, as it slows atomics down and little else, and sync.Pool forgets.
//
// The time is that of the whole process, the collector and all goroutines included: a test that measures does not
// run in parallel with others. Reading it is one system call and allocates nothing. Some systems count in
// ticks of up to 10 ms, so that what is measured at once should take several milliseconds. Where there is no
// getrusage, CPUTime says that it cannot and Least skips the test, instead of passing time off as processor time.
//
// All of it may be called from several goroutines, though what is measured then is their sum; Least, like every
// function that can skip a test, only from the goroutine of that test.
package testcost
