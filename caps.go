package evenkeel

import (
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel/internal/limit"
	"github.com/evenkeel/evenkeel/picker"
)

// OverloadError is the error of a request that a limit of this client's own refused. It is an
// [ErrOverloaded], and says which limit it was: Limit is the number of requests that may be in flight, of the
// pool or, with Endpoint, of each endpoint.
type OverloadError = limit.Overload

// caps bound what every single endpoint has in flight; see [LimitConfig].PerEndpoint. All but refused
// is guarded by the pool's mu.
type caps struct {
	byID map[string]*endpointCap // of members, and for a while of those that were
	of   *picker.Members         // that list is for
	list []*endpointCap          // of members

	_       [128]byte     // nothing else that requests read is on the line of
	refused atomic.Uint64 // requests that found all endpoints full
	_       [120]byte
}

// endpointCap counts what one endpoint has in flight, alone on its lines. It belongs to an ID: an
// endpoint that comes back meets its own requests.
type endpointCap struct {
	limit.Cap
	full   atomic.Uint64 // requests that were to go to it and found it full
	goneAt int64         // instant since which it is no member's, 0: it is; guarded by the pool's mu
	_      [104]byte
}

// capTombstone is how long the count of an endpoint that has left is kept after its last request. Were it
// dropped at once, a pick that has just looked at the old list could begin one more.
const capTombstone = int64(time.Minute)

// bound puts the caps of the present members into v. mu is held.
func (p *Pool[T]) bound(v *view[T]) {
	most := p.config.Limit.PerEndpoint
	if most == 0 {
		return
	}
	if c := &p.caps; c.of != p.members || c.list == nil {
		c.update(p.members, p.changed)
	}
	v.caps, v.most = p.caps.list, int64(most)
	v.full = &OverloadError{Limit: most, Endpoint: true}
}

// update makes the list of m's caps at instant now, and forgets those of endpoints that left long ago.
func (c *caps) update(m *picker.Members, now int64) {
	if c.byID == nil {
		c.byID = make(map[string]*endpointCap, m.Len())
	}
	for _, one := range c.byID {
		if one.goneAt == 0 {
			one.goneAt = max(now, 1)
		}
	}
	c.of, c.list = m, make([]*endpointCap, m.Len())
	for i := range c.list {
		id := m.Record(i).ID()
		one := c.byID[id]
		if one == nil {
			one = new(endpointCap)
			c.byID[id] = one
		}
		one.goneAt = 0
		c.list[i] = one
	}
	for id, one := range c.byID {
		if one.goneAt != 0 && now-one.goneAt >= capTombstone && one.InFlight() == 0 {
			delete(c.byID, id)
		}
	}
}

// fullAt returns how many requests found that endpoint full.
func (c *caps) fullAt(id string) uint64 {
	if one := c.byID[id]; one != nil {
		return one.full.Load()
	}
	return 0
}

// fits takes a place at member i for k, if there is one. Requests that were never ended, and that
// nobody believes in any more, take none.
func (k *Pick[T]) fits(v *view[T], i int) bool {
	c := v.caps[i]
	if !c.Acquire(v.most + v.snapshot.Record(i).Leaked()) {
		return false
	}
	k.cap = &c.Cap
	return true
}

// within takes a place at member i, which the policy chose, or at another that has one.
func (k *Pick[T]) within(v *view[T], r Request, now int64, i int) (int, error) {
	if k.fits(v, i) {
		return i, nil
	}
	v.caps[i].full.Add(1)
	i, ok := v.snapshot.ChooseAmong(r, now, func(i int) bool { return k.fits(v, i) })
	if !ok {
		k.pool.caps.refused.Add(1)
		return 0, v.full
	}
	return i, nil
}

// fitsProbe takes a place for k, a probe that has begun.
func (k *Pick[T]) fitsProbe(v *view[T]) bool {
	if v.caps == nil {
		return true
	}
	for _, i := range v.ejected {
		if v.snapshot.Record(int(i)) == k.pick.Record() {
			return k.fits(v, int(i))
		}
	}
	return false // ejected, or back, only just: another time
}
