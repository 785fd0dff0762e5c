//go:build unix

package testcost

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that this process has used so far, its own and the system's for it.
// ok is false, and the time 0, where that is not to be had.
func CPUTime() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
