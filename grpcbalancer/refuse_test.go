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
					if _, err := r.pick(); !errors.Is(err, errNoEndpoints) || !strings.Contains(err.Error(), "fake:///orders: ") {
						t.Fatalf("pick: %v, want the reason and the target", err)
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

var errNoHost = errors.New("no such host")

// wantNoHost expects calls to fail with the resolver's error and the name of the target.
func wantNoHost(t *testing.T, r *rig) {
	t.Helper()
	r.wantState(connectivity.TransientFailure)
	_, err := r.pick()
	if err == nil || !strings.Contains(err.Error(), "no such host") || !strings.Contains(err.Error(), "fake:///orders: ") {
		t.Fatalf("error %v, want the resolver's and the target", err)
	}
}

func TestResolverErrorWithoutAList(t *testing.T) {
	for name, before := range map[string]func(*rig){
		"before the first":    func(*rig) {},
		"after an empty list": func(r *rig) { _ = r.send(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "")
				before(r)
				r.policy.ResolverError(errNoHost)
				wantNoHost(t, r)
				r.up(at("a"))
				r.wantState(connectivity.Ready)
			})
		})
	}
}

func TestResolverErrorWhileServingChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b")...)
		before := r.publications()
		r.policy.ResolverError(errNoHost)
		r.settle()
		r.wantState(connectivity.Ready)
		if r.publications() != before {
			t.Error("something was published")
		}
		r.picked()
	})
}

func TestResolverErrorWhileFailingJoinsTheConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.dial = func(string) error { return errors.New("refused") }
		r.up(each("a", "b")...)
		r.policy.ResolverError(errNoHost)
		r.settle()
		wantNoHost(t, r)
		// The next attempt's error joins it, and a good list takes it away.
		for _, a := range []string{"a", "b"} {
			r.conn(a).becomes(connectivity.TransientFailure, errors.New("refused again"))
		}
		r.settle()
		r.passWindow()
		wantNoHost(t, r)
		if _, err := r.pick(); !strings.Contains(err.Error(), "refused again") {
			t.Errorf("error %v, want the connection's too", err)
		}
		r.up(each("a", "b")...)
		if _, err := r.pick(); err == nil || strings.Contains(err.Error(), "no such host") {
			t.Errorf("error %v, want the connection's alone", err)
		}
	})
}

// A parent may leave the target out.
func TestErrorsWithoutATargetNameNone(t *testing.T) {
	p := builder{}.Build(newFakeChannel(), balancer.BuildOptions{})
	defer p.Close()
	p.ResolverError(errNoHost)
	_, err := p.(*policy).cc.(*fakeChannel).latest().Picker.Pick(balancer.PickInfo{})
	if err == nil || err.Error() != "evenkeel: name resolver: no such host" {
		t.Errorf("error %v", err)
	}
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
		if _, err := first.pick(); err == nil || !strings.Contains(err.Error(), "fake:///orders: grpcbalancer: BalancerConfig") {
			t.Errorf("pick without a list: %v, want the target and the reason", err)
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
