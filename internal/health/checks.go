package health

import (
	"math"
	"slices"
)

// Checks knows of each endpoint of a pool what its checks have said and when the next is due.
// It sends nothing and reads no clock: the owner takes checks with Due, has them made, and
// brings the results to Done. It is not safe for concurrent use: the owner holds a lock,
// and makes the checks without it.
type Checks struct {
	config    Config // with defaults
	random    func() uint64
	endpoints map[string]*checked
	timers    Timers[string] // of endpoints that are polled and not being checked
	seq       uint64
	used      int64 // instant of the last known request; noInstant: none
}

// noInstant is before all instants.
const noInstant = math.MinInt64

// checked is one endpoint.
type checked struct {
	state   State
	detail  string
	seq     uint64 // of the last check
	started int64  // of the last check; before the first, when the endpoint came
	pending bool   // a check is being made
	sweep   uint64 // the last Update that listed it
}

// Check is one check to make. It is a value.
type Check struct {
	// ID is the endpoint's.
	ID string
	// Started is the instant at which Due gave it out.
	Started int64
	// First says that the endpoint has had no result yet.
	First bool
	seq   uint64
}

// Change is an endpoint whose status is not what it was.
type Change struct {
	ID       string
	From, To Status
	// Detail is the prober's account of the result that decided.
	Detail string
}

// NewChecks returns Checks without endpoints, or every problem of the configuration. random
// spreads the intervals; it is called under the owner's lock.
func NewChecks(c Config, random func() uint64) (*Checks, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Checks{config: c.WithDefaults(), random: random, endpoints: map[string]*checked{}, used: noInstant}, nil
}

// SetConfig changes the configuration at instant now. States stay; new thresholds count from
// the next result on, and checks that are waiting move to where the new interval puts them.
// A Config that is not valid, or the same, changes nothing.
func (k *Checks) SetConfig(c Config, now int64) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.WithDefaults()
	if c == k.config {
		return nil
	}
	k.config = c
	for _, id := range k.waiting() {
		if e := k.endpoints[id]; e.state.status != Unchecked {
			k.schedule(id, e, now)
		}
	}
	return nil
}

// Update makes ids the endpoints, at instant now. New ones are due at once; those that have
// left are forgotten, a check that is being made of them included; the others go on as
// they were. Order and repetitions do not matter.
func (k *Checks) Update(ids []string, now int64) {
	k.seq++
	sweep := k.seq
	for _, id := range ids {
		e := k.endpoints[id]
		if e == nil {
			e = &checked{started: now}
			k.endpoints[id] = e
			k.timers.Set(id, now)
		}
		e.sweep = sweep
	}
	for id, e := range k.endpoints {
		if e.sweep != sweep {
			k.timers.Remove(id)
			delete(k.endpoints, id)
		}
	}
}

// Next returns when the next check is due, math.MaxInt64 if none is waiting.
func (k *Checks) Next() int64 { return k.timers.Next() }

// Due takes the next check that is due at instant now; ok is false if none is. Each must be
// brought to Done: its endpoint has no other check in between.
func (k *Checks) Due(now int64) (c Check, ok bool) {
	id, ok := k.timers.PopDue(now)
	if !ok {
		return Check{}, false
	}
	e := k.endpoints[id]
	k.seq++
	e.seq, e.started, e.pending = k.seq, now, true
	return Check{ID: id, Started: now, First: e.state.status == Unchecked, seq: e.seq}, true
}

// Done takes the result of a check at instant now, with the prober's account of it, and
// returns the change of status that it made, if any. A result of an endpoint that has left
// since, or left and returned, or is told by now, changes nothing.
func (k *Checks) Done(c Check, r Result, detail string, now int64) (change Change, changed bool) {
	e := k.endpoints[c.ID]
	if e == nil || !e.pending || e.seq != c.seq {
		return Change{}, false
	}
	e.pending = false
	k.schedule(c.ID, e, now)
	return k.become(c.ID, e, e.state.Next(r, k.config), detail)
}

// become changes an endpoint's state and tells whether that changes its status.
func (k *Checks) become(id string, e *checked, next State, detail string) (change Change, changed bool) {
	from := e.state.status
	e.state, e.detail = next, detail
	if next.status == from {
		return Change{}, false
	}
	return Change{ID: id, From: from, To: next.status, Detail: detail}, true
}

// schedule sets when an endpoint is checked next: an interval after the last check began,
// and not in the past.
func (k *Checks) schedule(id string, e *checked, now int64) {
	every := k.config.Interval
	if k.idle(now) {
		every = k.config.NoTraffic
	}
	k.timers.Set(id, max(e.started+spread(every, k.config.Jitter, k.random()), now))
}

// idle reports whether the pool has had no request for two intervals: as the owner may say so
// once in each.
func (k *Checks) idle(now int64) bool {
	return k.used == noInstant || now-k.used > 2*int64(k.config.Interval)
}

// Used notes that the pool has had a request at instant now. Calling it once in an interval is
// enough, and the first after a pause matters most: checks that were put off are made
// an interval after the last one, or at once.
func (k *Checks) Used(now int64) {
	idle := k.idle(now)
	k.used = max(k.used, now)
	if !idle {
		return
	}
	longest := spread(k.config.Interval, k.config.Jitter, math.MaxUint64)
	for _, id := range k.waiting() {
		e := k.endpoints[id]
		if at, _ := k.timers.At(id); at > e.started+longest {
			k.schedule(id, e, now)
		}
	}
}

// waiting returns the endpoints that have a timer, in the order of their IDs: which of them
// gets which random number must not depend on a map.
func (k *Checks) waiting() []string {
	ids := make([]string, 0, k.timers.Len())
	for id := range k.endpoints {
		if _, waits := k.timers.At(id); waits {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Tell sets an endpoint's status by what it said of itself, as gRPC's Watch does: it is no
// longer polled for as long as it is a member, and no thresholds apply. It returns the change
// that this is, if any. An endpoint that is not a member is ignored.
func (k *Checks) Tell(id string, healthy bool, detail string) (change Change, changed bool) {
	e := k.endpoints[id]
	if e == nil {
		return Change{}, false
	}
	e.pending = false
	k.timers.Remove(id)
	return k.become(id, e, told(healthy), detail)
}

// State returns what the checks of an endpoint have come to and the account of the last
// result; ok is false if it is not a member.
func (k *Checks) State(id string) (s State, detail string, ok bool) {
	e := k.endpoints[id]
	if e == nil {
		return State{}, "", false
	}
	return e.state, e.detail, true
}
