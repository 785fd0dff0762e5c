package grpcbalancer

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// connecting returns a rig whose n endpoints are on their way and stay so.
func connecting(t *testing.T, n int) *rig {
	r := newRig(t, `{"policy": "round_robin"}`)
	r.manual = true
	list := make([]resolver.Endpoint, n)
	for i := range list {
		list[i] = at(fmt.Sprint(i))
	}
	r.update(list...)
	return r
}

func (r *rig) connects(i int) {
	r.conn(fmt.Sprint(i)).becomes(connectivity.Ready, nil)
	r.settle()
}

func TestFirstReadyEndpointsArePublishedAtOnceLaterOnesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connecting(t, 20)
		before := r.publications()
		for i := range promptReady {
			r.connects(i)
			if n := r.publications() - before; n != i+1 {
				t.Fatalf("%d publications after %d endpoints became READY", n, i+1)
			}
		}
		for i := promptReady; i < 20; i++ {
			r.connects(i)
		}
		if n := r.publications() - before; n != promptReady {
			t.Fatalf("%d publications before the window is over, want %d", n, promptReady)
		}
		time.Sleep(coalesceFor - time.Nanosecond)
		synctest.Wait()
		if n := r.publications() - before; n != promptReady {
			t.Fatalf("%d publications before the window is over, want %d", n, promptReady)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := r.publications() - before; n != promptReady+1 {
			t.Fatalf("%d publications after the window, want %d", n, promptReady+1)
		}
		if got := r.shares(20); len(got) != 20 {
			t.Fatalf("shares %v, want one for each", got)
		}
		// And the next window is a new one.
		r.passWindow()
		if n := r.publications() - before; n != promptReady+1 {
			t.Fatalf("%d publications with nothing new, want %d", n, promptReady+1)
		}
	})
}

// Calls may have been sent to the connection that is gone: they wait for a new picker.
func TestLeavingReadyIsPublishedAtOnceWithAllThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connecting(t, 10)
		for i := range 8 {
			r.connects(i)
		}
		before := r.publications()
		r.conn("0").becomes(connectivity.Idle, nil)
		r.pump()
		if n := r.publications() - before; n != 1 {
			t.Fatalf("%d publications, want 1", n)
		}
		if got := r.shares(70); len(got) != 7 || got["0"] != 0 {
			t.Fatalf("shares %v, want the seven that are READY", got)
		}
		r.passWindow()
		if n := r.publications() - before; n != 1 {
			t.Errorf("%d publications after the window, want 1: it held nothing more", n)
		}
	})
}

// A connection that comes and goes within the window leaves no trace in it.
func TestFlapWithinTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connecting(t, 10)
		for i := range 6 {
			r.connects(i)
		}
		r.conn("5").becomes(connectivity.Idle, nil)
		r.settle()
		r.connects(5)
		r.conn("5").becomes(connectivity.Idle, nil)
		r.settle()
		r.passWindow()
		if got := r.shares(50); len(got) != 5 || got["5"] != 0 {
			t.Fatalf("shares %v, want the other five", got)
		}
	})
}

// Of ten endpoints the first few are up, from the fifth on with the window open.
func TestWhatIsPublishedAtOnceAndThatNothingFollows(t *testing.T) {
	for _, c := range []struct {
		name string
		up   int
		do   func(*rig)
		want int
	}{
		{"reports that no pick can see", 3, func(r *rig) {
			for i := 3; i < 10; i++ {
				r.conn(fmt.Sprint(i)).becomes(connectivity.TransientFailure, errors.New("refused"))
			}
			r.settle()
		}, 0},
		{"Close while the window is open", 6, func(r *rig) { r.policy.Close() }, 0},
		{"READY again, with a new picker in place of one that is dead", 6, func(r *rig) {
			r.policy.children["0"].seat.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: queue{}})
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := connecting(t, 10)
				for i := range c.up {
					r.connects(i)
				}
				before := r.publications()
				c.do(r)
				for _, wait := range []time.Duration{0, time.Minute} {
					time.Sleep(wait)
					synctest.Wait()
					if n := r.publications() - before; n != c.want {
						t.Errorf("%d publications after %v, want %d", n, wait, c.want)
					}
				}
			})
		})
	}
}

// Reports that make no sense change nothing.
func TestReportsOutsideTheContractAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connecting(t, 1)
		r.connects(0)
		e := r.policy.children["0"]
		for _, s := range []balancer.State{
			{ConnectivityState: connectivity.Shutdown, Picker: queue{}},
			{ConnectivityState: connectivity.State(-1), Picker: queue{}},
			{ConnectivityState: connectivity.Idle},
		} {
			e.seat.UpdateState(s)
		}
		r.wantState(connectivity.Ready)
		r.picked()
	})
}

func TestReportsOfLeaversAndAfterCloseAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connecting(t, 3)
		leaver := r.policy.children["0"]
		r.manual = true
		r.update(at("1"), at("2"))
		before := r.publications()
		up := balancer.State{ConnectivityState: connectivity.Ready, Picker: queue{}}
		leaver.seat.UpdateState(up)
		if n := r.policy.counts[connectivity.Ready]; n != 0 || r.publications() != before {
			t.Errorf("a leaver was heard: %d READY", n)
		}
		stayed := r.policy.children["1"]
		r.policy.Close()
		stayed.seat.UpdateState(up)
		if r.publications() != before {
			t.Error("a child was heard after Close")
		}
	})
}
