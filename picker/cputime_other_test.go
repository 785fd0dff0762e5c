//go:build !unix

package picker_test

import (
	"testing"
	"time"
)

var processStart = time.Now()

// cpuTime returns the time that has passed, where the processor time of this process is not to be
// had in the same way everywhere.
func cpuTime(*testing.B) int64 { return int64(time.Since(processStart)) }
