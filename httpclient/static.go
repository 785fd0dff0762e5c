package httpclient

import (
	"context"
	"errors"
)

// Static is a Resolver with a fixed list: it serves every target from the same
// endpoints, whatever the URL's host. It must not be changed while it is in use. An
// address that comes twice, in whatever form, is refused: with two weights or none it
// is a mistake. (The gRPC policy merges duplicates, as gRPC asks of policies.)
type Static []Address

// Validate reports every problem of the list, joined: no addresses, text that is no
// address, one address twice, weights out of range. A Transport refuses to work with
// a list that has any.
func (s Static) Validate() error {
	if len(s) == 0 {
		return errors.New("httpclient: Static has 0 addresses, want at least 1")
	}
	_, err := locate(s, 0)
	return err
}

// Watch gives the list to sink and waits for ctx.
func (s Static) Watch(ctx context.Context, _ Target, sink Sink) error {
	// The one problem that Validate cannot see, an address both with the target's port
	// and without any, will not go away by trying again.
	_ = sink.Update(s)
	<-ctx.Done()
	return ctx.Err()
}
