package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errBroken is how a failing server answers.
var errBroken = errors.New("the server is broken")

// failsIn is how long a failing server takes to say so. Failing must look quick: that
// is what lures balancers that go by latency or by requests in flight.
const failsIn = time.Millisecond

// backend is one server without its transport: a queue, first come first served,
// before a single slot. What one request waits for is the work of those before it.
type backend struct {
	fleet    *fleet
	slowness time.Duration // how many times longer it takes than others
	breaks   bool          // it fails while its fleet has an outage

	slot   chan struct{} // full while a request is being served
	freeAt time.Time     // end of the work that was begun; guarded by the slot

	arrived         atomic.Int64 // requests
	arrivedInOutage atomic.Int64 // of those, while somebody in the fleet failed
}

// handle takes one request through the queue and the slot, where it needs work on a
// healthy server. It returns errBroken, past the queue, while the server fails, and
// the context's error if the client left the queue.
func (b *backend) handle(ctx context.Context, work time.Duration) error {
	arrival := time.Now()
	b.arrived.Add(1)
	if b.fleet.outage.Load() {
		b.arrivedInOutage.Add(1)
		if b.breaks {
			waitUntil(arrival.Add(failsIn))
			return errBroken
		}
	}
	select {
	case b.slot <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.slot }()
	// From the end of the work before, not from now: timers are up to a millisecond
	// late, and what a busy machine adds must not be taken from the server's capacity.
	begin := arrival
	if b.freeAt.After(begin) {
		begin = b.freeAt
	}
	b.freeAt = begin.Add(work * b.slowness)
	waitUntil(b.freeAt) // even if the client leaves: work that was begun gets done
	return nil
}

func waitUntil(t time.Time) { time.Sleep(time.Until(t)) }
