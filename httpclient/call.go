package httpclient

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/limit"
)

// call is one request of a caller's, over all its tries.
type call struct {
	group      *group
	req        *http.Request
	control    *control // nil: none
	rules      *rules
	idempotent bool
	upgrade    bool
	tries      int                // that were begun
	tried      []*evenkeel.Record // their endpoints, from the second try on
}

// verdict says what may be done about a try that has ended.
type verdict uint8

const (
	final  verdict = iota // it is what the caller gets
	unsent                // nothing was sent, or it was refused unread
	broken                // it may have been acted on, and there is no answer
	asked                 // an answer of RetryConfig.Statuses
)

// result is how one try ended.
type result struct {
	resp     *http.Response
	err      error
	record   *evenkeel.Record // its endpoint's
	endpoint *endpoint
	number   int
	hedge    bool
	outcome  evenkeel.Outcome
	verdict  verdict
	hopeless bool          // on the same endpoint it would fail again
	over     bool          // nobody waits for another: the caller left, or the request is at fault
	elapsed  time.Duration // to its end; 0 if nobody asks
}

// good reports whether the result is an answer that there is no better one to be hoped for.
func (r *result) good() bool {
	return r.resp != nil && r.verdict == final && r.outcome != evenkeel.Failure && r.outcome != evenkeel.Overload
}

// send sends req once, and again if that is called for.
func (g *group) send(req *http.Request) (*http.Response, error) {
	c := call{group: g, req: req, control: controlOf(req.Context()), rules: g.rules}
	if err := c.prepare(); err != nil {
		return nil, c.unbegun(err)
	}
	if d := g.hedgeDelay(&c); d > 0 {
		return c.race(d)
	}
	t := try{now: g.now()}
	if err := g.pick(&c, &t); err != nil {
		return nil, c.unbegun(err)
	}
	g.budget.Begin(g.at(t.now))
	r := c.try(&t)
	if c.mayRepeat(&r) {
		r = c.again(r, nil)
	}
	g.budget.End()
	return r.resp, r.err
}

// unbegun ends a call that had no try. Of an evicted target there will be another call.
func (c *call) unbegun(err error) error {
	if err != errEvicted {
		closeBody(c.req)
	}
	return err
}

// now is time.Now for the price of half of it: without the wall clock, which nobody needs here.
func (g *group) now() time.Time { return g.origin.Add(time.Since(g.origin)) }

// at is an instant as the budget has it.
func (g *group) at(now time.Time) int64 { return int64(now.Sub(g.origin)) }

// prepare fills in what the request says of how it is to be sent.
func (c *call) prepare() error {
	c.idempotent = isIdempotentRequest(c.req)
	c.upgrade = becomesConn(c.req)
	ctl := c.control
	if ctl == nil {
		return nil
	}
	if ctl.rulesErr != nil {
		return ctl.rulesErr
	}
	if ctl.rules != nil {
		c.rules = ctl.rules
	}
	if ctl.idempotent != nil {
		c.idempotent = *ctl.idempotent
	}
	return nil
}

// chained reports whether the request is itself a retry of somebody who says so.
func (c *call) chained() bool {
	return c.rules.header != "" && len(c.req.Header[c.rules.header]) > 0
}

// try is one try, from its pick on. It is handed on by its address: a Pick is big.
type try struct {
	now    time.Time // of the pick
	pick   evenkeel.Pick[*endpoint]
	number int                     // among the call's tries, from 1
	ctx    context.Context         // nil: the request's
	cancel context.CancelCauseFunc // of ctx
	hedge  bool
	leaf   leaf // that it was sent on
}

// try sends the request to the endpoint that was picked, and books what comes of it.
func (c *call) try(t *try) result {
	c.tries++
	t.number = c.tries
	return c.run(t)
}

// run is try without counting it.
func (c *call) run(t *try) (r result) {
	g, e := c.group, t.pick.Handle()
	r.record, r.endpoint, r.number, r.hedge = t.pick.Record(), e, t.number, t.hedge
	out, s, timer, err := c.ready(t)
	if err != nil {
		stop(timer)
		t.pick.Done(evenkeel.Result{Outcome: evenkeel.Unknown})
		e.release()
		if t.number == 1 {
			closeBody(c.req)
		}
		if t.cancel != nil {
			t.cancel(nil)
		}
		r.err, r.over = err, true
		return r
	}
	watched := c.watched()
	if watched {
		c.tell(Event{Kind: GotEndpoint, Endpoint: e.addr, Attempt: t.number, Hedge: t.hedge})
	}
	measured := g.pace.wants()
	t.leaf = e.leaf()
	r.resp, r.err = t.leaf.RoundTrip(out)
	late := !stop(timer)
	if r.err == nil && late { // the body would break off
		_ = r.resp.Body.Close() // its answer is none
		r.resp, r.err = nil, errTryTimeout
	}
	if r.err == nil {
		e.dials.answered()
		r.resp.Request = c.req
		res := answered(c.req, s, r.resp, &t.pick, g.reports)
		r.outcome = res.Outcome
		if c.idempotent && !c.upgrade && c.rules.retries(r.resp.StatusCode) {
			r.verdict = asked
		}
		if measured {
			g.pace.add(time.Since(t.now), g.hedge.heavy(r.resp))
		}
	} else {
		e.dials.failed()
		c.failed(&r, t, s)
		t.pick.Done(evenkeel.Result{Outcome: r.outcome})
		e.release()
		if measured && (r.outcome == evenkeel.Timeout || r.outcome == evenkeel.Canceled && !r.over) {
			g.pace.add(time.Since(t.now), false)
		}
	}
	if watched || r.verdict != final || r.err != nil {
		r.elapsed = time.Since(t.now)
	}
	if watched {
		c.tell(r.event(g.target))
	}
	return r
}

// ready makes the request of a try, and starts the timer of its time, if it has any; both are to be ended on an
// error too.
func (c *call) ready(t *try) (out *http.Request, s *sent, timer *time.Timer, err error) {
	if err = ended(c.req); err != nil { // during the pick, or the wait
		return nil, nil, nil, err
	}
	if c.rules.tryTimeout > 0 {
		if t.cancel == nil {
			t.ctx, t.cancel = context.WithCancelCause(c.req.Context())
		}
		cancel := t.cancel
		timer = time.AfterFunc(c.rules.tryTimeout, func() { cancel(errTryTimeout) })
	}
	out, s, err = c.outgoing(t)
	return out, s, timer, err
}

// stop stops a timer, if there is one, and returns false if it was too late for that.
func stop(t *time.Timer) bool { return t == nil || t.Stop() }

// failed says what the error of a try means, and makes it the caller's.
func (c *call) failed(r *result, t *try, s *sent) {
	g := c.group
	own := error(nil)
	if t.ctx != nil {
		own = context.Cause(t.ctx)
	}
	e := r.err
	switch left := c.req.Context().Err() != nil || legacyCanceled(c.req); {
	case s.bodyFailed():
		r.outcome, r.over = evenkeel.Unknown, true
	case left:
		r.outcome, r.over = outcomeOfError(c.req, e), true
	case own == errLost:
		r.outcome = evenkeel.Canceled
	case own == errTryTimeout:
		e, r.outcome, r.verdict = errTryTimeout, evenkeel.Timeout, broken
		if !s.connected() {
			r.outcome, r.verdict = evenkeel.Unreached, unsent
		}
	default:
		e = r.endpoint.explain(e, t.leaf)
		r.outcome, r.verdict, r.over = c.judge(e)
		r.hopeless = r.outcome == evenkeel.Unreached && !isDial(e)
	}
	s.finish()
	if r.outcome == evenkeel.Unreached || r.outcome == evenkeel.Failure {
		g.hint()
	}
	if r.verdict == broken && (!c.idempotent || c.upgrade) {
		r.verdict = final
	}
	r.err = e
	if r.outcome != evenkeel.Canceled {
		r.err = &AttemptError{Target: g.target, Endpoint: r.endpoint.addr, Attempt: t.number, Outcome: r.outcome, Sent: r.verdict != unsent, Err: e}
	}
}

// judge says what an error means that is neither the caller's doing nor the Transport's.
func (c *call) judge(err error) (evenkeel.Outcome, verdict, bool) {
	o := outcomeOfError(c.req, err)
	v := broken
	switch {
	case o == evenkeel.Unreached || isUnprocessed(err) || isDrained(err) && isDial(err):
		v = unsent
	case o == evenkeel.Unknown && !isDrained(err):
		return o, final, true // the request's own fault
	}
	if classify := c.group.classify; classify != nil && o != evenkeel.Unknown {
		o = classify(nil, err)
	}
	return o, v, false
}

// event is what is told of the end of a try.
func (r *result) event(t Target) Event {
	ev := Event{Kind: AttemptDone, Target: t, Endpoint: r.endpoint.addr, Attempt: r.number, Hedge: r.hedge, Outcome: r.outcome,
		Sent: r.verdict != unsent, Elapsed: r.elapsed, Err: r.err}
	if r.resp != nil {
		ev.Status = r.resp.StatusCode
	}
	return ev
}

// outgoing returns the request of one try as net/http gets it.
func (c *call) outgoing(t *try) (out *http.Request, s *sent, err error) {
	req := c.req
	switch {
	case t.ctx != nil:
		req = c.req.WithContext(t.ctx)
	case t.number > 1:
		req = c.req.WithContext(c.req.Context())
	}
	if t.number > 1 {
		if hasBody(c.req) {
			if req.Body, err = c.req.GetBody(); err != nil {
				return nil, nil, err
			}
		}
		c.mark(req, t.number)
	}
	track := t.cancel != nil && !c.idempotent
	if track {
		s = &sent{tracked: true}
		req = req.WithContext(httptrace.WithClientTrace(t.ctx, &httptrace.ClientTrace{GotConn: s.gotConn}))
	}
	out, body := watched(req)
	switch {
	case body == nil && t.cancel != nil && s == nil:
		s = &sent{}
	case body != nil && s != nil:
		body.tracker, s = s, body
	case body != nil:
		s = body
	}
	if s != nil {
		s.cancel = t.cancel
	}
	return c.group.reports.asking(out), s, nil
}

// grant asks for one more try. The first of a request that was not sent is free: it takes the place of
// one that the endpoints have not seen.
func (c *call) grant(v verdict) (g limit.Grant, ok bool) {
	if v == unsent && c.tries == 1 {
		return g, true
	}
	g, ok = c.group.budget.Try(c.group.at(c.group.now()))
	return g, ok
}
