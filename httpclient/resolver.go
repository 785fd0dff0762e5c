package httpclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Resolver finds the endpoints of targets. It must be safe for concurrent use: each
// target has a Watch of its own.
type Resolver interface {
	// Watch tells sink the addresses of target, first at once and then whenever they
	// change, until ctx is done; then it returns soon. It runs in a goroutine of the
	// Transport. If it returns an error before ctx is done, requests without a list
	// fail with that error and Watch is called again after 1 to 32 seconds; if it
	// returns nil, the last list stays for good.
	Watch(ctx context.Context, target Target, sink Sink) error
}

// Sink takes what a Resolver finds out about one target. The Transport's own is safe
// for concurrent use, and does nothing once the target is closed.
type Sink interface {
	// Update replaces the whole list. What is known of an address that stays (its
	// connections, latency, requests in flight) stays with it, in whatever order the
	// list comes. An empty list empties the target: its requests fail at once from then
	// on, with evenkeel.ErrEmpty. A list with a problem changes nothing, such as one with an
	// address twice, or with more than 131,072: the error tells all its problems, for the
	// resolver to act on if it can, and is shown in the target's stats. The list is not kept.
	Update(list []Address) error
	// Error says that looking for addresses failed. The last good list stays in force;
	// requests that have none fail with err.
	Error(err error)
	// Refresh returns a channel that delivers a value when connections to the endpoints
	// fail, so that the list may be out of date. A resolver may ignore it, and should
	// not look up more often than once in a few seconds because of it.
	Refresh() <-chan struct{}
}

// validator is a resolver whose settings can be checked before it is used.
type validator interface{ Validate() error }

var errNoList = errors.New("httpclient: the resolver ended without a list of addresses")

// Back-off between failed lookups: doubling, and spread so that clients that failed
// together do not ask together.
const (
	backoffFirst  = time.Second
	backoffMax    = 32 * time.Second
	backoffSpread = 0.2
)

// backoff is the pause after a number of failures in a row, less one.
func backoff(failures int) time.Duration {
	if failures > 5 {
		return spread(backoffMax, backoffSpread)
	}
	return spread(backoffFirst<<failures, backoffSpread)
}

// spread returns d more or less by up to the given part.
func spread(d time.Duration, part float64) time.Duration {
	return d + time.Duration((2*rand.Float64()-1)*part*float64(d))
}

// pause waits for d, and less if a hint comes: then until earliest, or not at all if
// that is past. It reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration, earliest time.Time, hints <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	end := time.Now().Add(d)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-hints:
			hints = nil // further ones say nothing new
			if earliest.Before(end) {
				timer.Reset(max(time.Until(earliest), 0))
			}
		}
	}
}
