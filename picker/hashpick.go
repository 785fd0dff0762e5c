package picker

import (
	"sync/atomic"

	"github.com/evenkeel/evenkeel/hash"
)

// hashed is the Picker of [Hash].
type hashed struct {
	policy   Hash
	table    keyTable
	misfits  uint64
	fallback Picker
	passes   uint32 // marks that the fallback does not look at
	shared   *shared
	sticky   *stickyKeys // nil without
	serials  serialTable // for sticky

	bound       hash.Bound
	minCapacity int64
	weights     []uint64
	available   atomic.Uint64 // sum of the weights of the available ones; written by Watch
	totals      *totals       // nil if load is not bounded
	probation   bool          // the fallback learns who has answered
}

// Build returns the Picker. It takes over the tables of prev as far as the settings and the
// list are the same, and what it remembers of keys.
func (h Hash) Build(m *Members, prev Picker) Picker {
	p := &hashed{
		policy:      h,
		shared:      m.shared,
		bound:       h.bound(),
		minCapacity: h.minCapacity(),
		weights:     integerWeights(m.weights),
		probation:   h.fallback().Needs()&NeedLatency != 0,
	}
	p.available.Store(sumOf(p.weights))
	if !h.Unbounded {
		p.totals = m.shared.totals.get()
	}
	old, same := prev.(*hashed)
	var oldTable *keyTable
	if same {
		prev = old.fallback
		if o := old.policy; o.Table == h.Table && o.Size == h.Size && o.Points == h.Points && o.Seed == h.Seed {
			oldTable = &old.table
			p.misfits = old.misfits
		}
		p.sticky = old.sticky.keptFor(h)
	}
	var fits bool
	if p.table, fits = newKeyTable(h, m, oldTable); !fits {
		p.misfits++
	}
	if h.StickyKeys > 0 {
		if p.sticky == nil {
			p.sticky = newStickyKeys(h)
		}
		p.serials = newSerialTable(m.records)
	}
	p.fallback = h.fallback().Build(m, prev)
	p.passes = overlooks(p.fallback)
	return p
}

// Watch implements Watcher.
func (p *hashed) Watch(s *Snapshot) {
	sum, all := uint64(0), s
	if s.whole != nil {
		all = s.whole // the total is of all who use the endpoints, and so is the mean
	}
	for k := range all.n {
		sum += p.weights[all.At(k)]
	}
	p.available.Store(sum)
	p.calibrate(s)
	if w, ok := p.fallback.(Watcher); ok {
		w.Watch(s)
	}
}

// calibrate compares the total with the records, once for all who use the endpoints.
func (p *hashed) calibrate(s *Snapshot) {
	if p.totals != nil && s.whole == nil {
		p.totals.calibrate(s)
	}
}

// Sweep implements Sweeper.
func (p *hashed) Sweep(s *Snapshot, now int64) {
	p.calibrate(s)
	if w, ok := p.fallback.(Sweeper); ok {
		w.Sweep(s, now)
	}
}

// Pick implements Picker.
func (p *hashed) Pick(s *Snapshot, r Request, now int64) int {
	if !r.HasKey {
		return p.keyless(s, r, now)
	}
	if p.sticky != nil {
		return p.pickSticky(s, &r, now)
	}
	return p.place(s, &r, now)
}

// keyless goes by the fallback. What that does not look at is looked at here, as a snapshot does only for the
// policy itself.
func (p *hashed) keyless(s *Snapshot, r Request, now int64) int {
	i := p.fallback.Pick(s, r, now)
	if uint(i) >= uint(len(s.records)) {
		return i
	}
	if m := s.records[i].marks.Load() & p.passes; m != 0 && s.records[i].passedOver(m, now) {
		i = s.insteadOf(p.fallback, i, r, now)
	}
	return i
}

// place returns the first candidate that may take the request.
func (p *hashed) place(s *Snapshot, r *Request, now int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	if i := p.table.lookup(r.Key); s.Available(i) && len(r.Avoid) == 0 && p.takes(s.records[i], i) {
		return i
	}
	return p.search(s, r, now)
}

// takes reports whether endpoint i certainly takes one more request, by the total as it was
// a few picks ago.
func (p *hashed) takes(rec *Record, i int) bool {
	marks := rec.marks.Load()
	if marks&(markAvoided|markRamp|markShare) != 0 || marks&markAnswered == 0 && p.probation {
		return false
	}
	load := rec.InFlight()
	return load < p.minCapacity || p.totals == nil ||
		p.bound.Room(load, p.totals.recent.Load(), p.weights[i], p.available.Load())
}

// limitedTries is how many endpoints are passed by because of themselves, and not of their
// load, before the best so far has to do: when all ask to be left alone, nobody is to look at
// thousands of them for every request.
const limitedTries = 64

// search goes through the candidates.
func (p *hashed) search(s *Snapshot, r *Request, now int64) int {
	total := int64(0)
	if p.totals != nil {
		total = p.totals.sum()
	}
	find := p.bound.Search(total, p.available.Load())
	l := p.shared.learning.Load()
	first, limited, tries := -1, -1, limitedTries
	w := p.table.walk(r.Key)
	for i, ok := w.Next(); ok; i, ok = w.Next() {
		if !s.Available(i) {
			continue
		}
		if first < 0 {
			first = i
		}
		rec := s.records[i]
		if len(r.Avoid) > 0 && r.avoids(rec) {
			continue
		}
		load := rec.InFlight()
		most, isLimited := p.limit(rec, r.Key, i, load, total, now, l)
		switch {
		case !isLimited:
			if find.Offer(i, load, p.weights[i]) {
				return i
			}
		case load < most:
			return i
		default:
			if limited < 0 {
				limited = i
			}
			if tries--; tries == 0 {
				return p.best(&find, limited, first)
			}
		}
	}
	return p.best(&find, limited, first)
}

// best is who gets a request that nobody has room for: the least loaded one; else the first
// candidate of those that are limited for a reason of their own, or were tried before.
func (p *hashed) best(find *hash.Search, limited, first int) int {
	if i := find.Least(); i >= 0 {
		return i
	}
	if limited >= 0 {
		return limited
	}
	return first
}

// limit returns how many requests an endpoint may have in flight that is limited for another
// reason than the bound: it asked to be left alone, has not answered yet, or is on its way
// back. Without a bound, one on its way back is limited for some keys.
func (p *hashed) limit(rec *Record, key uint64, i int, load, total, now int64, l *learning) (most int64, limited bool) {
	marks := rec.marks.Load()
	if marks&markAvoided != 0 && rec.leftAlone(now) {
		return 0, true
	}
	if now == 0 {
		now = p.shared.swept.Load() // a policy that learns nothing gets no instant, and this is near enough
	}
	if p.probation && marks&markAnswered == 0 {
		if _, extra := rec.coldCost(load, now, l); extra != 0 {
			return 1, true
		}
	}
	if p.totals == nil {
		return 0, marks&markShare != 0 && rec.holdsKey(key)
	}
	if marks&(markRamp|markShare) == 0 {
		return 0, false
	}
	if marks&markShare != 0 {
		capacity := uint64(p.bound.Capacity(total, p.weights[i], p.available.Load()))
		return max(int64(capacity*uint64(rec.share.Load())>>32), 1), true
	}
	window := uint64(rampUnits * l.unit)
	since := max(uint64(max(now-rec.rampFrom.Load(), 0)), window/rampLeast)
	if since >= window {
		return 0, false
	}
	capacity := uint64(p.bound.Capacity(total, p.weights[i], p.available.Load()))
	return max(int64(capacity*since/window), 1), true
}
