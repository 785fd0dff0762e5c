package httpclient

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/evenkeel/evenkeel"
)

// errUnchecked says that nobody has passed a health check yet.
var errUnchecked = errors.New("httpclient: no endpoint has passed its health check")

// WaitReady waits until the target of rawURL has an endpoint that may be picked, and if Config.Health is set one that
// has passed its check. It starts the target's lookups and checks. A lookup that fails is waited out. It returns nil
// then, and an error when ctx is done first, with the last reason, or when there can be no such target.
//
// It makes no connections but those of checks: those of requests come with the first requests. To have them sooner send one
// to each endpoint, by [WithEndpoint], such as a HEAD for a page that costs little.
func (t *Transport) WaitReady(ctx context.Context, rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return err // which says what was parsed
	}
	var why error
	cause := until(ctx, func() (over bool) {
		over, why = t.ready(u)
		return over
	})
	if cause != nil && why != nil {
		return fmt.Errorf("%w (%w)", why, cause)
	}
	if cause != nil {
		return cause
	}
	return why
}

// ready reports whether there is nothing to wait for, which an error can be the reason of.
func (t *Transport) ready(u *url.URL) (over bool, why error) {
	f, err := t.start()
	if err != nil {
		return true, err
	}
	if f.balance != nil && !f.balance(u) {
		return true, fmt.Errorf("httpclient: %s is not balanced, as Transport.Balance says", clip(u.Host))
	}
	g, err := f.group(u)
	if err != nil {
		return true, err
	}
	g.used.Store(true)
	g.checks.used()
	if !g.listed.Load() {
		g.mu.Lock()
		defer g.mu.Unlock()
		const op = "wait for the first list of addresses"
		if g.lastErr != nil {
			return false, &TargetError{Target: g.target, Op: op, Err: g.lastErr}
		}
		return false, &TargetError{Target: g.target, Op: op, Err: errNotYet}
	}
	s := g.pool.Stats()
	switch {
	case s.Listed == 0:
		err = evenkeel.ErrEmpty
	case s.Ready == 0:
		err = evenkeel.ErrNoneReady
	case !g.checks.passed():
		err = errUnchecked
	default:
		return true, nil
	}
	return false, &TargetError{Target: g.target, Op: "wait for an endpoint", Err: err}
}
