//go:build !unix

package testcost

import "time"

// CPUTime returns the processor time that this process has used so far, its own and the system's for it.
// ok is false, and the time 0, where that is not to be had.
func CPUTime() (used time.Duration, ok bool) { return 0, false }
