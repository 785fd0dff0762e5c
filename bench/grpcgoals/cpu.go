package main

import (
	"time"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

var begun = time.Now()

// cpu is the CPU time that the process has used, or the time since it began where that is not to be had.
func cpu() time.Duration {
	if used, ok := testcost.CPUTime(); ok {
		return used
	}
	return time.Since(begun)
}
