package grpcbalancer

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
)

// queue lets calls wait for the next picker.
type queue struct{}

// Pick implements balancer.Picker.
func (queue) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
}

// ready picks from the pool. All pickers of a policy share the pool that it has then, and with it
// the newest members, states, weights and records, and what the policy keeps beside it.
type ready struct {
	policy *policy
	pool   *evenkeel.Pool[*endpoint]
}

// tries is how often a pick looks for an endpoint. A second look is due where the
// first found one whose connection went away in between.
const tries = 2

// Pick implements balancer.Picker. What it cannot serve waits for the next picker:
// it is behind the policy then, which publishes right after each change that it can
// meet here.
func (r ready) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if checks := r.policy.used.Load(); checks != nil {
		checks.Used()
	}
	seen := callOf(info.Ctx)
	var request evenkeel.Request
	seen.describe(&request)
	if keys := r.policy.keys.Load(); keys != nil {
		request.Key, request.HasKey = keys.hash(info)
	}
	for range tries {
		c := newCall(info.Ctx)
		var err error
		if c.pick, err = r.pool.Pick(request); err != nil {
			c.recycle()
			return balancer.PickResult{}, r.nobody(err)
		}
		c.setDeadline()
		e := c.pick.Handle()
		// A picker that is late, of a policy that is closed, may find the pool with the next one, and that one's
		// connections are none of its channel's.
		if s := e.state.Load(); e.policy == r.policy && s.ConnectivityState == connectivity.Ready {
			result, err := s.Picker.Pick(info)
			if err == nil {
				seen.goes(c.pick.Record())
				result.Done = c.onDone(result.Done)
				return result, nil
			}
			if !errors.Is(err, balancer.ErrNoSubConnAvailable) {
				c.abandon()
				return balancer.PickResult{}, err
			}
		}
		request.Avoid = append(request.Avoid, c.pick.Record())
		c.abandon()
	}
	return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
}

// nobody says what becomes of a call for which the pool has nobody. One that is beyond the limit ends,
// even if it would wait for a connection: it is dropped, and others get their answers.
// Otherwise it waits for the next picker, which a sweep makes if nothing else does.
func (r ready) nobody(err error) error {
	if errors.Is(err, evenkeel.ErrOverloaded) {
		return status.Error(codes.Unavailable, err.Error())
	}
	r.policy.waits.Store(true)
	if err == evenkeel.ErrPanic {
		return err // no status: calls that wait for a connection go on waiting
	}
	return balancer.ErrNoSubConnAvailable
}

// resolverError is what the name resolver said last, as text: the error itself could
// carry a status.
type resolverError struct {
	whose string // channel
	text  string
}

// Error implements error.
func (e resolverError) Error() string { return e.whose + "name resolver: " + e.text }

// failing tells why there is no connection: in turn, what each child says.
type failing struct {
	endpoints []*endpoint
	resolver  error // what is wrong with the list, nil if nothing is
	next      atomic.Uint64
}

// Pick implements balancer.Picker. The error is never a status: calls that wait for
// a connection go on waiting, and others get UNAVAILABLE with its text.
func (f *failing) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if len(f.endpoints) == 0 {
		return balancer.PickResult{}, f.resolver
	}
	e := f.endpoints[(f.next.Add(1)-1)%uint64(len(f.endpoints))]
	s := e.state.Load()
	if s.ConnectivityState != connectivity.TransientFailure {
		return queue{}.Pick(info) // on its way up; a new picker is coming
	}
	_, err := s.Picker.Pick(info)
	if err == nil || errors.Is(err, balancer.ErrNoSubConnAvailable) {
		return queue{}.Pick(info)
	}
	return balancer.PickResult{}, f.explain(err)
}

// explain adds what is wrong with the list, of which the child may have said a part.
func (f *failing) explain(err error) error {
	text := err.Error()
	if r, ok := f.resolver.(resolverError); ok {
		if strings.Contains(text, r.text) {
			return errors.New(r.whose + text)
		}
		return fmt.Errorf("%s; %w", text, r)
	}
	if _, isStatus := status.FromError(err); isStatus {
		return errors.New(text) // a handshake's, say: it would end even calls that wait
	}
	return err
}
