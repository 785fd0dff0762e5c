package evenkeel

import (
	"time"

	"github.com/evenkeel/evenkeel/internal/limit"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// Pick is one request on one endpoint, from the choice to Done. It is a small value:
// keep it in a variable and call its methods on that. A copy does not know of calls on the
// original, so that Done on both takes the request out twice. Its methods must not be called concurrently with each other. It
// stays valid after updates and after Close.
type Pick[T any] struct {
	pick    picker.Pick
	handle  T
	pool    *Pool[T]
	host    *outlier.Host // nil: results are nobody's concern, or were booked
	cap     *limit.Cap    // nil: none
	allowed int64         // from the pick to the deadline; 0: unknown, or nobody asks
	token   outlier.Token
	flags   pickFlags
	event   outlier.Event // by the beginning of the answer
}

type pickFlags uint8

const (
	pickTimed  pickFlags = 1 << iota // it has an instant
	pickHeld                         // a place within the limit
	pickBeyond                       // one beyond it
	pickStream
	pickBooked // its success, when the answer began
)

// Pick chooses an endpoint for r and counts the request on it. Every successful Pick
// must be ended with Done, once. It reads the clock if the time is needed; [Pool.PickAt]
// spares it. It returns at once, with [ErrEmpty], [ErrNoneReady], [ErrPanic] or [ErrClosed] if
// there is nobody to pick, and with [ErrOverloaded] if no more requests may be in flight.
//
// Now and then, it sends a request to an endpoint that is ejected, to find out whether it is
// well again: one that says that it is Idempotent, if requests of the pool ever do.
func (p *Pool[T]) Pick(r Request) (k Pick[T], err error) {
	k.pool = p
	err = k.beginNow(r) // all of it, so that this is inlined where it is called: one copy of k less
	return k, err
}

// PickAt is Pick at instant t, for callers that read the clock anyway.
func (p *Pool[T]) PickAt(t time.Time, r Request) (k Pick[T], err error) {
	now := p.instant(t)
	p.home.sweepIfLate(now)
	k.pool, k.flags = p.home, pickTimed
	err = k.begin(r, p.view.Load(), now)
	return k, err
}

// beginNow is begin with the pool's own clock.
func (k *Pick[T]) beginNow(r Request) error {
	v, p := k.pool.view.Load(), k.pool.home
	k.pool = p
	now := int64(0)
	if v.timed {
		now = p.now()
		p.sweepIfLate(now)
		k.flags = pickTimed
	}
	return k.begin(r, v, now)
}

// begin makes k, of which pool and whether it is timed are set, a pick from v. It fills in k where the
// caller gets it, as a Pick is too big to be handed on, and the request comes first to
// travel in registers.
func (k *Pick[T]) begin(r Request, v *view[T], now int64) error {
	p := k.pool
	if v.closed {
		return k.none(ErrClosed)
	}
	if r.Kind == picker.Stream {
		k.flags |= pickStream
	} else {
		if p.limiter.On() && !p.limiter.Acquire() {
			return k.overflow(v, r, now)
		}
		k.flags |= pickHeld
	}
	if v.probes && k.probe(v, r, now) {
		return nil
	}
	i, err := v.snapshot.Choose(r, now)
	if err != nil {
		return k.nobody(v, r, now, err)
	}
	if v.caps != nil {
		if i, err = k.within(v, r, now, i); err != nil {
			return k.nobody(v, r, now, err)
		}
	}
	k.handle = v.handles[i]
	if v.hosts != nil {
		k.host = v.hosts[i]
		k.token = k.host.Token()
	}
	v.snapshot.Start(&k.pick, i, r.Kind, now) // the last, as it says
	return nil
}

// probe makes k a probe, if it can be one and one is due.
func (k *Pick[T]) probe(v *view[T], r Request, now int64) bool {
	safe, due := k.pool.mayProbe(&r, now)
	if !due {
		return false
	}
	probe, ok := k.pool.probe(v.owner, r, now, safe)
	switch {
	case !ok:
		return false
	case !probe.fitsProbe(v):
		probe.done(now, Result{}) // which gives its permit back
		return false
	}
	probe.flags = k.flags
	*k = probe
	return true
}

// nobody ends a pick that found nobody. Where all are ejected, and not in a panic that would use them all, one
// of them is better than none: it finds out sooner than probes who is well again.
func (k *Pick[T]) nobody(v *view[T], r Request, now int64, err error) error {
	if k.flags&pickHeld != 0 {
		k.pool.limiter.Release()
		if v.soft && err == ErrNoneReady && k.beyond(v, r, now) {
			return nil
		}
	}
	if v.panicking && v.failFast && err == ErrNoneReady {
		err = ErrPanic
	}
	return k.none(err)
}

// none makes k no pick.
func (k *Pick[T]) none(err error) error {
	*k = Pick[T]{}
	return err
}

// Handle returns the picked endpoint's handle.
func (k *Pick[T]) Handle() T { return k.handle }

// Record returns the picked endpoint's live state, which also identifies it in
// [Request].Avoid. It is nil after Done.
func (k *Pick[T]) Record() *Record { return k.pick.Record() }

// SetDeadline says when the request's time is over, by its context or a timeout of its own. Call
// it after Pick; without it, the pool's limit goes by timeouts alone.
func (k *Pick[T]) SetDeadline(t time.Time) {
	if k.flags&(pickTimed|pickHeld) == pickTimed|pickHeld {
		k.allowed = max(k.pool.instant(t)-k.pick.Start(), 1)
	}
}

// now is the instant, 0 for a request that has none.
func (k *Pick[T]) now() int64 {
	if k.flags&pickTimed == 0 {
		return 0
	}
	return k.pool.now()
}

// FirstByte says that the first byte of an answer that is so far a Success came now:
// the latency is taken and the request stops ageing. See [picker.Pick.FirstByte].
func (k *Pick[T]) FirstByte() {
	if k.pick.Learns() || k.flags&pickStream != 0 && k.host != nil {
		k.firstByte(k.now())
	}
}

// FirstByteAt is FirstByte at instant t.
func (k *Pick[T]) FirstByteAt(t time.Time) {
	if k.pool != nil {
		k.firstByte(k.pool.instant(t))
	}
}

func (k *Pick[T]) firstByte(now int64) {
	k.pick.FirstByte(now)
	if k.flags&pickStream != 0 {
		k.bookEarly(now, Result{Outcome: Success})
	}
}

// Answered says that an answer has begun whose outcome is r already, while the request is
// in flight until Done. See [picker.Pick.Answered].
func (k *Pick[T]) Answered(r Result) {
	if learns := k.pick.Learns(); learns || k.host != nil || r.Outcome == Overload {
		now := int64(0)
		if learns || r.Outcome != Success || k.flags&pickStream != 0 { // else it waits for the end
			now = k.now()
		}
		k.answered(now, r)
	}
}

// AnsweredAt is Answered at instant t.
func (k *Pick[T]) AnsweredAt(t time.Time, r Result) {
	if k.pool != nil {
		k.answered(k.pool.instant(t), r)
	}
}

func (k *Pick[T]) answered(now int64, r Result) {
	if k.pick.Learns() || r.Outcome == Overload { // which all policies heed
		k.pick.Answered(now, r)
	}
	k.bookEarly(now, r)
}

// Done ends the request: it leaves the in-flight count, and r teaches the pool. A
// second call does nothing. A request that is never Done counts in flight, so that its
// endpoint gets less and less, until [picker.LeakAfter]; [Stats] shows it as Leaked then.
func (k *Pick[T]) Done(r Result) {
	if k.pick.Record() != nil {
		now := int64(0)
		if k.allowed != 0 || k.pick.NeedsInstant(r) {
			now = k.now()
		}
		k.done(now, r)
	}
}

// DoneAt is Done at instant t.
func (k *Pick[T]) DoneAt(t time.Time, r Result) {
	if k.pick.Record() != nil {
		k.done(k.pool.instant(t), r)
	}
}

func (k *Pick[T]) done(now int64, r Result) {
	l := k.pool.limiter
	if k.flags&pickHeld != 0 && l.On() {
		l.Release()
	}
	// Of nearly all, the limiter knows by how many have ended.
	if k.flags&pickHeld == 0 || r.Outcome != Success || k.allowed != 0 {
		k.tellLimit(now, r.Outcome)
	}
	k.pick.Done(now, r)
	if k.cap != nil {
		k.cap.Release()
	}
	if k.host != nil && !k.bookSuccess(r) {
		k.book(now, r)
	}
	k.flags = 0
}
