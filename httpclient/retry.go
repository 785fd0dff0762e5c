package httpclient

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/limit"
)

// RetryConfig says when a request is sent once more, to another endpoint if there is one. The
// zero RetryConfig, and none, is the documented default.
//
// A request whose first try could not be sent at all (refused, no answer to the dialer, a failed
// handshake), or that the endpoint refused unread (HTTP/2's REFUSED_STREAM and GOAWAY), is
// sent again at once, whatever its method. One that may have been acted on is sent again only if
// it is idempotent, after a short random wait: GET, HEAD, OPTIONS, TRACE, PUT and DELETE
// (RFC 9110, 9.2.2), any with a header Idempotency-Key or X-Idempotency-Key, and what
// [WithIdempotent] says; that is after a connection that broke before the answer, a time limit of the
// Transport's own, or one of Statuses. Never sent again is a request that ended because its caller left, one with an
// Upgrade header, or of the method CONNECT, once it was sent, and one whose body cannot be had anew: it needs a GetBody, which http.NewRequest makes for
// bytes and strings. What the caller has seen the headers of is an answer, whatever becomes of its body.
//
// Statuses are not retried unless named, as in Envoy, gRPC, NGINX and HAProxy: an answer, even a bad
// one, took its share of the endpoint's work, and who knows whether it is worth another is
// the application.
type RetryConfig struct {
	// Disabled has each request sent once.
	Disabled bool
	// Attempts is how many tries a request has, the first included. 0 means 3; otherwise 1 to 5.
	Attempts int
	// Statuses are those answers that make an idempotent request be sent again, such as 502, 503 and
	// 504; nil means none. 408, 425, 429 and 500 to 599 can be, but for 501.
	Statuses []int
	// TryTimeout is how long a try may take to the headers of its answer, within what the request's
	// context leaves. 0 means no limit of its own; otherwise at least 1 ms.
	TryTimeout time.Duration
	// Backoff bounds the wait before the second try where there is one; it doubles with each further try up to ten
	// times that, and the wait is a random part of it. 0 means 25 ms; otherwise 1 ms to 1 minute.
	Backoff time.Duration
	// MaxRetryAfter is the longest Retry-After that is waited for; an answer that asks for more, or for more than
	// the request has time for, is returned. 0 means 5 s; at most 5 minutes.
	MaxRetryAfter time.Duration
	// Header is the name of a header that all tries but the first carry, with the number of the try.
	// A request that comes with it already is sent once, so that layers which retry do not
	// multiply. "" means none.
	Header string
	// Budget bounds retries and hedges of a target together.
	Budget RetryBudget
}

// RetryBudget bounds how many tries beyond the first the requests to one target have, retries
// and hedges together, so that failures cannot multiply the load. The first retry of a request of which
// nothing was sent takes nothing from it. When it is spent a request ends with the last answer or
// error that it got. The zero RetryBudget is the documented default.
type RetryBudget struct {
	// Disabled grants everything.
	Disabled bool
	// Percent of the requests of the last Window may have one more try, and as many percent of those in flight
	// at once. 0 means 20, a negative number none; at most 1000.
	Percent float64
	// PerSecond may be made on top, so that a client with few requests has any. 0 means 10, a
	// negative number none; at most 10^6.
	PerSecond float64
	// AtOnce may be in flight at a time in any case: an endpoint that dies takes all its connections'
	// requests with it. 0 means 20, a negative number none; at most 2^20.
	AtOnce int
	// Window is how long a request or a try counts. 0 means 10 s; otherwise 1 s to 10 minutes.
	Window time.Duration
}

const (
	defaultAttempts = 3
	maxAttempts     = 5
	defaultBackoff  = 25 * time.Millisecond
	maxBackoff      = time.Minute
	backoffSpan     = 10 // how often the first back-off the longest is
	defaultMaxAfter = 5 * time.Second
	minTryTimeout   = time.Millisecond
	defaultAtOnce   = 20
)

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c RetryConfig) Validate() error {
	var problems []error
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("httpclient: RetryConfig."+format, args...))
	}
	if c.Attempts < 0 || c.Attempts > maxAttempts {
		add("Attempts is %d, want 0 to %d", c.Attempts, maxAttempts)
	}
	for _, s := range c.Statuses {
		if !mayRetryStatus(s) {
			add("Statuses has %d, want 408, 425, 429 or 500 to 599, and not 501", s)
		}
	}
	if c.TryTimeout != 0 && c.TryTimeout < minTryTimeout {
		add("TryTimeout is %v, want 0 or at least %v", c.TryTimeout, minTryTimeout)
	}
	if c.Backoff != 0 && (c.Backoff < time.Millisecond || c.Backoff > maxBackoff) {
		add("Backoff is %v, want 0 or %v to %v", c.Backoff, time.Millisecond, maxBackoff)
	}
	if c.MaxRetryAfter < 0 || c.MaxRetryAfter > maxRetryAfter {
		add("MaxRetryAfter is %v, want 0 to %v", c.MaxRetryAfter, maxRetryAfter)
	}
	if c.Header != "" && !isToken(c.Header) {
		add("Header is %q, want the name of a header", clip(c.Header))
	}
	return errors.Join(append(problems, c.Budget.validate())...)
}

func mayRetryStatus(s int) bool {
	switch s {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return s >= 500 && s <= 599 && s != http.StatusNotImplemented
}

// isToken reports whether s can be a header's name (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '!', c >= '#' && c <= '\'', c == '*', c == '+', c == '-', c == '.', c == '^', c == '_', c == '`', c == '|', c == '~':
		default:
			return false
		}
	}
	return s != ""
}

func (b RetryBudget) validate() error {
	var problems []error
	// A NaN is in no range.
	if !(b.Percent <= limit.MaxPercent) {
		problems = append(problems, fmt.Errorf("httpclient: RetryConfig.Budget.Percent is %v, want at most %d", b.Percent, limit.MaxPercent))
	}
	if !(b.PerSecond <= limit.MaxPerSecond) {
		problems = append(problems, fmt.Errorf("httpclient: RetryConfig.Budget.PerSecond is %v, want at most %v", b.PerSecond, float64(limit.MaxPerSecond)))
	}
	if b.AtOnce > limit.MaxAtOnce {
		problems = append(problems, fmt.Errorf("httpclient: RetryConfig.Budget.AtOnce is %d, want at most %d", b.AtOnce, limit.MaxAtOnce))
	}
	if b.Window != 0 && (b.Window < limit.MinWindow || b.Window > limit.MaxWindow) {
		problems = append(problems, fmt.Errorf("httpclient: RetryConfig.Budget.Window is %v, want 0 or %v to %v", b.Window, limit.MinWindow, limit.MaxWindow))
	}
	return errors.Join(problems...)
}

// limits returns b, which is valid, as package limit has it.
func (b RetryBudget) limits() limit.BudgetConfig {
	none := func(v float64) float64 {
		if v < 0 {
			return limit.None
		}
		return v
	}
	return limit.BudgetConfig{
		Disabled:        b.Disabled,
		Percent:         none(b.Percent),
		InFlightPercent: none(b.Percent),
		PerSecond:       none(b.PerSecond),
		AtOnce:          max(cmp.Or(b.AtOnce, defaultAtOnce), limit.None),
		Window:          b.Window,
	}
}

// rules are a RetryConfig with its defaults. They are immutable.
type rules struct {
	attempts   int
	statuses   []int // sorted
	tryTimeout time.Duration
	backoff    time.Duration
	maxAfter   time.Duration
	header     string // as http.Header has it
}

// rules returns those of a valid configuration.
func (c RetryConfig) rules() *rules {
	r := &rules{
		attempts:   cmp.Or(c.Attempts, defaultAttempts),
		statuses:   slices.Sorted(slices.Values(c.Statuses)),
		tryTimeout: c.TryTimeout,
		backoff:    cmp.Or(c.Backoff, defaultBackoff),
		maxAfter:   cmp.Or(c.MaxRetryAfter, defaultMaxAfter),
		header:     http.CanonicalHeaderKey(c.Header),
	}
	if c.Disabled {
		r.attempts, r.statuses = 1, nil
	}
	return r
}

// retries reports whether an answer with that status makes an idempotent request be sent again.
func (r *rules) retries(status int) bool {
	if len(r.statuses) == 0 {
		return false
	}
	_, found := slices.BinarySearch(r.statuses, status)
	return found
}

// wait returns how long to wait before a try, of which random picks a part; failed is how many
// there were already.
func (r *rules) wait(failed int, random uint64) time.Duration {
	most := min(r.backoff<<max(failed-1, 0), r.backoff*backoffSpan)
	return time.Duration(random % uint64(most+1))
}
