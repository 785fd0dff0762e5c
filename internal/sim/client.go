package sim

import (
	"sort"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// send lets one request arrive now. user is who waits for it in Closed, else -1.
func (r *run) send(user int32) {
	n := r.sent
	r.sent++
	slot := r.newSlot()
	q := &r.requests[slot]
	*q = request{sent: r.now, id: uint32(n), user: user, server: -1}
	if r.shares != nil {
		x := uniform(&r.work) * r.shares[len(r.shares)-1]
		q.class = uint8(sort.SearchFloat64s(r.shares[:len(r.shares)-1], x))
	}
	q.u = uniform(&r.work)
	balancer := n
	if r.scenario.InTurn {
		balancer %= r.scenario.balancers()
	} else {
		balancer = below(&r.route, r.scenario.balancers())
	}
	r.stats.arrived(r, q, n)
	r.open++
	if !r.pick(q, balancer) {
		r.settle(slot, unsent)
		r.release(slot)
		return
	}
	v := &r.servers[q.server]
	v.load++
	r.stats.picked(r, q)
	if r.timeout > 0 {
		r.timeouts.push(timed{r.now + r.timeout, slot, q.id})
		r.next[srcTimeouts] = r.timeouts.first().at
	}
	if r.delay == 0 {
		r.comeIn(slot)
		return
	}
	r.transit.push(timed{r.now + r.delay, slot, q.id})
	r.next[srcTransit] = r.transit.first().at
}

// pick finds a server for q, and reports whether there is one.
func (r *run) pick(q *request, balancer int) bool {
	if r.past != nil {
		r.past.note(r)
	}
	if r.policy.Bound != nil {
		if len(r.clients.members) == 0 {
			return false
		}
		q.server = int32(r.policy.Bound.Choose(&r.view))
		return true
	}
	if r.policy.Table != nil {
		r.clients.renew(r)
	}
	pick, err := r.clients.pools[balancer].PickAt(r.clients.time(r.now), evenkeel.Request{Kind: r.classes[q.class].Kind})
	if err != nil {
		return false
	}
	if r.timeout > 0 {
		pick.SetDeadline(r.clients.time(r.now + r.timeout))
	}
	q.pick = pick
	q.server = int32(pick.Handle())
	return true
}

// leave is the moment when a server is through with a request and sends its answer.
func (r *run) leave(slot int32) {
	q := &r.requests[slot]
	v := &r.servers[q.server]
	v.load--
	v.says.end(r, q)
	if r.delay == 0 {
		r.answered(slot)
		return
	}
	r.answers.push(timed{r.now + r.delay, slot, 0})
	r.next[srcAnswers] = r.answers.first().at
}

// answered is the moment when the answer reaches the client.
func (r *run) answered(slot int32) {
	q := &r.requests[slot]
	if !q.settled {
		end := succeeded
		if q.outcome != picker.Success {
			end = failed
		}
		r.done(slot, q.outcome, end)
	}
	r.release(slot)
}

// timeoutDue gives a request up if it is still unanswered.
func (r *run) timeoutDue(t timed) {
	q := &r.requests[t.slot]
	if q.id != t.tag || q.settled {
		return
	}
	r.done(t.slot, picker.Timeout, timedOut)
	if q := &r.requests[t.slot]; q.gone {
		r.release(t.slot)
	}
}

// done ends a request for its client.
func (r *run) done(slot int32, outcome picker.Outcome, end ending) {
	q := &r.requests[slot]
	result := evenkeel.Result{Outcome: outcome}
	if end != timedOut { // else it has no answer yet, whatever the server has said
		result.Load = q.report
	}
	q.pick.DoneAt(r.clients.time(r.now), result)
	r.stats.unpicked(r, q)
	r.settle(slot, end)
}

// settle counts how a request ended, and lets who waited for it go on.
func (r *run) settle(slot int32, end ending) {
	q := &r.requests[slot]
	q.settled = true
	r.open--
	r.stats.ended(q, end, r.now-q.sent)
	if q.user >= 0 {
		r.arrivals.goOn(r, q.user, end == unsent)
	}
}

// release gives a request's place back. Its number stays until the next use, as those
// who look for it check that it is settled too.
func (r *run) release(slot int32) {
	q := &r.requests[slot]
	q.pick = evenkeel.Pick[int]{}
	r.free = append(r.free, slot)
}

// lose is the moment when a request comes to a server that hangs.
func (r *run) lose(slot int32) {
	q := &r.requests[slot]
	q.gone = true
	r.servers[q.server].load--
	if r.timeout > 0 && !q.settled {
		return // the timeout settles it
	}
	if !q.settled {
		// Nobody will ever end this pick: it stays in flight, as it would in a client without
		// timeouts.
		q.settled = true
		r.open--
		r.stats.ended(q, unanswered, 0)
		return
	}
	r.release(slot)
}
