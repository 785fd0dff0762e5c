package grpcbalancer

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
)

func TestEmptyListClosesAllAndAsksForAnother(t *testing.T) {
	for name, empty := range map[string][]resolver.Endpoint{
		"nothing":           nil,
		"without addresses": {{}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "")
				for range 2 {
					if err := r.send(empty); err != balancer.ErrBadResolverState {
						t.Fatalf("error %v, want ErrBadResolverState itself: the channel compares", err)
					}
					r.settle()
					r.wantState(connectivity.TransientFailure)
					if _, err := r.pick(); !errors.Is(err, errNoEndpoints) {
						t.Fatalf("pick: %v, want the reason", err)
					}
					if n := r.openConns(); n != 0 {
						t.Fatalf("%d connections are open", n)
					}
					r.up(each("a", "b", "c")...)
					r.wantState(connectivity.Ready)
				}
			})
		})
	}
}

func TestResolverError(t *testing.T) {
	cause := errors.New("no such host")
	wantCause := func(t *testing.T, r *rig) {
		t.Helper()
		r.wantState(connectivity.TransientFailure)
		if _, err := r.pick(); err == nil || !strings.Contains(err.Error(), "no such host") {
			t.Fatalf("error %v, want the resolver's", err)
		}
	}
	t.Run("before the first list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "")
			r.policy.ResolverError(cause)
			wantCause(t, r)
			r.up(at("a"))
			r.wantState(connectivity.Ready)
		})
	})
	t.Run("while serving", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "")
			r.up(each("a", "b")...)
			before := r.publications()
			r.policy.ResolverError(cause)
			r.settle()
			r.wantState(connectivity.Ready)
			if r.publications() != before {
				t.Error("something was published")
			}
			r.picked()
		})
	})
	t.Run("while failing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "")
			r.dial = func(string) error { return errors.New("refused") }
			r.up(each("a", "b")...)
			r.policy.ResolverError(cause)
			r.settle()
			wantCause(t, r)
			// The next attempt's error joins it, and a good list takes it away.
			for _, a := range []string{"a", "b"} {
				r.conn(a).becomes(connectivity.TransientFailure, errors.New("refused again"))
			}
			r.settle()
			r.passWindow()
			wantCause(t, r)
			if _, err := r.pick(); !strings.Contains(err.Error(), "refused again") {
				t.Errorf("error %v, want the connection's too", err)
			}
			r.up(each("a", "b")...)
			if _, err := r.pick(); err == nil || strings.Contains(err.Error(), "no such host") {
				t.Errorf("error %v, want the connection's alone", err)
			}
		})
	})
	t.Run("after an empty list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "")
			_ = r.send(nil)
			r.policy.ResolverError(cause)
			wantCause(t, r)
		})
	})
}

func TestWrongConfigIsRefusedAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(at("a"))
		r.config = struct{ loadBalancingConfig }{}
		if err := r.send(each("b")); !errors.Is(err, balancer.ErrBadResolverState) {
			t.Fatalf("error %v, want ErrBadResolverState in it", err)
		}
		r.settle()
		if addr, _ := r.picked(); addr != "a" {
			t.Errorf("picked %s, want the previous list in force", addr)
		}
		first := newRig(t, "")
		first.config = r.config
		_ = first.send(each("b"))
		if _, err := first.pick(); err == nil || !strings.Contains(err.Error(), "BalancerConfig") {
			t.Errorf("pick without a list: %v, want the reason", err)
		}
	})
}

// Nothing that reaches the pool is known to be refused there; if it is, the previous
// list stays in force, and without one calls learn why.
func TestWhatThePoolRefusesChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(at("a"))
		r.policy.pool.Close()
		before := r.publications()
		if err := r.send(each("b")); !errors.Is(err, balancer.ErrBadResolverState) || !errors.Is(err, evenkeel.ErrClosed) {
			t.Errorf("error %v, want both what to do and why", err)
		}
		if r.publications() != before || r.conn("b") != nil {
			t.Error("something changed")
		}
		empty := newRig(t, "")
		_ = empty.send(nil)
		empty.policy.pool.Close()
		_ = empty.send(each("b"))
		if _, err := empty.pick(); !errors.Is(err, evenkeel.ErrClosed) {
			t.Errorf("pick: %v, want the reason", err)
		}
	})
}
