package picker

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// The errors of a pick that finds nobody.
var (
	// ErrEmpty says that the list has no members.
	ErrEmpty = errors.New("picker: no endpoints")
	// ErrNoneReady says that there are members, and none is available.
	ErrNoneReady = errors.New("picker: no endpoint is ready")
)

// Policy describes a way of choosing, and builds Pickers that do it. Policies are
// small comparable values; the built-in ones are structs whose zero value has the
// documented defaults.
type Policy interface {
	// Validate reports every setting out of range, joined.
	Validate() error
	// Needs says what has to be learnt from results for this policy.
	Needs() Need
	// Build returns a Picker for m. prev is what was built for the list before, by
	// this or another policy, nil at first: a policy that knows its own kind takes
	// over its state (positions, counters), so that an update restarts nothing. It is
	// called rarely, under the owner's lock, with valid settings, and must not keep
	// or change prev unless it returns prev itself.
	Build(m *Members, prev Picker) Picker
}

// Picker chooses among the available endpoints of a snapshot.
type Picker interface {
	// Pick returns the member index of the choice, one of s.At(0) to s.At(s.Len()-1). It is
	// called concurrently, on every request, and must not block or allocate. s has at
	// least one available endpoint. Any other number becomes an error.
	// now is the instant of the request, 0 if the policy needs nothing that has
	// time in it. Request.Avoid may be ignored: the caller tries again.
	Pick(s *Snapshot, r Request, now int64) int
}

// Watcher is a Picker that wants to know when other members become available, to
// rebuild a table that too few of them are in.
type Watcher interface {
	// Watch is called with each new snapshot over the members that the Picker was built
	// for, before it is in use, one call at a time. Picks over older snapshots of the
	// same members may run at the same time and later.
	Watch(s *Snapshot)
}

// Sweeper is a Picker that has work to do about once a second, such as rebuilding what
// it derives from records.
type Sweeper interface {
	// Sweep is called after [Registry.Sweep] with the snapshot in use, one call at a time,
	// while picks run.
	Sweep(s *Snapshot, now int64)
}

// Snapshot is an immutable view of a list and of who is available in it, with the
// Picker that chooses. Safe for concurrent use.
type Snapshot struct {
	records []*Record // members' records
	avail   []int32   // member indices of the available ones; nil: all of them
	bits    []uint64  // bit i: member i is available; nil: all of them
	n       int       // number of available ones
	step    uint64    // 2^64/n rounded up, for rotations
	picker  Picker
	needs   Need
	passes  uint32        // marks that the picker does not look at; see overlooks
	rand    func() uint64 // nil: the runtime's
	members *Members
	shared  *shared
	whole   *Snapshot // that this is a part of; nil: of none
}

// NewSnapshot returns a snapshot of m in which the members whose indices available
// lists, in ascending order, may be picked; nil means all. Drained members are
// left out in either case. The slice is not kept. policy is the one that built p.
func NewSnapshot(m *Members, available []int32, policy Policy, p Picker) *Snapshot {
	s := &Snapshot{records: m.records, members: m, picker: p, needs: policy.Needs(), passes: overlooks(p), rand: m.shared.rand, shared: m.shared}
	s.take(available)
	return s
}

// take makes those available that are listed, and tells the Picker.
func (s *Snapshot) take(available []int32) {
	m := s.members
	keep := make([]int32, 0, len(m.records))
	if available == nil {
		for i := range m.records {
			if m.weights[i] > 0 {
				keep = append(keep, int32(i))
			}
		}
	} else {
		for _, i := range available {
			if m.weights[i] > 0 {
				keep = append(keep, i)
			}
		}
	}
	s.n = len(keep)
	s.step = math.MaxUint64/uint64(max(s.n, 1)) + 1
	if s.n < len(m.records) {
		s.avail = keep
		s.bits = make([]uint64, (len(m.records)+63)/64)
		for _, i := range keep {
			s.bits[i/64] |= 1 << (i % 64)
		}
	}
	if w, ok := s.picker.(Watcher); ok {
		w.Watch(s)
	}
}

// Len returns the number of available endpoints.
func (s *Snapshot) Len() int { return s.n }

// At returns the member index of available endpoint k, 0 <= k < Len().
func (s *Snapshot) At(k int) int {
	if s.avail == nil {
		return k
	}
	return int(s.avail[k])
}

// Available reports whether member i may be picked.
func (s *Snapshot) Available(i int) bool {
	return s.bits == nil || s.bits[i/64]>>(i%64)&1 != 0
}

// Record returns the record of member i.
func (s *Snapshot) Record(i int) *Record { return s.records[i] }

// Members returns the list that the snapshot is a view of.
func (s *Snapshot) Members() *Members { return s.members }

// Needs returns what the snapshot's policy needs to learn from results. If that is nothing,
// no clock has to be read for a pick.
func (s *Snapshot) Needs() Need { return s.needs &^ needTotal }

// Uint64 returns a random number from the injected source.
func (s *Snapshot) Uint64() uint64 {
	if s.rand == nil {
		return rand.Uint64()
	}
	return s.rand()
}

// Sweep lets the Picker do its periodic work, if it has any. Call it after
// [Registry.Sweep], under the same lock.
func (s *Snapshot) Sweep(now int64) {
	if w, ok := s.picker.(Sweeper); ok {
		w.Sweep(s, now)
	}
}

// Pick chooses an endpoint for r at instant now and counts the request on it. It
// returns the endpoint's member index and a Pick to end with Done. The errors are
// [ErrEmpty] and [ErrNoneReady], and one for a policy that chose nobody. It does not block or
// allocate, and takes no lock but where the policy says so.
func (s *Snapshot) Pick(r Request, now int64) (Pick, int, error) {
	// What Choose and Start do, word for word: by way of them the cheapest rules cost 15 to 20 % more.
	if s.n == 0 {
		return Pick{}, 0, s.nobody()
	}
	i := s.picker.Pick(s, r, now)
	if len(r.Avoid) > 0 && uint(i) < uint(len(s.records)) && r.avoids(s.records[i]) {
		i = s.pickElsewhere(r, now, i)
	}
	if uint(i) >= uint(len(s.records)) || !s.Available(i) {
		return Pick{}, 0, s.chosenWrongly(i)
	}
	rec := s.records[i]
	if m := rec.marks.Load() & s.passes; m != 0 && rec.passedOver(m, now) {
		i = s.insteadOf(s.picker, i, r, now)
		rec = s.records[i]
	}
	switch {
	case s.needs == 0 && r.Kind != Stream:
		rec.picks.Add(1)
		// Without a clock the last sweep is the best guess of when the request began:
		// enough to tell it from those that were given up before.
		return Pick{rec: rec, start: max(now, s.shared.swept.Load()), epoch: rec.epoch.Load()}, i, nil
	case s.needs&needTotal != 0:
		return s.beginCounted(rec, i, r.Kind, now), i, nil
	case s.needs&NeedAge != 0 && r.Kind == Unary: // the common case of begin
		rec.age.Start(now)
		return Pick{rec: rec, start: now, epoch: rec.epoch.Load(), flags: flagLearn | flagAging}, i, nil
	}
	return Pick{rec: rec, start: now, epoch: rec.epoch.Load(), flags: rec.begin(r.Kind, s.needs, now)}, i, nil
}

// Choose is the first half of Pick: it returns the member index of an endpoint for r at instant now, and
// counts nothing. [Snapshot.Start] is the other half, for whoever has something to do in between.
func (s *Snapshot) Choose(r Request, now int64) (int, error) {
	if s.n == 0 {
		return 0, s.nobody()
	}
	i := s.picker.Pick(s, r, now)
	if len(r.Avoid) > 0 && uint(i) < uint(len(s.records)) && r.avoids(s.records[i]) {
		i = s.pickElsewhere(r, now, i)
	}
	if uint(i) >= uint(len(s.records)) || !s.Available(i) {
		return 0, s.chosenWrongly(i)
	}
	if m := s.records[i].marks.Load() & s.passes; m != 0 && s.records[i].passedOver(m, now) {
		i = s.insteadOf(s.picker, i, r, now)
	}
	return i, nil
}

// chosenWrongly is the error for a policy that chose nobody.
func (s *Snapshot) chosenWrongly(i int) error {
	return fmt.Errorf("picker: the policy chose member %d, want an available one of 0 to %d", i, len(s.records)-1)
}

// nobody says why a snapshot has nobody to pick.
func (s *Snapshot) nobody() error {
	if len(s.records) == 0 {
		return ErrEmpty
	}
	return ErrNoneReady
}

// Start counts a request of kind kind for member i, which [Snapshot.Choose] has returned, and makes p
// the Pick to end with Done. It writes p before it counts: a copy of what was just written word by word
// waits for the words, unless an atomic operation has in the meantime.
func (s *Snapshot) Start(p *Pick, i int, kind Kind, now int64) {
	rec := s.records[i]
	switch {
	case s.needs == 0 && kind != Stream:
		*p = Pick{rec: rec, start: max(now, s.shared.swept.Load()), epoch: rec.epoch.Load()} // as in Pick
		rec.picks.Add(1)
	case s.needs&needTotal != 0:
		*p = s.beginCounted(rec, i, kind, now)
	case s.needs&NeedAge != 0 && kind != Stream:
		*p = Pick{rec: rec, start: now, epoch: rec.epoch.Load(), flags: flagLearn | flagAging}
		if kind == UnknownKind {
			p.flags |= flagUnsure
			rec.mark(markMixed)
		}
		rec.age.Start(now)
	default:
		*p = Pick{rec: rec, start: now, epoch: rec.epoch.Load()}
		p.flags = rec.begin(kind, s.needs, now)
	}
}

// avoidTries is how often the policy is asked again before the choice is made by
// looking at all: enough to keep its preferences, few enough to bound the cost.
const avoidTries = 4

// pickElsewhere finds an endpoint that r does not avoid, by the policy if it can,
// else the first from a random position; i itself if there is none.
func (s *Snapshot) pickElsewhere(r Request, now int64, i int) int {
	for range avoidTries {
		if j := s.picker.Pick(s, r, now); uint(j) < uint(len(s.records)) && !r.avoids(s.records[j]) {
			return j
		}
	}
	from := uniform(uint32(s.Uint64()>>32), s.n)
	for k := range s.n {
		if j := s.At((from + k) % s.n); !r.avoids(s.records[j]) {
			return j
		}
	}
	return i
}
