package grpcbalancer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
)

// timedOut is the end of a call whose time ran out on the way.
var timedOut = balancer.DoneInfo{Err: status.Error(codes.DeadlineExceeded, "x"), BytesSent: true}

// A call beyond the limit is dropped: it ends with UNAVAILABLE, even one that would wait for a connection,
// and no endpoint is blamed.
func TestCallBeyondTheLimitIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b")...)
		for range 30 {
			_, done := r.picked()
			done(timedOut)
		}
		time.Sleep(2500 * time.Millisecond) // sweeps
		synctest.Wait()
		if s := r.policy.pool.Stats(); s.Limit == 0 {
			t.Fatalf("no limit: %+v", s)
		}
		before := statsOf(r.policy)
		var open []func(balancer.DoneInfo)
		for range 100 {
			result, err := r.latest().Picker.Pick(balancer.PickInfo{Ctx: context.Background()})
			if err == nil {
				open = append(open, result.Done)
				continue
			}
			if s, ok := status.FromError(err); !ok || s.Code() != codes.Unavailable || errors.Is(err, balancer.ErrNoSubConnAvailable) {
				t.Fatalf("beyond the limit: %v, want a status UNAVAILABLE", err)
			}
			break
		}
		if n := r.policy.pool.Stats().Limit; len(open) != n {
			t.Errorf("%d calls began, the limit is %d", len(open), n)
		}
		for _, done := range open {
			done(succeeded)
		}
		for key, s := range statsOf(r.policy) {
			if s.InFlight != 0 || s.Success < before[key].Success {
				t.Errorf("%s was %+v, is %+v", key, before[key], s)
			}
		}
	})
}

// The deadline of a call counts for the limit: answers that use most of their time are distress.
func TestAnswersNearTheirDeadlineAreDistress(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "")
			r.up(each("a", "b")...)
			ctx := context.Background()
			if bounded {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			var open []func(balancer.DoneInfo)
			for range 30 {
				result, err := r.latest().Picker.Pick(balancer.PickInfo{Ctx: ctx})
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, result.Done)
			}
			time.Sleep(900 * time.Millisecond)
			for _, done := range open {
				done(succeeded)
			}
			time.Sleep(2500 * time.Millisecond)
			synctest.Wait()
			if s := r.policy.pool.Stats(); (s.Limit > 0) != bounded {
				t.Errorf("with a deadline %v: the limit is %d", bounded, s.Limit)
			}
		})
	}
}

// Calls that wait since nobody may be picked, though connections are there, get their endpoint when
// somebody is back.
func TestCallsThatWaitForAnAvailableEndpointGetOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b")...)
		r.policy.pool.Drain("a")
		r.policy.pool.Drain("b")
		if _, err := r.pick(); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			t.Fatalf("all drain: %v, want to wait", err)
		}
		published := r.publications()
		r.policy.pool.Resume("b")
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		if r.publications() == published {
			t.Error("nobody was told that it is worth another look")
		}
		if addr, _ := r.picked(); addr != "b" {
			t.Errorf("picked %s, want b", addr)
		}
	})
}

// A panic that fails fast fails calls that do not wait for a connection, and those that do wait.
func TestPanicThatFailsFastIsNoStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"outlier": {"panic": {"fail_fast": true}}}`)
		r.up(each("a", "b", "c")...)
		for _, id := range []string{"a", "b"} {
			r.policy.pool.SetStates([]evenkeel.StateChange{{ID: id, State: evenkeel.Failing, Source: evenkeel.Checks}})
		}
		_, err := r.pick()
		if _, isStatus := status.FromError(err); !errors.Is(err, evenkeel.ErrPanic) || isStatus {
			t.Errorf("%v, want a panic that is no status", err)
		}
	})
}
