package evenkeel

import (
	"math/rand/v2"
	"slices"

	"github.com/evenkeel/evenkeel/internal/limit"
)

// overflow is for a request beyond the limit: an ejected endpoint takes it, whose own limit that is not,
// or nobody does. In a panic ejected endpoints are as good as the others, and as limited.
func (k *Pick[T]) overflow(v *view[T], r Request, now int64) error {
	p, n := k.pool, len(v.ejected)
	if n == 0 || v.panicking {
		return k.none(p.limiter.Err())
	}
	from := int(p.uint64() % uint64(n))
	for at := range n {
		i := v.ejected[(from+at)%n]
		if rec := v.snapshot.Record(int(i)); slices.Contains(r.Avoid, rec) || v.caps != nil && !k.fits(v, int(i)) {
			continue
		}
		p.limiter.AcquireBeyond()
		h := v.hosts[i]
		*k = Pick[T]{pick: v.snapshot.Begin(int(i), r, now), handle: v.handles[i], pool: p,
			host: h, token: h.Token(), cap: k.cap, flags: pickTimed | pickBeyond}
		return nil
	}
	return k.none(p.limiter.Err())
}

func (p *Pool[T]) uint64() uint64 {
	if p.random == nil {
		return rand.Uint64()
	}
	return p.random()
}

// kindsOfEnd are what the ends of requests tell the limit. A failure that came late is as late as an
// answer, and one that came early says nothing.
var kindsOfEnd = [...]limit.Kind{Success: limit.Answered, Failure: limit.Left, Unreached: limit.Left,
	Timeout: limit.TimedOut, Overload: limit.Left, Canceled: limit.Left}

// tellLimit tells the limit how the request went, if it was not an answer without a deadline.
func (k *Pick[T]) tellLimit(now int64, o Outcome) {
	l := k.pool.limiter
	if k.flags&pickBeyond != 0 {
		l.ReleaseBeyond()
	}
	if k.flags&pickHeld == 0 || o == Unknown || int(o) >= len(kindsOfEnd) {
		l.Pass()
		return
	}
	elapsed := int64(0)
	if k.allowed > 0 {
		elapsed = now - k.pick.Start()
	}
	l.Observe(kindsOfEnd[o], elapsed, k.allowed)
}

// sweepLimit moves the limit, and returns the instant of the next look. mu is held.
func (p *Pool[T]) sweepLimit(now int64) (next int64) {
	p.limiter.Ended(int64(p.registry.Ended()))
	return p.limiter.Sweep(now, p.registry.Unary())
}
