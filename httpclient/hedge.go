package httpclient

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// HedgeConfig says when a request that has no answer yet is sent to a second endpoint as well. What comes first is the
// answer, unless it is a bad one (a failure, a 5xx or 429) while another may still come; the other
// try is cancelled, which is no fault of its endpoint's. The zero HedgeConfig is the documented
// default.
//
// Only idempotent requests (see [RetryConfig]) without trailers whose body can be had anew are hedged, only while there
// is budget (RetryConfig.Budget), and only to an endpoint that has no try of the request yet. Requests are not
// hedged while hedging would make things worse: while the target's requests in flight are limited
// (evenkeel.LimitConfig), or while a quarter or more of its answers have bodies above MaxBody or of unknown length.
// A failed try is followed by another at once.
type HedgeConfig struct {
	// Attempts is how many tries are made beside each other at most. 0 means 2; otherwise 2 to 5.
	Attempts int
	// Quantile of the target's own times to the headers, over its last ten to twenty seconds, is how long a try is waited
	// for before the next. 0 means 0.95; otherwise 0.5 to 0.999. Until 32 answers are known
	// nothing is hedged.
	Quantile float64
	// MinDelay is waited for in any case. 0 means 1 ms; at most 1 minute.
	MinDelay time.Duration
	// Delay is waited for instead of Quantile, whatever is known. 0 means Quantile; at most 1 hour.
	Delay time.Duration
	// MaxBody is how many bytes the body of a request may have, and those of the target's answers mostly have. 0
	// means 64 KiB; otherwise at least 1.
	MaxBody int64
}

const (
	defaultHedges   = 2
	defaultQuantile = 0.95
	minQuantile     = 0.5
	maxQuantile     = 0.999
	defaultMinDelay = time.Millisecond
	defaultMaxBody  = 64 << 10
	maxHedgeDelay   = time.Hour
)

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c HedgeConfig) Validate() error {
	var problems []error
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("httpclient: HedgeConfig."+format, args...))
	}
	if c.Attempts != 0 && (c.Attempts < 2 || c.Attempts > maxAttempts) {
		add("Attempts is %d, want 0 or 2 to %d", c.Attempts, maxAttempts)
	}
	if c.Quantile != 0 && !(c.Quantile >= minQuantile && c.Quantile <= maxQuantile) { // nor a NaN
		add("Quantile is %v, want 0 or %v to %v", c.Quantile, minQuantile, maxQuantile)
	}
	if c.MinDelay < 0 || c.MinDelay > time.Minute {
		add("MinDelay is %v, want 0 to %v", c.MinDelay, time.Minute)
	}
	if c.Delay < 0 || c.Delay > maxHedgeDelay {
		add("Delay is %v, want 0 to %v", c.Delay, maxHedgeDelay)
	}
	if c.MaxBody < 0 {
		add("MaxBody is %d, want at least 0", c.MaxBody)
	}
	return errors.Join(problems...)
}

// hedging is a HedgeConfig with its defaults. It is immutable; nil is none.
type hedging struct {
	attempts int
	quantile float64
	least    time.Duration
	delay    time.Duration // 0: by quantile
	maxBody  int64
}

// hedging returns that of a valid configuration.
func (c *HedgeConfig) hedging() *hedging {
	if c == nil {
		return nil
	}
	return &hedging{
		attempts: cmp.Or(c.Attempts, defaultHedges),
		quantile: cmp.Or(c.Quantile, defaultQuantile),
		least:    cmp.Or(c.MinDelay, defaultMinDelay),
		delay:    c.Delay,
		maxBody:  cmp.Or(c.MaxBody, defaultMaxBody),
	}
}

// heavy reports whether an answer is too big to be asked for twice.
func (h *hedging) heavy(resp *http.Response) bool {
	return h != nil && (resp.ContentLength < 0 || resp.ContentLength > h.maxBody)
}

// hedgeDelay returns how long the call's first try is waited for before there is a second; 0: it is not hedged.
func (g *group) hedgeDelay(c *call) time.Duration {
	h := g.hedge
	if h == nil || !c.idempotent || c.upgrade || isEventStream(c.req.Header["Accept"]) || !isReplayable(c.req) || c.chained() {
		return 0
	}
	if c.control != nil && (c.control.once || c.control.pinned()) {
		return 0
	}
	if hasBody(c.req) && (c.req.ContentLength < 0 || c.req.ContentLength > h.maxBody) || len(c.req.Trailer) > 0 {
		return 0 // who reads the body sets the trailers, which two tries would have to share
	}
	if g.distress.Load() || g.pace.onHeavy.Load() {
		return 0
	}
	if h.delay > 0 {
		return h.delay
	}
	d := time.Duration(g.pace.backup.Load())
	if d == 0 {
		return 0
	}
	return max(d, h.least)
}
