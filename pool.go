package evenkeel

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel/internal/limit"
	"github.com/evenkeel/evenkeel/outlier"
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
	// ErrPanic says that fewer endpoints are available than are worth using, and that the
	// configuration ([outlier.Panic].FailFast) wants none used then. It is an ErrNoneReady.
	ErrPanic = fmt.Errorf("evenkeel: too few endpoints are available: %w", ErrNoneReady)
	// ErrOverloaded says that as many requests are in flight as the pool's limit allows, or on every
	// endpoint as many as one may have, and nothing of this one was sent; see [LimitConfig]. Test
	// for it with errors.Is; an [OverloadError] says more.
	ErrOverloaded = limit.ErrOverloaded
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

// Pool holds a service's endpoints and chooses among them. Make one with [NewPool].
//
// Its members are the endpoints of the list, or with [Config].Subset this client's part of
// them; see [Pool.Selected].
//
// [Pool.Branch] makes others that share with it what is known of endpoints.
//
// All methods are safe for concurrent use. Pick, and a Pick's methods, take no lock
// and allocate nothing; the others take the pool's lock and are O(n), to be called
// when something changes.
type Pool[T any] struct {
	start time.Time
	view  atomic.Pointer[view[T]]
	home  *Pool[T] // whose lock, records and rules count: itself, or of a branch the pool that it is one of
	// sweepDue is the instant from which a pick sweeps itself.
	sweepDue   atomic.Int64
	lateSweeps atomic.Uint64

	// Set at construction.
	comparable bool // handles may be compared with ==
	random     func() uint64
	onWarning  func(string)
	limiter    *limit.Limiter    // Sweep and SetConfig under mu, the rest without
	detector   *outlier.Detector // under mu, but for ProbeDue
	reports    reports

	// marked says that some request told that it may be sent again, so that others may not.
	marked atomic.Bool

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
	hosts      []*outlier.Host  // of members; nil if nobody is ejected, whatever happens
	generation uint64
	offered    offered
	warnings   []string

	caps caps

	branches []*Pool[T]
	branch   *branch // nil: it is none

	houseDue  int64   // instant at which more than the limit has to be swept
	version   uint64  // of the detector, as published
	ramping   bool    // some member may have a share below 1
	available []int32 // scratch
}

// view is what a pick sees: one immutable value, so that an index can never meet
// another list's handles.
type view[T any] struct {
	snapshot   *picker.Snapshot
	handles    []T
	hosts      []*outlier.Host // nil: results are nobody's concern
	ejected    []int32         // who may be probed
	spare      []int32         // who may be overflowed to unless in a panic: they, and who is back since
	generation uint64
	closed     bool
	probes     bool // some request may have to find out about an ejected endpoint
	panicking  bool
	failFast   bool           // in a panic
	limited    bool           // there is a limit
	soft       bool           // requests find out whether ejected endpoints are well
	caps       []*endpointCap // nil: no endpoint is bounded
	most       int64          // what each may have in flight
	full       error          // that all have as many
	timed      bool           // picks need the time
	owner      *Pool[T]       // whose view it is
}

// NewPool returns a pool without endpoints. The error says what is wrong with c.
func NewPool[T any](c Config, o Options) (*Pool[T], error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Pool[T]{start: o.Start, registry: picker.NewRegistry(o.Rand), config: c.owned(), random: o.Rand, onWarning: o.OnWarning}
	p.home = p
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
	if p.limiter, err = limit.New(c.Limit.filled()); err != nil {
		return nil, err
	}
	if p.detector, err = outlier.NewDetector(p.config.outlier(), o.Rand, 0); err != nil {
		return nil, err
	}
	p.registry.SetClock(p.now)
	p.registry.Learn(c.policy().Needs())
	p.setReports(p.config.Reports)
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
	for _, b := range p.branches {
		b.refit()
	}
	p.publish()
}

// publish makes the current members, states and picker what picks see. mu is held.
func (p *Pool[T]) publish() {
	d := p.detector
	p.version = d.Version()
	if p.available == nil {
		p.available = []int32{} // nil would mean all
	}
	p.available = d.Available(p.available[:0])
	available := p.available
	if len(available) == p.members.Len() {
		available = nil // all
	}
	_, limited := p.limiter.Limit()
	v := &view[T]{
		snapshot:   picker.NewSnapshot(p.members, available, p.config.policy(), p.picker),
		handles:    p.handles,
		hosts:      p.hosts,
		generation: p.generation,
		closed:     p.closed,
		panicking:  d.Panicking(),
		failFast:   d.Config().Panic.FailFast,
		limited:    limited,
		soft:       d.Config().Mode == outlier.Soft,
		owner:      p,
	}
	if p.hosts != nil {
		p.setSpare(v)
	}
	p.bound(v)
	v.timed = v.snapshot.Needs() != 0 || len(v.ejected) > 0 || limited
	v.setProbes()
	p.view.Store(v)
	for _, b := range p.branches {
		b.publishPart()
	}
}

// setProbes says whether requests have to find out about ejected endpoints: else these get their part anyway.
func (v *view[T]) setProbes() { v.probes = len(v.ejected) > 0 && (!v.panicking || v.failFast) }

// Close makes all later picks and updates fail with [ErrClosed]. Picks that are open
// may still be Done. Calling it again does nothing. A pool's branches are closed with it, and a
// branch alone.
func (p *Pool[T]) Close() {
	p.home.mu.Lock()
	defer p.home.mu.Unlock()
	switch {
	case p.closed:
	case p.branch != nil:
		p.closePart()
	default:
		p.closed = true
		p.publish()
	}
}
