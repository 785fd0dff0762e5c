package evenkeel

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// The errors of a pick that finds nobody. They come at once: waiting is the
// caller's decision.
var (
	// ErrEmpty says that the pool has no endpoints.
	ErrEmpty = picker.ErrEmpty
	// ErrNoneReady says that the pool has endpoints, and none is ready.
	ErrNoneReady = picker.ErrNoneReady
	// ErrClosed says that the pool was closed.
	ErrClosed = errors.New("evenkeel: the pool is closed")
)

// Options are what a pool takes from its surroundings. The zero Options are the
// real world's.
type Options struct {
	// Rand is the source of all the pool's randomness; nil means math/rand/v2's. It
	// must be safe for concurrent use unless the pool is used by one goroutine.
	Rand func() uint64
	// Start is the origin of the pool's time; the zero Time means now. Instants
	// before it count as it.
	Start time.Time
	// OnWarning is told what is allowed and may not be what is meant, each text when it
	// becomes true; see [Stats].Warnings. It is called without locks, by whoever calls the
	// method that found it. nil means nobody.
	OnWarning func(text string)
}

// Member is one endpoint of a pool with the caller's handle for it.
type Member[T any] struct {
	Endpoint
	// Handle is what Pick gives back: a connection, a client, an address.
	Handle T
	// NotReady makes the endpoint unavailable until SetState says Ready: it has to be
	// connected to first. It counts only for an ID that the pool does not have yet, and
	// again when the endpoint leaves the client's subset; others keep their state.
	NotReady bool
}

// State says whether a member may be picked.
type State uint8

const (
	// Ready members may be picked.
	Ready State = iota
	// NotReady members may not: not connected, or known to be down.
	NotReady
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case NotReady:
		return "not ready"
	}
	return "invalid"
}

// StateChange is one member's new state.
type StateChange struct {
	// ID names the member.
	ID string
	// State is the new state.
	State State
}

// Pool holds a service's endpoints and chooses among them. Make one with [NewPool].
//
// Its members are the endpoints of the list, or with [Config].Subset this client's part of
// them; see [Pool.Selected].
//
// All methods are safe for concurrent use. Pick, and a Pick's methods, take no lock
// and allocate nothing; the others take the pool's lock and are O(n), to be called
// when something changes.
type Pool[T any] struct {
	start time.Time
	view  atomic.Pointer[view[T]]
	// sweepDue is the instant from which a pick sweeps itself.
	sweepDue   atomic.Int64
	lateSweeps atomic.Uint64

	// Set at construction.
	comparable bool // handles may be compared with ==
	random     func() uint64
	onWarning  func(string)

	mu       sync.Mutex
	closed   bool
	config   Config
	changed  int64 // instant of the last change of the members
	registry *picker.Registry
	picker   picker.Picker

	// All that the last list has.
	listed []entry[T]
	index  map[string]int // by ID

	// What of it is used.
	selector   *subset.Selector // nil: all
	identity   uint64           // of this client, where the configuration gives it none; 0 until needed
	chosen     []int            // of listed, in ascending order; nil: all
	members    *picker.Members  // those chosen, in that order
	handles    []T              // of members
	generation uint64
	offered    offered
	warnings   []string
}

// view is what a pick sees: one immutable value, so that an index can never meet
// another list's handles.
type view[T any] struct {
	snapshot   *picker.Snapshot
	handles    []T
	generation uint64
	closed     bool
}

// NewPool returns a pool without endpoints. The error says what is wrong with c.
func NewPool[T any](c Config, o Options) (*Pool[T], error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Pool[T]{start: o.Start, registry: picker.NewRegistry(o.Rand), config: c.owned(), random: o.Rand, onWarning: o.OnWarning}
	if kind := reflect.TypeFor[T]().Kind(); kind != reflect.Interface {
		p.comparable = reflect.TypeFor[T]().Comparable() && kind != reflect.Struct && kind != reflect.Array
	}
	if p.start.IsZero() {
		p.start = time.Now()
	}
	p.sweepDue.Store(int64(sweepEvery + sweepGrace))
	var err error
	if p.selector, err = p.newSelector(c.Subset); err != nil {
		return nil, err
	}
	p.registry.Learn(c.policy().Needs())
	p.members, _ = p.registry.Members(nil, 0) // an empty list is valid
	p.rebuild()
	p.tell(p.newWarnings())
	return p, nil
}

// instant converts t to nanoseconds since the pool's start.
func (p *Pool[T]) instant(t time.Time) int64 { return max(int64(t.Sub(p.start)), 0) }

func (p *Pool[T]) now() int64 { return max(int64(time.Since(p.start)), 0) }

// Update replaces the list of endpoints. Endpoints that stay (by ID) keep their state
// and all that was learnt, whatever else about them changed; the order does not
// matter. It is all or nothing: on an error, which names every problem, the pool is
// as before. An empty list is valid, and makes picks fail with [ErrEmpty].
//
// The slice is not kept; handles of endpoints that stay are replaced by the new ones.
func (p *Pool[T]) Update(members []Member[T]) error { return p.UpdateAt(time.Now(), members) }

// UpdateAt is Update at instant t.
func (p *Pool[T]) UpdateAt(t time.Time, members []Member[T]) error {
	return p.replace(t, nil, given(members))
}

// SetConfig changes how the pool balances. Endpoints, states and all that was learnt
// stay. On an error, which names every problem, the previous configuration stays.
func (p *Pool[T]) SetConfig(c Config) error { return p.SetConfigAt(time.Now(), c) }

// SetConfigAt is SetConfig at instant t.
func (p *Pool[T]) SetConfigAt(t time.Time, c Config) error { return p.replace(t, &c, nil) }

// Replace is SetConfig and Update at once: both or, on an error, neither.
func (p *Pool[T]) Replace(c Config, members []Member[T]) error {
	return p.ReplaceAt(time.Now(), c, members)
}

// ReplaceAt is Replace at instant t.
func (p *Pool[T]) ReplaceAt(t time.Time, c Config, members []Member[T]) error {
	return p.replace(t, &c, given(members))
}

// given makes a nil list the empty one that it stands for.
func given[T any](members []Member[T]) []Member[T] {
	if members == nil {
		members = []Member[T]{}
	}
	return members
}

// rebuild makes a picker for the current members and publishes. mu is held, or the
// pool is not shared yet.
func (p *Pool[T]) rebuild() {
	p.picker = p.config.policy().Build(p.members, p.picker)
	p.publish()
}

// publish makes the current members, states and picker what picks see. mu is held.
func (p *Pool[T]) publish() {
	var available []int32 // nil means all
	n := p.members.Len()
	for i := range n {
		ready := p.member(i).available()
		if !ready && available == nil {
			available = make([]int32, 0, n)
			for k := range i {
				available = append(available, int32(k))
			}
		}
		if ready && available != nil {
			available = append(available, int32(i))
		}
	}
	p.view.Store(&view[T]{
		snapshot:   picker.NewSnapshot(p.members, available, p.config.policy(), p.picker),
		handles:    p.handles,
		generation: p.generation,
		closed:     p.closed,
	})
}

// SetState says whether the endpoint with that ID may be picked, from the next pick
// on. It returns whether the list has it; of one that is not in the client's subset the
// state is kept for when it comes into it. Values that are no State count as NotReady.
func (p *Pool[T]) SetState(id string, s State) bool {
	return p.SetStates([]StateChange{{ID: id, State: s}}) == 1
}

// SetStates makes several changes visible at once, at the cost of one. It returns how
// many of the IDs the list has.
func (p *Pool[T]) SetStates(changes []StateChange) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, changed := 0, false
	for _, c := range changes {
		i, ok := p.index[c.ID]
		if !ok {
			continue
		}
		found++
		e := &p.listed[i]
		changed = changed || e.member && e.state != c.State
		e.becomes(c.State)
	}
	if changed && !p.closed {
		p.publish()
	}
	return found
}

// Close makes all later picks and updates fail with [ErrClosed]. Picks that are open
// may still be Done. Calling it again does nothing.
func (p *Pool[T]) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.publish()
	}
}
