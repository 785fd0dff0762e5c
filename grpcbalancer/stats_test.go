package grpcbalancer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// statsOfTarget are the pictures of the policies of a target.
func statsOfTarget(target string) (list []ChannelStats) {
	for _, s := range Stats() {
		if s.Target == target {
			list = append(list, s)
		}
	}
	return list
}

func TestStatsShowEachChannelAndForgetThoseThatAreClosed(t *testing.T) {
	servers := fleet(t, 3)
	first := connect(t, lbConfigOf(`{"polcy": 1}`), servers)
	second := connect(t, lbConfigOf(`{}`), servers[:2])
	first.calls(30)
	target := first.cc.CanonicalTarget()
	list := statsOfTarget(target)
	if len(list) != 2 || len(list[0].Connections) != 3 || len(list[1].Connections) != 2 {
		t.Fatalf("%+v, want two channels with three and two connections", list)
	}
	s := list[0]
	if s.Policy != spiedName || s.State != connectivity.Ready || s.Ready != 3 || s.Resolver != nil {
		t.Errorf("%+v", s)
	}
	var picks uint64
	for i, e := range s.Pool.Endpoints {
		picks += e.Picks
		if c := s.Connections[i]; c.Endpoint != e.ID || c.State != connectivity.Ready || c.Err != nil {
			t.Errorf("connection %+v of %s", c, e.ID)
		}
	}
	if picks != 30 {
		t.Errorf("%d picks, want 30", picks)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "polcy") || len(list[1].Warnings) != 0 {
		t.Errorf("warnings %q and %q, want one about polcy", s.Warnings, list[1].Warnings)
	}
	_ = first.cc.Close()
	eventually(t, "the closed one is gone", func() bool { return len(statsOfTarget(target)) == 1 })
	_ = second.cc.Close()
	eventually(t, "both are gone", func() bool { return len(statsOfTarget(target)) == 0 })
}

func TestStatsTellWhyConnectionsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		only := func() ChannelStats {
			t.Helper()
			list := statsOfTarget(fakeTarget.String())
			if len(list) != 1 {
				t.Fatalf("%d policies, want one", len(list))
			}
			return list[0]
		}
		if s := only(); s.State != connectivity.Idle || len(s.Connections) != 0 || s.Pool.Endpoints != nil {
			t.Errorf("before the first list: %+v", s)
		}
		r.dial = func(addr string) error {
			if addr == "b" {
				return errors.New("nobody listens there")
			}
			return nil
		}
		r.up(each("a", "b")...)
		s := only()
		if s.Ready != 1 || s.Failing+s.Connecting != 1 || s.State != connectivity.Ready {
			t.Errorf("%+v", s)
		}
		b := s.Connections[slices.IndexFunc(s.Connections, func(c ConnectionStats) bool { return c.Endpoint == "b" })]
		if b.State != connectivity.TransientFailure || b.Err == nil || !strings.Contains(b.Err.Error(), "nobody listens there") {
			t.Errorf("%+v", b)
		}
		r.policy.ResolverError(errors.New("no such name"))
		if s := only(); s.Resolver == nil || !strings.Contains(s.Resolver.Error(), "no such name") {
			t.Errorf("resolver: %v", s.Resolver)
		}
		r.policy.Close()
		if list := statsOfTarget(fakeTarget.String()); len(list) != 0 {
			t.Errorf("after Close: %+v", list)
		}
		live.mu.Lock()
		defer live.mu.Unlock()
		if _, kept := live.known[r.policy]; kept {
			t.Error("a closed policy is kept")
		}
	})
}

// observed are the events of a rig, without those of others.
func observe(t *testing.T) (told func() []string) {
	t.Helper()
	var list []string
	stop := Observe(func(e Event) {
		if e.Target == fakeTarget.String() && !e.At.IsZero() {
			list = append(list, strings.TrimPrefix(e.String(), fakeTarget.String()+" "))
		}
	})
	t.Cleanup(stop)
	return func() []string {
		synctest.Wait()
		got := list
		list = nil
		return got
	}
}

func TestObserversAreToldWhatHappensInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := observe(t)
		r := newRig(t, `{"unheard_of": 1, "policy": "round_robin", "outlier": {"soft": {"consecutive_failures": 2}}}`)
		want := func(what string, want ...string) {
			t.Helper()
			got := told()
			for _, w := range want {
				i := slices.IndexFunc(got, func(s string) bool { return strings.Contains(s, w) })
				if i < 0 {
					t.Errorf("%s: no %q after %q", what, w, got)
					return
				}
				got = got[i+1:]
			}
		}
		r.up(each("a", "b", "c")...)
		want("the first list", "warning: config: unheard_of", "connectivity: CONNECTING", "connectivity: READY")
		r.conn("a").becomes(connectivity.Idle, nil)
		r.up(each("a", "b", "c")...)
		want("a reconnect", "a: connectivity: IDLE", "a: connectivity: CONNECTING", "a: connectivity: READY")
		r.policy.ResolverError(errors.New("no such name"))
		r.up(each("a", "b", "c")...)
		want("the resolver", "resolver: ", "resolver: well again")
		for range 5 {
			r.pickedOn("b")(ended(status.Error(codes.Unavailable, "x"), true, true))
		}
		time.Sleep(3 * time.Second)
		want("failures", "consecutive failures")
		for range 60 {
			r.shares(30)
			time.Sleep(time.Second)
		}
		want("b is well", "b: ejection: back")
		r.policy.Close()
	})
}

func TestObserversComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o observers
		var got []string
		stop := o.add(func(e Event) { got = append(got, "1 "+e.Text) })
		o.emit(Event{Text: "a"})
		synctest.Wait()
		var stopSelf func()
		stopSelf = o.add(func(e Event) {
			got = append(got, "2 "+e.Text)
			stopSelf() // from within
		})
		o.emit(Event{Text: "b"})
		synctest.Wait()
		o.emit(Event{Text: "c"})
		synctest.Wait()
		stop()
		stop()
		o.emit(Event{Text: "d"})
		synctest.Wait()
		if want := []string{"1 a", "1 b", "2 b", "1 c"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		if o.any.Load() || o.telling {
			t.Error("somebody is told, though nobody observes")
		}
	})
}

func TestEventsBeyondTheBoundAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o observers
		n, last := 0, ""
		free := make(chan struct{})
		o.add(func(e Event) {
			<-free
			n++
			last = e.Text
		})
		o.emit(Event{})
		synctest.Wait() // it waits in there
		for range maxEvents + 7 {
			o.emit(Event{})
		}
		close(free)
		synctest.Wait()
		if n != 1+maxEvents+1 || last != "7 events were lost: an observer is slow" {
			t.Errorf("%d events, the last %q", n, last)
		}
	})
}

// An observer may ask for all there is, while the policy is at work.
func TestObserversMayCallAnything(t *testing.T) {
	servers := fleet(t, 2)
	done := make(chan struct{}, 1)
	stop := Observe(func(Event) {
		_ = Stats()
		Observe(func(Event) {})()
		select {
		case done <- struct{}{}:
		default:
		}
	})
	defer stop()
	connect(t, lbConfigOf(`{}`), servers).calls(10)
	<-done
}
