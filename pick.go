package evenkeel

import (
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// Pick is one request on one endpoint, from the choice to Done. It is a small value:
// keep it in a variable and call its methods on that. A copy does not know of calls on the
// original, so that Done on both takes the request out twice. Its methods must not be called concurrently with each other. It
// stays valid after updates and after Close.
type Pick[T any] struct {
	pick   picker.Pick
	handle T
	pool   *Pool[T]
}

// Pick chooses an endpoint for r and counts the request on it. Every successful Pick
// must be ended with Done, once. It reads the clock if the policy needs the
// time; [Pool.PickAt] spares it. It returns at once, with [ErrEmpty], [ErrNoneReady]
// or [ErrClosed] if there is nobody to pick.
func (p *Pool[T]) Pick(r Request) (Pick[T], error) {
	v := p.view.Load()
	var now int64
	if v.snapshot.Needs() != 0 {
		now = p.now()
		p.sweepIfLate(now)
	}
	return p.pickFrom(v, r, now)
}

// PickAt is Pick at instant t, for callers that read the clock anyway.
func (p *Pool[T]) PickAt(t time.Time, r Request) (Pick[T], error) {
	now := p.instant(t)
	p.sweepIfLate(now)
	return p.pickFrom(p.view.Load(), r, now)
}

func (p *Pool[T]) pickFrom(v *view[T], r Request, now int64) (Pick[T], error) {
	if v.closed {
		return Pick[T]{}, ErrClosed
	}
	pk, i, err := v.snapshot.Pick(r, now)
	if err != nil {
		return Pick[T]{}, err
	}
	return Pick[T]{pick: pk, handle: v.handles[i], pool: p}, nil
}

// Handle returns the picked endpoint's handle.
func (k *Pick[T]) Handle() T { return k.handle }

// Record returns the picked endpoint's live state, which also identifies it in
// [Request].Avoid. It is nil after Done.
func (k *Pick[T]) Record() *Record { return k.pick.Record() }

// FirstByte says that the first byte of an answer that is so far a Success came now:
// the latency is taken and the request stops ageing. See [picker.Pick.FirstByte].
func (k *Pick[T]) FirstByte() {
	if k.pick.Learns() {
		k.pick.FirstByte(k.pool.now())
	}
}

// FirstByteAt is FirstByte at instant t.
func (k *Pick[T]) FirstByteAt(t time.Time) {
	if k.pool != nil {
		k.pick.FirstByte(k.pool.instant(t))
	}
}

// Answered says that an answer has begun whose outcome is r already, while the request is
// in flight until Done. See [picker.Pick.Answered].
func (k *Pick[T]) Answered(r Result) {
	if k.pick.Learns() {
		k.pick.Answered(k.pool.now(), r)
	}
}

// AnsweredAt is Answered at instant t.
func (k *Pick[T]) AnsweredAt(t time.Time, r Result) {
	if k.pool != nil {
		k.pick.Answered(k.pool.instant(t), r)
	}
}

// Done ends the request: it leaves the in-flight count, and r teaches the pool. A
// second call does nothing. A request that is never Done counts in flight, so that its
// endpoint gets less and less, until [picker.LeakAfter]; [Stats] shows it as Leaked then.
func (k *Pick[T]) Done(r Result) {
	var now int64
	if k.pick.Learns() {
		now = k.pool.now()
	}
	k.pick.Done(now, r)
}

// DoneAt is Done at instant t.
func (k *Pick[T]) DoneAt(t time.Time, r Result) {
	if k.pool != nil {
		k.pick.Done(k.pool.instant(t), r)
	}
}
