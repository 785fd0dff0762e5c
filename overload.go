package evenkeel

import (
	"math/rand/v2"
	"slices"

	"github.com/evenkeel/evenkeel/internal/limit"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// overflow is for a request beyond the limit: an ejected endpoint takes it, whose own limit that is not, or one
// that has just come back, or nobody does. In a panic ejected endpoints are as good as the others, and as
// limited.
func (k *Pick[T]) overflow(v *view[T], r Request, now int64) error {
	if err := k.pool.limiter.Err(); !k.beyond(v, r, now) {
		return k.none(err)
	}
	return nil
}

// beyond makes k a request to a spare endpoint, and reports whether there is one for it.
func (k *Pick[T]) beyond(v *view[T], r Request, now int64) bool {
	p, n := k.pool, len(v.spare)
	if n == 0 || v.panicking {
		return false
	}
	if k.flags&pickTimed == 0 { // the limit is there, and not yet in the view
		now = p.now()
	}
	from := int(p.uint64() % uint64(n))
	for at := range n {
		i := v.spare[(from+at)%n]
		if rec := v.snapshot.Record(int(i)); !takesMore(rec, now) || slices.Contains(r.Avoid, rec) || v.caps != nil && !k.fits(v, int(i)) {
			continue
		}
		p.limiter.AcquireBeyond()
		h := v.hosts[i]
		*k = Pick[T]{pick: v.snapshot.Begin(int(i), r, now), handle: v.handles[i], pool: p,
			host: h, token: h.Token(), cap: k.cap, flags: pickTimed | pickBeyond}
		return true
	}
	return false
}

// takesMore reports whether a spare endpoint is for a request beyond the limit: if it is idle, streams aside, and
// does not ask to be left alone. One at a time: to one that fails at once that is a thousand a second, while
// one whose queue is too long would have it grow for ever, as those that gave up still wait in it.
func takesMore(rec *picker.Record, now int64) bool {
	return rec.InFlight() <= rec.Streams() && rec.AvoidFor(now) == 0
}

// setSpare notes who may be overflowed to: who is ejected, and who is on a ramp since. mu is held.
func (p *Pool[T]) setSpare(v *view[T]) {
	d := p.detector
	v.ejected = d.Ejected(nil)
	v.spare = v.ejected[:len(v.ejected):len(v.ejected)]
	for _, i := range p.available {
		if p.hosts[i].State(d.Now()) == outlier.Ramping {
			v.spare = append(v.spare, i)
		}
	}
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
