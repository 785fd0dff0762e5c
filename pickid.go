package evenkeel

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// PickID begins a request on the endpoint with that ID and on no other, for callers who know where it has to
// go: to the session that it continues, to each replica in turn, to the one that is looked into. What is only
// a judgement about whom to prefer does not count: the endpoint gets the request while it is ejected, fails its checks or
// waits for the first, or asks to be left alone, and in a panic. Its outcome teaches what any request's to
// such an endpoint does.
//
// It fails if the endpoint cannot take the request: with an [ErrNoneReady] that says why if it is not in the
// list or not in this client's subset, is drained (by weight 0, or by [Pool.Drain]) or not ready, and with an
// [ErrOverloaded] if the pool, or the endpoint, has as many in flight as [LimitConfig] allows. [Request].Key
// and Avoid do not matter.
//
// Unlike Pick it takes the pool's lock; it is O(1) and allocates nothing unless it fails.
func (p *Pool[T]) PickID(id string, r Request) (Pick[T], error) { return p.pickID(p.now(), id, r) }

// PickIDAt is PickID at instant t.
func (p *Pool[T]) PickIDAt(t time.Time, id string, r Request) (Pick[T], error) {
	return p.pickID(p.instant(t), id, r)
}

func (p *Pool[T]) pickID(now int64, id string, r Request) (k Pick[T], err error) {
	h := p.home
	h.sweepIfLate(now)
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.closed || h.closed {
		return k, ErrClosed
	}
	i, why := p.find(id)
	if why != "" {
		return k, &unpickable{id, why}
	}
	k.pool, k.flags = h, pickTimed
	if r.Kind == picker.Stream {
		k.flags |= pickStream
	} else {
		if h.limiter.On() && !h.limiter.Acquire() {
			return Pick[T]{}, h.limiter.Err()
		}
		k.flags |= pickHeld
	}
	v := p.view.Load() // of the members that the lock is for, as both change under mu
	if v.caps != nil && !k.fits(v, i) {
		if k.flags&pickHeld != 0 {
			h.limiter.Release()
		}
		v.caps[i].full.Add(1)
		return Pick[T]{}, v.full
	}
	k.handle = v.handles[i]
	if v.hosts != nil {
		k.host = v.hosts[i]
		k.token = k.host.Token()
	}
	k.pick = v.snapshot.Begin(i, r, now)
	return k, nil
}

// unpickable is an ErrNoneReady of one endpoint.
type unpickable struct{ id, why string }

// Error implements error.
func (e *unpickable) Error() string { return fmt.Sprintf("evenkeel: endpoint %.100q %s", e.id, e.why) }

// Unwrap returns ErrNoneReady.
func (e *unpickable) Unwrap() error { return ErrNoneReady }

// find returns which member has that ID, and why it can take no request; "" if it can. mu is held.
func (p *Pool[T]) find(id string) (i int, why string) {
	at, listed := p.index[id]
	if !listed {
		return 0, "is not in the list"
	}
	e := &p.listed[at]
	one, i := e, e.at // as the home has it
	if p.branch != nil {
		if i = p.branch.at[at]; i < 0 {
			return 0, "is not in the list"
		}
		one = p.home.member(i)
	}
	if !one.member {
		return 0, "is not in this client's subset"
	}
	if one.drained {
		return 0, "is drained"
	}
	for _, s := range e.states {
		switch s {
		case Draining:
			return 0, "is drained"
		case NotReady:
			return 0, "is not ready"
		}
	}
	return i, ""
}
