//go:build !unix

package hash

import (
	"testing"
	"time"
)

var processStart = time.Now()

// cpuTime returns the time that has passed, where the processor time of this process is not to be
// had in the same way everywhere.
func cpuTime(testing.TB) time.Duration { return time.Since(processStart) }
