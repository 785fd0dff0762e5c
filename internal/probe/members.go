package probe

import (
	"slices"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

// Update makes list the endpoints. Those that stay, by ID, keep their state; checks of those that
// have left end. When it returns, new endpoints that have to wait were said to be Unchecked,
// or are about to be by the goroutine that is calling Out. The slice is not kept; of an ID that it
// has twice, the last Addr counts.
func (r *Runner) Update(list []Endpoint) {
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return
	}
	wait := r.wouldWait(list)
	fresh := r.adopt(list)
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	if len(fresh) > 1 { // new ones are checked in this order, and all clients may have got the same
		for i := len(ids) - 1; i > 0; i-- {
			j := r.random() % uint64(i+1)
			ids[i], ids[j] = ids[j], ids[i]
		}
	}
	r.checks.Update(ids, r.now())
	if wait {
		for _, id := range fresh {
			r.waits(r.members[id], true)
			r.say(id, evenkeel.Unchecked)
		}
	}
	r.letGo()
	r.flush()
	r.nudge()
}

// adopt makes list the members and returns the IDs of new ones. mu is held.
func (r *Runner) adopt(list []Endpoint) (fresh []string) {
	r.round++
	var left []string // addresses
	for _, e := range list {
		m := r.members[e.ID]
		if m == nil {
			m = &member{addr: e.Addr}
			r.members[e.ID] = m
			fresh = append(fresh, e.ID)
		}
		if m.addr != e.Addr {
			left = append(left, m.addr)
			m.addr = e.Addr
		}
		m.seen = r.round
	}
	for id, m := range r.members {
		if m.seen != r.round {
			m.land()
			r.waits(m, false)
			left = append(left, m.addr)
			delete(r.members, id)
		}
	}
	r.leave(left)
	return fresh
}

// leave tells the prober of addresses that were left, unless another member has them. mu is held.
func (r *Runner) leave(addrs []string) {
	if len(addrs) == 0 || r.prober == nil {
		return
	}
	l, ok := r.prober.Prober.(leaver)
	if !ok {
		return
	}
	kept := make(map[string]bool, len(r.members))
	for _, m := range r.members {
		kept[m.addr] = true
	}
	for _, a := range addrs {
		if !kept[a] {
			r.later = append(r.later, func() { l.Left(a) })
		}
	}
}

// WouldWait reports whether an endpoint that joined with this list would have to wait for its first
// check: whether one of the list is known to be healthy, and UseUnchecked is not set.
func (r *Runner) WouldWait(list []Endpoint) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wouldWait(list)
}

func (r *Runner) wouldWait(list []Endpoint) bool {
	return !r.config.UseUnchecked && slices.ContainsFunc(list, func(e Endpoint) bool { return r.healthy(e.ID) })
}

// healthy reports whether an endpoint is known to be. mu is held.
func (r *Runner) healthy(id string) bool {
	s, _, _ := r.checks.State(id)
	return s.Status() == health.Healthy
}

// letGo has nobody wait any more if there is nobody else to serve. mu is held.
func (r *Runner) letGo() {
	if r.waiting == 0 { // nearly always: not O(n) for each endpoint that fails
		return
	}
	var waiting []string
	for id, m := range r.members {
		if !r.config.UseUnchecked && r.healthy(id) {
			return
		}
		if m.waiting {
			waiting = append(waiting, id)
		}
	}
	slices.Sort(waiting) // not in the order of a map
	for _, id := range waiting {
		r.waits(r.members[id], false)
		r.say(id, evenkeel.Ready)
	}
}

// waits says whether m waits for its first check. mu is held.
func (r *Runner) waits(m *member, waiting bool) {
	switch {
	case waiting && !m.waiting:
		r.waiting++
	case !waiting && m.waiting:
		r.waiting--
	}
	m.waiting = waiting
}
