package evenkeel_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// anyList is some of the fleet, in any order, with any weights. Some have to be connected to first.
func anyList(r *rand.Rand) (list []evenkeel.Member[int]) {
	all := members(fleetIDs)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	list = all[:r.IntN(fleetIDs+1)]
	for i := range list {
		switch r.IntN(6) {
		case 0:
			list[i].Weight = evenkeel.WeightOf(0)
		case 1, 2:
			list[i].Weight = evenkeel.WeightOf(float64(1 + r.IntN(5)))
		}
		list[i].NotReady = r.IntN(8) == 0
	}
	return list
}

// update replaces the list, and keeps account of who is away. A drain ends with its endpoint.
func (e *everything) update(list []evenkeel.Member[int]) {
	e.lists.Lock()
	defer e.lists.Unlock()
	e.replaced(list, func() error { return e.pool.Update(list) })
}

func (e *everything) replaced(list []evenkeel.Member[int], do func() error) {
	var in [fleetIDs]bool
	for _, m := range list {
		in[m.Handle] = true
	}
	for i := range in {
		if in[i] {
			even(&e.away[i])
		} else {
			even(&e.drained[i])
		}
	}
	if err := do(); err != nil {
		e.unlessClosed(err)
		return
	}
	for i := range in {
		if !in[i] && e.away[i].Load()%2 == 0 {
			e.away[i].Add(1)
		}
	}
}

type counter interface {
	Load() uint64
	Add(uint64) uint64
}

// even ends what an odd number says.
func even(n counter) {
	if n.Load()%2 == 1 {
		n.Add(1)
	}
}

func (e *everything) list(r *rand.Rand) {
	list := anyList(r)
	switch r.IntN(8) {
	case 0: // refused as a whole
		bad := append(list, evenkeel.Member[int]{}, evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: "x", Weight: evenkeel.WeightOf(math.NaN())}})
		if e.pool.Update(bad) == nil {
			e.t.Error("a list with an endpoint that has no name is accepted")
		}
	case 1:
		e.lists.Lock()
		defer e.lists.Unlock()
		c := anyConfig(r)
		e.replaced(list, func() error { return e.pool.Replace(c, list) })
	default:
		e.update(list)
	}
}

// everyPolicy are those that a pool changes between.
var everyPolicy = append([]evenkeel.Policy{nil, picker.Hash{Size: 251}, picker.Hash{Table: picker.Ring, Points: 20},
	picker.Hash{Table: picker.Rendezvous, Fallback: picker.Adaptive{}}, picker.P2C{Signal: picker.LeastTime{}},
	picker.Least{Signal: picker.InFlight}, picker.P2C{Signal: picker.PeakEWMA{}}}, policiesOf(allPolicies)...)

func policiesOf(list []namedPolicy) (out []evenkeel.Policy) {
	for _, p := range list {
		out = append(out, p.policy)
	}
	return out
}

// anyConfig is a valid one in which much happens within a second.
func anyConfig(r *rand.Rand) evenkeel.Config {
	c := evenkeel.Config{Policy: everyPolicy[r.IntN(len(everyPolicy))]}
	if r.IntN(4) > 0 {
		o := &outlier.Config{Mode: outlier.Mode(r.IntN(4)), Interval: 20 * time.Millisecond, BaseEjectionTime: 10 * time.Millisecond,
			MaxEjectionJitter: 5 * time.Millisecond, MaxEjectionPercent: outlier.PercentOf(float64(r.IntN(101))), AtLeastOne: r.IntN(2) == 0}
		o.Soft = outlier.SoftConfig{ConsecutiveFailures: 1 + r.IntN(5), ProbeBackoff: time.Millisecond, MaxProbeBackoff: 4 * time.Millisecond,
			ProbeTimeout: 20 * time.Millisecond, Remember: 30 * time.Millisecond, ChecksReturn: r.IntN(2) == 0, RequestVolume: 5}
		o.Envoy.SplitLocalOrigin = r.IntN(2) == 0
		o.A50.FailurePercentage = &outlier.FailurePercentage{Threshold: outlier.PercentOf(20), MinHosts: 1, RequestVolume: 5}
		o.Panic = outlier.Panic{Threshold: outlier.PercentOf(float64(r.IntN(101))), FailFast: r.IntN(4) == 0}
		o.Panic.Leave = outlier.PercentOf(100)
		o.Ramp.Window = time.Duration(r.IntN(40)-5) * time.Millisecond
		c.Outlier = o
	}
	if r.IntN(3) == 0 {
		c.Subset = &subset.Config{Size: 1 + r.IntN(12), Seed: r.Uint64N(3), MinAvailable: r.IntN(4) - 1}
		if r.IntN(2) == 0 {
			c.Subset.MaxSize, c.Subset.LoadPerEndpoint = c.Subset.Size+8, 1000
		}
	}
	if r.IntN(3) == 0 {
		c.SlowStart = &evenkeel.SlowStart{Window: time.Duration(r.IntN(40)) * time.Millisecond, Aggression: float64(r.IntN(3))}
	}
	if r.IntN(3) == 0 {
		c.Health, c.DrainTimeout = &evenkeel.HealthConfig{Rise: 1 + r.IntN(3)}, time.Second
	}
	c.Limit = evenkeel.LimitConfig{Disabled: r.IntN(4) == 0, Floor: r.IntN(4), PerEndpoint: max(r.IntN(60)-30, 0)}
	if r.IntN(2) == 0 {
		c.Limit.Ceiling = c.Limit.Floor + r.IntN(200)
	}
	return c
}

func (e *everything) configure(r *rand.Rand) {
	c := anyConfig(r)
	if r.IntN(8) == 0 {
		c.Outlier = &outlier.Config{Interval: -1, Ramp: outlier.Ramp{Aggression: math.NaN()}}
		if e.pool.SetConfig(c) == nil {
			e.t.Error("an interval below 0 is accepted")
		}
		return
	}
	if err := e.pool.SetConfig(c); err != nil {
		e.unlessClosed(err)
	}
}

// unlessClosed is for changes that are valid: only a pool that is closed refuses them.
func (e *everything) unlessClosed(err error) {
	if !errors.Is(err, evenkeel.ErrClosed) || !e.closing.Load() {
		e.t.Error(err)
	}
}

// setStates lets all sources but the operator say anything, of endpoints that may be in the list or not.
func (e *everything) setStates(r *rand.Rand) {
	var changes []evenkeel.StateChange
	for range 1 + r.IntN(6) {
		c := evenkeel.StateChange{ID: fmt.Sprint("e", r.IntN(fleetIDs+2)), Source: evenkeel.Source(r.IntN(3))}
		if r.IntN(2) == 0 {
			c.State = evenkeel.State(r.IntN(7))
		}
		if r.IntN(20) == 0 {
			c.Source = 77
		}
		changes = append(changes, c)
	}
	e.pool.SetStates(changes)
}

// drain drains one or takes that back, and keeps account of who is drained.
func (e *everything) drain(r *rand.Rand) {
	e.lists.Lock()
	defer e.lists.Unlock()
	i := r.IntN(fleetIDs)
	id := fmt.Sprint("e", i)
	if r.IntN(2) == 0 {
		even(&e.drained[i])
		e.pool.Resume(id)
		return
	}
	if e.pool.Drain(id) && e.drained[i].Load()%2 == 0 {
		e.drained[i].Add(1)
	}
}

// sweep sweeps at about the present, and now and then ahead of it.
func (e *everything) sweep(r *rand.Rand) {
	now := time.Now()
	if r.IntN(10) == 0 {
		now = now.Add(time.Duration(r.IntN(2000)) * time.Millisecond)
	}
	if next := e.pool.Sweep(now); next.Before(now) {
		e.t.Errorf("the next sweep is %v before this one", now.Sub(next))
	}
}

// The lists of the race are valid and its configurations too, else it would race with nothing.
func TestWhatTheRaceChangesIsValid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		if err := anyConfig(r).Validate(); err != nil {
			t.Fatal(err)
		}
	}
}
