package picker

import "sync/atomic"

const (
	// lanes is how many stripes a pool's total has. Two picks of different endpoints write
	// one cache line only if they share a lane.
	lanes = 16
	// summedEvery is in how many picks of a lane the total is summed.
	summedEvery = 16
)

// totals counts a pool's requests in flight, for policies with needTotal. Those that were
// begun under another policy, and those on endpoints that are not available, are taken into
// account when a snapshot is made and by each sweep.
type totals struct {
	stripes [lanes]totalStripe
	// recent is the total as of the last time that somebody summed it.
	recent atomic.Int64
	_      [120]byte
	// apart is what has to be taken off the stripes' sum to get the available endpoints'
	// requests. Below 0 if the stripes do not know of all.
	apart atomic.Int64
	_     [120]byte
}

// totalStripe is a part of the count. The padding is two lines, which processors fetch together.
type totalStripe struct {
	begun atomic.Uint64
	ended atomic.Uint64
	_     [112]byte
}

// totalsPointer is nil in pools that never needed a total.
type totalsPointer struct{ atomic.Pointer[totals] }

// get returns the totals, made if need be. Its caller holds the lock of the registry's owner.
func (p *totalsPointer) get() *totals {
	if p.Load() == nil {
		p.Store(&totals{})
	}
	return p.Load()
}

// begin counts a request. Now and then it sums up: rarely enough to be cheap, and often enough
// for a pool that has become idle to be seen as such.
func (t *totals) begin(lane uint8) {
	if t.stripes[lane%lanes].begun.Add(1)%summedEvery == 0 {
		t.sum()
	}
}

// end takes a request out again, of an endpoint that is apart if it is not available.
func (t *totals) end(lane uint8, apart bool) {
	if apart {
		// It was taken off already when the endpoint went. Without this, a dead endpoint whose
		// requests all time out would make the others look idle, and their bounds too tight.
		t.apart.Add(-1)
	}
	t.stripes[lane%lanes].ended.Add(1)
}

// sum returns the requests in flight on available endpoints, and remembers it.
func (t *totals) sum() int64 {
	n := max(t.counted()-t.apart.Load(), 0)
	if t.recent.Load() != n {
		t.recent.Store(n)
	}
	return n
}

// counted returns what the stripes hold.
func (t *totals) counted() int64 {
	n := uint64(0)
	for k := range t.stripes {
		ended := t.stripes[k].ended.Load() // first: begun can only have grown since
		n += t.stripes[k].begun.Load() - ended
	}
	return int64(n)
}

// calibrate compares the stripes with the records of the available endpoints, which are right
// about requests that were begun otherwise, or are no longer believed.
func (t *totals) calibrate(s *Snapshot) {
	open := int64(0)
	for i, r := range s.records {
		if !s.Available(i) {
			r.mark(markApart)
			continue
		}
		if r.marks.Load()&markApart != 0 {
			r.marks.And(^uint32(markApart))
		}
		open += r.InFlight()
	}
	t.apart.Store(t.counted() - open)
	t.recent.Store(open)
}

// beginCounted is the beginning of a pick that counts in the total.
func (s *Snapshot) beginCounted(rec *Record, i int, kind Kind, now int64) Pick {
	// The total itself needs no results, nor the clock: as in Snapshot.Pick.
	if s.needs == needTotal {
		now = max(now, s.shared.swept.Load())
	}
	p := Pick{rec: rec, start: now, epoch: rec.epoch.Load()}
	p.flags = rec.begin(kind, s.needs&^needTotal, now)
	if t := s.shared.totals.Load(); t != nil {
		lane := uint8(i % lanes)
		p.flags |= flagTotal | uint16(lane)<<laneShift
		t.begin(lane)
	}
	return p
}
