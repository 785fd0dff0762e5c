package httpclient

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/limit"
)

// race is a call whose tries may run beside each other. Its own goroutine is the caller's.
type race struct {
	call    call
	results chan result // holds one for each try that may be
	cancels []context.CancelCauseFunc
	running int
	ended   []Event // tries, and nobody waits for them any more
}

// race sends the request, and again beside that when delay is over and there is no answer yet.
func (c call) race(delay time.Duration) (*http.Response, error) {
	h, req := c.group.hedge, c.req
	// A try that has lost may go on for a moment after the request is the caller's again.
	c.req = req.Clone(req.Context())
	r := &race{call: c, results: make(chan result, max(h.attempts, c.rules.attempts))}
	g := c.group
	t := &try{now: g.now()}
	if err := g.pick(&r.call, t); err != nil {
		return nil, c.unbegun(err)
	}
	g.budget.Begin(g.at(t.now))
	defer g.budget.End()
	r.call.tried = append(r.call.tried, t.pick.Record())
	r.start(t, limit.Grant{})
	best := r.run(delay)
	earlier := slices.DeleteFunc(r.ended, func(ev Event) bool { return ev.Attempt == best.number })
	if best.verdict != final && r.running == 0 && r.call.mayRepeat(&best) {
		best = r.call.again(best, earlier)
	} else {
		best.err = withEarlier(best.err, earlier)
	}
	if best.resp != nil {
		best.resp.Request = req
	}
	return best.resp, best.err
}

// start runs a try that was picked beside those that run already. The try's goroutine reads nothing of the race that
// changes.
func (r *race) start(t *try, grant limit.Grant) {
	own := r.call // what it reads stays as it is
	t.ctx, t.cancel = context.WithCancelCause(r.call.req.Context())
	r.cancels = append(r.cancels, t.cancel)
	r.call.tries++
	t.number = r.call.tries
	r.running++
	go func() {
		res := own.run(t)
		grant.End()
		r.results <- res
	}()
}

// run waits for the result that the caller gets.
func (r *race) run(delay time.Duration) (best result) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	h := r.call.group.hedge
	stopped := false // no more tries: one was asked not to be repeated soon
	for {
		select {
		case res := <-r.results:
			r.running--
			r.ended = append(r.ended, res.event(r.call.group.target))
			if res.good() || res.over {
				discardInstead(best, res)
				r.finish(res)
				return res
			}
			best = better(best, res)
			most := max(h.attempts, r.call.rules.attempts)
			if after, ok := r.call.delay(&res); !ok || after > r.call.rules.backoff*backoffSpan {
				stopped = true
			}
			if !stopped && res.verdict != final && r.call.tries < most && r.launch(&res, false) {
				timer.Reset(delay)
			} else if r.running == 0 {
				return best
			}
		case <-timer.C:
			if !stopped && r.call.tries < h.attempts && r.launch(nil, true) {
				timer.Reset(delay)
			}
		}
	}
}

// launch starts one more try, on an endpoint that has none yet; false if there is none, no budget or
// no time. failed is what it follows, nil if it is beside others that are late.
func (r *race) launch(failed *result, hedge bool) bool {
	c := &r.call
	if !c.hasTimeFor(0) || c.chained() {
		return false
	}
	v := broken
	if failed != nil {
		v = failed.verdict
	}
	last := Event{Kind: Hedged, Attempt: c.tries}
	if failed != nil {
		last = Event{Kind: Retried, Endpoint: failed.endpoint.addr, Attempt: failed.number, Err: failed.err}
	}
	grant, ok := c.grant(v)
	if !ok {
		last.Kind = Refused
		if c.watched() {
			c.tell(last)
		}
		return false
	}
	t := &try{now: c.group.now(), hedge: hedge}
	if err := c.group.pick(c, t); err != nil {
		grant.Return()
		return false
	}
	if slices.Contains(c.tried, t.pick.Record()) {
		c.group.put(&t.pick)
		grant.Return()
		return false
	}
	c.tried = append(c.tried, t.pick.Record())
	if hedge {
		c.group.counts.hedges.Add(1)
	} else {
		c.group.counts.retries.Add(1)
	}
	if c.watched() {
		c.tell(last)
	}
	r.start(t, grant)
	return true
}

// finish ends the race: winner is what the caller gets, and all other tries are cancelled.
func (r *race) finish(winner result) {
	if winner.hedge && winner.good() {
		r.call.group.counts.hedgesWon.Add(1)
	}
	for i, cancel := range r.cancels {
		if i+1 != winner.number {
			cancel(errLost)
		}
	}
	if r.running == 0 {
		return
	}
	running, results := r.running, r.results
	go func() {
		for range running {
			if res := <-results; res.resp != nil && res.resp.Body != nil {
				_ = res.resp.Body.Close() // nobody wants it
			}
		}
	}()
}

// better returns which of two results that are no good answers is to be returned, and throws the other away.
func better(a, b result) result {
	if a.resp != nil && b.resp == nil {
		return a
	}
	discard(a.resp)
	return b
}

// discardInstead throws away what was kept in case that nothing better came.
func discardInstead(kept, winner result) {
	if kept.resp != nil && kept.resp != winner.resp {
		discard(kept.resp)
	}
}
