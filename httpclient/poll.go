package httpclient

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// Poll is a Resolver that asks a function for the list, as for a registry with a client of
// its own. It must not be changed while it is in use.
//
// A call that fails is made again after 1 s, then twice that, up to 32 s, and leaves the
// last list in force; when connections fail, the next call comes earlier, but not within 5 s.
type Poll struct {
	// Func returns the addresses of a target. It must be safe for concurrent use, one call
	// for each target, and return soon after ctx is done, which is after 10 s. An empty list
	// without an error empties the target. A list with an error is used, and the error shown:
	// a part of the addresses could not be found. The list is not kept, nor changed.
	Func func(ctx context.Context, target Target) ([]Address, error)
	// Every is the time between calls, ±10 %. 0 means 30 s; otherwise at least 1 s.
	Every time.Duration
}

const pollLeast = time.Second

// Validate reports whether there is a Func, Every is in its range, and p is not nil.
func (p *Poll) Validate() error {
	if p == nil {
		return errors.New("httpclient: Resolver is a nil *Poll, want one with a Func")
	}
	err := checkEvery("Poll.Every", p.Every, pollLeast)
	if p.Func == nil {
		err = errors.Join(errors.New("httpclient: Poll.Func is nil, want a function"), err)
	}
	return err
}

// Watch calls Func until ctx is done.
func (p *Poll) Watch(ctx context.Context, target Target, sink Sink) error {
	if err := p.Validate(); err != nil {
		return err
	}
	every := cmp.Or(p.Every, lookEvery)
	return rounds{every: every, least: min(every, lookLeast)}.run(ctx, sink, func(ctx context.Context) ([]Address, error) {
		return p.Func(ctx, target)
	})
}
