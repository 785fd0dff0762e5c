package evenkeel

import (
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// standing is what the detector is told of member i: weight 0 is drained, unless it is everybody's.
// mu is held, as for all of this file's but where it says otherwise.
func (p *Pool[T]) standing(i int) outlier.Standing {
	if p.members.Weight(i) == 0 {
		return outlier.Drained
	}
	return p.member(i).standing()
}

// judgeMembers tells the detector who the members are.
func (p *Pool[T]) judgeMembers(now int64) {
	list := make([]outlier.Member, p.members.Len())
	for i := range list {
		p.member(i).at = i
		list[i] = outlier.Member{ID: p.members.Record(i).ID(), Standing: p.standing(i)}
	}
	p.startSlowly(now)
	changes, _ := p.detector.Update(list, p.steady(now)) // a list that was validated
	p.ramping = true                                     // whoever comes back may be on a ramp
	p.apply(changes, now)
	p.share(now) // before the first pick, not with the next sweep
	p.findHosts()
}

// findHosts puts the members' hosts where results find them.
func (p *Pool[T]) findHosts() {
	p.hosts = nil
	if p.config.outlier().EjectsNobody() {
		return
	}
	p.hosts = make([]*outlier.Host, p.members.Len())
	for i := range p.hosts {
		p.hosts[i] = p.detector.Host(i)
	}
}

// apply does what follows from the detector's changes.
func (p *Pool[T]) apply(changes []outlier.Change, now int64) {
	for _, c := range changes {
		if c.To == outlier.Ejected {
			p.members.Record(c.Index).RaiseEpoch()
		}
		if c.From == outlier.Ejected {
			p.members.Record(c.Index).EndEjection()
		}
		p.ramping = p.ramping || c.To == outlier.Ramping || c.From == outlier.Ramping || c.From == outlier.Ejected
	}
	if len(changes) > 0 {
		p.share(now)
	}
}

// republish publishes if the detector has news, or there is a limit no more or from now on.
func (p *Pool[T]) republish() {
	if p.closed {
		return
	}
	_, limited := p.limiter.Limit()
	if p.detector.Version() != p.version || limited != p.view.Load().limited {
		p.publish()
	}
}

// steadyWithin is how far behind the latest instant another may be and still count as that one: they
// come from several goroutines, each of which looked at the clock before it got the lock.
const steadyWithin = int64(time.Second)

// steady returns now, or the latest instant that the detector has seen if that is a little later.
func (p *Pool[T]) steady(now int64) int64 {
	if last := p.detector.Now(); now < last && last-now < steadyWithin {
		return last
	}
	return now
}

// act does what a result asked for, unless somebody holds the lock: then the next sweep does. mu is
// not held.
func (p *Pool[T]) act(h *outlier.Host, now int64) {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	now = p.steady(now)
	p.apply(p.detector.Act(h, now), now)
	p.republish()
}

// probesOneOf requests for which a probe is due is one, by chance. A client that sends little, and has many
// endpoints that are ejected, would send most of its requests to those otherwise.
const probesOneOf = 3

// mayProbe reports whether a request could be the one that finds out about an ejected endpoint, and
// whether it is known to do no harm if that fails. While no request has said that it may be
// sent again, nobody knows. mu is not held.
func (p *Pool[T]) mayProbe(r *Request, now int64) (safe, due bool) {
	if len(r.Avoid) > 0 {
		return false, false // of these there may be no second chance
	}
	if r.Idempotent && !p.marked.Load() {
		p.marked.Store(true)
	}
	safe = r.Kind != picker.Stream && (r.Idempotent || !p.marked.Load())
	return safe, p.detector.ProbeDue(now, safe) && p.uint64()%probesOneOf == 0
}

// probe sends the request to an ejected endpoint that owner, the pool or a branch, may use, if that is due and
// nobody holds the lock. mu is not held.
func (p *Pool[T]) probe(owner *Pool[T], r Request, now int64, safe bool) (k Pick[T], ok bool) {
	if !p.mu.TryLock() {
		return k, false
	}
	defer p.mu.Unlock()
	if owner.closed {
		return k, false
	}
	i, token, ok := p.detector.Probe(p.steady(now), safe)
	if !ok {
		return k, false
	}
	v := owner.view.Load() // of the members that the detector has, as both change under mu
	if owner.branch != nil && !slices.Contains(v.ejected, int32(i)) {
		p.giveBack(i, token, now)
		return k, false
	}
	return Pick[T]{pick: v.snapshot.Begin(i, r, now), handle: v.handles[i], pool: p, host: p.detector.Host(i), token: token}, true
}

// giveBack returns the permit of a probe that is not sent. mu is held.
func (p *Pool[T]) giveBack(i int, token outlier.Token, now int64) {
	if h := p.detector.Host(i); h.Observe(outlier.Ignored, token, now) {
		p.apply(p.detector.Act(h, p.steady(now)), now)
		p.republish()
	}
}

// setRules puts the configuration's rules and limit in force. Both were validated.
func (p *Pool[T]) setRules(now int64) {
	now = p.steady(now)
	changes, _ := p.detector.SetConfig(p.config.outlier(), now)
	_ = p.limiter.SetConfig(p.config.Limit.filled())
	p.startSlowly(now)
	p.ramping = true
	p.apply(changes, now)
	p.share(now)
	p.findHosts()
}
