package testcost

import (
	"math"
	"testing"
	"time"
)

// Least runs the acts in turns, so many rounds of them, and returns the least processor time that each took: the
// round that others on the machine disturbed least. It skips the test where processor time is not to be had.
// No rounds leave the greatest Duration.
func Least(tb testing.TB, rounds int, acts ...func()) []time.Duration {
	tb.Helper()
	least := make([]time.Duration, len(acts))
	for i := range least {
		least[i] = math.MaxInt64
	}
	for range rounds {
		for i, act := range acts {
			start, ok := CPUTime()
			act()
			end, _ := CPUTime()
			if !ok {
				tb.Skip("this system does not tell the processor time of a process")
			}
			least[i] = min(least[i], end-start)
		}
	}
	return least
}
