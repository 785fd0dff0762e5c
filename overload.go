package evenkeel

import (
	"math/rand/v2"
	"slices"

	"github.com/evenkeel/evenkeel/internal/limit"
)

// overflow is for a request beyond the limit: an ejected endpoint takes it, whose own limit that is not,
// or nobody does. In a panic ejected endpoints are as good as the others, and as limited.
func (p *Pool[T]) overflow(v *view[T], r Request, now int64) (Pick[T], error) {
	n := len(v.ejected)
	if n == 0 || v.panicking {
		return Pick[T]{}, p.limiter.Err()
	}
	from := int(p.uint64() % uint64(n))
	for k := range n {
		i := v.ejected[(from+k)%n]
		if rec := v.snapshot.Record(int(i)); slices.Contains(r.Avoid, rec) {
			continue
		}
		p.limiter.AcquireBeyond()
		h := v.hosts[i]
		return Pick[T]{pick: v.snapshot.Begin(int(i), r, now), handle: v.handles[i], pool: p,
			host: h, token: h.Token(), flags: pickTimed | pickBeyond}, nil
	}
	return Pick[T]{}, p.limiter.Err()
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

// unlimit gives back what the request holds of the limit, and tells how it went.
func (k *Pick[T]) unlimit(now int64, o Outcome) {
	l := k.pool.limiter
	if k.flags&pickBeyond != 0 {
		l.ReleaseBeyond()
		return
	}
	l.Release()
	if o == Unknown || int(o) >= len(kindsOfEnd) {
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
	return p.limiter.Sweep(now, p.registry.Unary())
}
