package httpclient

import (
	"cmp"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel"
)

const (
	// A body that is thrown away is read to its end, so that its connection can be used again, if
	// that is near.
	discardMost = 64 << 10
	discardTime = 50 * time.Millisecond
	// What a try takes at least, where nothing is known of the target's answers.
	leastTry = 5 * time.Millisecond
)

// mayRepeat reports whether one more try may follow r, as far as that is known without a look at the time.
func (c *call) mayRepeat(r *result) bool {
	return r.verdict != final && !r.over && c.tries < c.rules.attempts && isReplayable(c.req) && !c.chained()
}

// again makes more tries until one is final, or there may be no more, and returns the last; earlier are those that
// ended before r. c is a copy: a call that needs no second try is not on the heap.
func (c call) again(r result, earlier []Event) result {
	c.group.calls.Add(1)
	defer c.group.calls.Add(-1)
	c.tried = append(c.tried, r.record)
	for c.mayRepeat(&r) {
		last := r.event(c.group.target)
		next, ok := c.once(&r)
		if !ok {
			break
		}
		earlier = append(earlier, last)
		r = next
		c.tried = append(c.tried, r.record)
	}
	r.err = withEarlier(r.err, earlier)
	return r
}

// once makes one more try; ok is false if it may not be, and r stays what the caller gets.
func (c *call) once(r *result) (next result, ok bool) {
	delay, ok := c.delay(r)
	if !ok || !c.hasTimeFor(delay) {
		return next, false
	}
	grant, ok := c.grant(r.verdict)
	if !ok {
		c.refused(r)
		return next, false
	}
	var t try
	err := c.nextPick(&t, delay)
	if err == nil && delay == 0 && slices.Contains(c.tried, t.pick.Record()) {
		// Nobody else is there: the same needs a moment.
		c.group.put(&t.pick)
		delay = c.rules.wait(c.tries, rand.Uint64())
		if err = errNoTime; !r.hopeless && c.hasTimeFor(delay) {
			err = c.nextPick(&t, delay)
		}
	}
	if err != nil {
		grant.Return()
		if left := ended(c.req); left != nil {
			discard(r.resp)
			r.resp, r.err, r.over = nil, left, true
		}
		return next, false
	}
	discard(r.resp)
	c.group.counts.retries.Add(1)
	if c.watched() {
		c.tell(Event{Kind: Retried, Endpoint: r.endpoint.addr, Attempt: c.tries, Delay: delay, Err: r.err})
	}
	next = c.try(&t)
	grant.End()
	return next, true
}

// delay is how long to wait before the try that follows r; ok is false if the answer asks for more than that.
func (c *call) delay(r *result) (d time.Duration, ok bool) {
	if r.verdict == unsent {
		return 0, true
	}
	d = c.rules.wait(c.tries, rand.Uint64())
	if r.resp == nil {
		return d, true
	}
	after, _ := retryAfter(r.resp.Header, time.Now())
	return max(d, after), after <= c.rules.maxAfter
}

// hasTimeFor reports whether a try that begins after delay can end before the request's time is over.
func (c *call) hasTimeFor(delay time.Duration) bool {
	deadline, ok := c.req.Context().Deadline()
	if !ok {
		return true
	}
	need := cmp.Or(time.Duration(c.group.pace.median.Load()), leastTry)
	return time.Until(deadline)-delay >= need
}

// nextPick waits, and picks an endpoint that was not tried if there is one.
func (c *call) nextPick(t *try, delay time.Duration) error {
	if delay > 0 {
		if err := c.sleep(delay); err != nil {
			return err
		}
	}
	t.now = c.group.now()
	return c.group.pick(c, t)
}

// sleep waits for d, and no longer than the caller does.
func (c *call) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.req.Context().Done():
	//lint:ignore SA1019 net/http honours it, so callers may use it
	case <-c.req.Cancel:
	}
	return ended(c.req)
}

// put gives back a pick that nothing is sent to.
func (g *group) put(p *evenkeel.Pick[*endpoint]) {
	e := p.Handle()
	p.Done(evenkeel.Result{Outcome: evenkeel.Unknown})
	e.release()
}

// refused tells that there was no budget.
func (c *call) refused(r *result) {
	if c.watched() {
		c.tell(Event{Kind: Refused, Endpoint: r.endpoint.addr, Attempt: c.tries, Err: r.err})
	}
}

// discard throws an answer away.
func discard(resp *http.Response) {
	if resp == nil || resp.Body == nil {
		return
	}
	if resp.ContentLength <= discardMost {
		timer := time.AfterFunc(discardTime, func() { _ = resp.Body.Close() }) // it is thrown away
		_, _ = io.CopyN(io.Discard, resp.Body, discardMost+1)
		timer.Stop()
	}
	_ = resp.Body.Close() // as above
}

// mark says in the request of a try that it is not the first. req is a copy, whose headers may be the caller's.
func (c *call) mark(req *http.Request, number int) {
	if c.rules.header != "" {
		req.Header = req.Header.Clone()
		if req.Header == nil {
			req.Header = http.Header{}
		}
		req.Header[c.rules.header] = []string{string(rune('0' + number))}
	}
}
