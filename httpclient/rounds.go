package httpclient

import (
	"context"
	"fmt"
	"time"
)

const (
	lookEvery   = 30 * time.Second
	lookLeast   = 5 * time.Second
	lookSpread  = 0.1
	lookTimeout = 10 * time.Second
)

// rounds is how the resolvers work that have to ask to find out what changed: at once, then
// every so often, earlier when connections fail, and in growing pauses while asking fails.
type rounds struct {
	every time.Duration // between two looks, more or less by lookSpread
	least time.Duration // the same when connections fail
}

// run calls look until ctx is done, with 10 s for each. It returns a list, or an error, or
// both if it could not find out all. Without an error the list is the answer even if it is nil.
func (r rounds) run(ctx context.Context, sink Sink, look func(context.Context) ([]Address, error)) error {
	for failures := 0; ; {
		earliest := time.Now().Add(r.least)
		list, err := within(ctx, look)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var refused error // which the sink knows already
		if err == nil || list != nil {
			refused = sink.Update(list)
		}
		if err != nil { // after the list, so that it stays to be seen
			sink.Error(err)
		}
		wait, hints := spread(r.every, lookSpread), sink.Refresh()
		if err != nil || refused != nil {
			// Who fails is not asked more often because connections fail too.
			wait, hints = backoff(failures), nil
			failures++
		} else {
			failures = 0
		}
		if !pause(ctx, wait, earliest, hints) {
			return ctx.Err()
		}
	}
}

func within(ctx context.Context, look func(context.Context) ([]Address, error)) ([]Address, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return look(ctx)
}

// checkEvery reports whether a field with the time between looks is in its range.
func checkEvery(field string, every, least time.Duration) error {
	if every != 0 && every < least {
		return fmt.Errorf("httpclient: %s is %v, want 0 or at least %v", field, every, least)
	}
	return nil
}
