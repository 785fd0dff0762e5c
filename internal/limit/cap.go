package limit

import "sync/atomic"

// Cap is a hard limit on the requests in flight of one endpoint. It is exact: no race
// lets one more begin. The zero Cap has none in flight and is ready. All methods may be
// called by any number of goroutines; they are lock-free and allocate nothing.
type Cap struct{ n atomic.Int64 }

// Acquire asks to begin a request while fewer than most are in flight. A most of 0 or
// less refuses everything. Each true must be followed by one [Cap.Release].
func (c *Cap) Acquire(most int64) bool {
	for n := c.n.Load(); n < most; n = c.n.Load() {
		if c.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// Release ends a request. One too many does nothing when none is in flight.
func (c *Cap) Release() {
	for n := c.n.Load(); n > 0; n = c.n.Load() {
		if c.n.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// InFlight returns the number of requests in flight.
func (c *Cap) InFlight() int64 { return c.n.Load() }
