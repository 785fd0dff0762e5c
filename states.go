package evenkeel

import "github.com/evenkeel/evenkeel/outlier"

// State says whether a member may be picked, as one source sees it.
type State uint8

const (
	// Ready members may be picked.
	Ready State = iota
	// NotReady members may not: not connected, or known to be down.
	NotReady
	// Failing members fail their checks: they are picked in a panic alone.
	Failing
	// Draining members get nothing new, whatever else is known of them, and are in no count of
	// how many should be there. What they have in flight goes on.
	Draining
	// Unchecked members wait for their first health check: they get nothing, and are in no count of
	// how many should be there.
	Unchecked

	states = iota
)

var stateNames = [states]string{"ready", "not ready", "failing checks", "draining", "unchecked"}

// String returns the state's name.
func (s State) String() string {
	if int(s) < states {
		return stateNames[s]
	}
	return "invalid"
}

// standing orders states: the worse, the higher.
func (s State) standing() outlier.Standing {
	switch s {
	case Ready:
		return outlier.Usable
	case Failing:
		return outlier.Failing
	case Draining, Unchecked:
		return outlier.Drained
	}
	return outlier.Unready
}

// Source is one of those who say what state an endpoint is in. The worst of what they say counts,
// and each can take back only what it said itself.
type Source uint8

const (
	// Connection is whoever connects: the source where none is named.
	Connection Source = iota
	// Checks are active health checks. A Ready of theirs is a check that passed, each time.
	Checks
	// Discovery is whoever gives the list, where it says more than who is in it.
	Discovery
	// Operator is whoever drains endpoints: see [Pool.Drain].
	Operator

	sources = iota
)

var sourceNames = [sources]string{"connection", "checks", "discovery", "operator"}

// String returns the source's name.
func (s Source) String() string {
	if int(s) < sources {
		return sourceNames[s]
	}
	return "invalid"
}

// StateChange is one member's new state, as one source sees it.
type StateChange struct {
	// ID names the member.
	ID string
	// State is the new state.
	State State
	// Source is who says so.
	Source Source
}

// SetState says whether the endpoint with that ID may be picked, from the next pick
// on. It returns whether the list has it; of one that is not in the client's subset the
// state is kept for when it comes into it. Values that are no State count as NotReady.
func (p *Pool[T]) SetState(id string, s State) bool {
	return p.SetStates([]StateChange{{ID: id, State: s}}) == 1
}

// Drain lets the endpoint with that ID get no new requests; those in flight go on. It
// returns whether the list has it. It ends with [Pool.Resume], or when the endpoint leaves the
// list. While all are drained, picks fail with [ErrNoneReady]; only weights that are all 0 are taken for equal.
func (p *Pool[T]) Drain(id string) bool {
	return p.SetStates([]StateChange{{id, Draining, Operator}}) == 1
}

// Resume takes back a Drain. It returns whether the list has the endpoint.
func (p *Pool[T]) Resume(id string) bool {
	return p.SetStates([]StateChange{{id, Ready, Operator}}) == 1
}

// SetStates makes several changes visible at once, at the cost of one. It returns how
// many of the IDs the list has. Changes of a source that does not exist change nothing.
func (p *Pool[T]) SetStates(changes []StateChange) int {
	p.home.mu.Lock()
	defer p.home.mu.Unlock()
	switch {
	case p.branch != nil:
		return p.setPartStates(changes)
	case len(p.branches) > 0:
		return 0
	}
	found := 0
	var news []outlier.StandingChange
	var passed []int
	for _, c := range changes {
		i, ok := p.index[c.ID]
		if !ok {
			continue
		}
		found++
		if c.Source >= sources {
			continue
		}
		e := &p.listed[i]
		changed := e.takes(c)
		if !e.member {
			continue
		}
		if changed {
			news = append(news, outlier.StandingChange{Index: e.at, Standing: p.standing(e.at)})
		}
		if c.Source == Checks && c.State == Ready {
			passed = append(passed, e.at)
		}
	}
	if !p.closed {
		p.stand(news, passed)
	}
	return found
}

// stand takes what the detector is to know of members: new standings, and who passed a check. mu is held.
func (p *Pool[T]) stand(news []outlier.StandingChange, passed []int) {
	now := p.detector.Now()
	if len(news) > 0 {
		p.apply(p.detector.SetStandings(news, now), now)
		if p.config.SlowStart != nil { // whoever is back begins with the least share
			p.ramping = true
			p.share(now)
		}
	}
	for _, i := range passed {
		if s := p.detector.Host(i).State(now); s == outlier.Ejected || s == outlier.Probing {
			p.apply(p.detector.CheckPassed(i, now), now)
		}
	}
	p.republish()
}
