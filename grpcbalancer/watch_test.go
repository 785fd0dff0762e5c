package grpcbalancer

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
)

const watched = `{"policy": "round_robin", "outlier": {"mode": "off"}, "health": {"protocol": "grpc", "timeout": "500ms"}}`

// newWatchedRig returns a rig whose endpoints are asked on their connections, and what they say.
func newWatchedRig(t *testing.T, json string) (*rig, *sayings) {
	t.Helper()
	r, s := newRig(t, json), newSayings()
	r.calls = s.calls
	return r, s
}

// wantServing is who gets calls.
func (r *rig) wantServing(what string, want ...string) {
	r.t.Helper()
	r.passWindow()
	got := r.shares(20)
	names := make([]string, 0, len(got))
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		r.t.Errorf("%s: calls go to %v, want %v", what, names, want)
	}
}

func (r *rig) wantStanding(id string, want evenkeel.State, by evenkeel.Source) {
	r.t.Helper()
	if s := r.stats(id); s.State != want || s.Source != by {
		r.t.Errorf("%s is %v by %v, want %v by %v", id, s.State, s.Source, want, by)
	}
}

func TestEndpointsThatSayTheyDoNotServeGetNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		for _, a := range []string{"a", "b", "c"} {
			s.say(a, serving)
		}
		r.up(each("a", "b", "c")...)
		r.wantServing("all serve", "a", "b", "c")
		s.say("a", notServing)
		r.settle()
		r.wantServing("one does not", "b", "c")
		r.wantStanding("a", evenkeel.Failing, evenkeel.Checks)
		s.say("b", notServing)
		s.say("c", notServing)
		r.settle()
		r.wantServing("none does: the verdicts are not believed", "a", "b", "c")
		r.wantState(connectivity.Ready)
		s.say("a", serving)
		s.say("c", serving)
		r.settle()
		r.wantServing("two do", "a", "c")
		r.wantState(connectivity.Ready)
	})
}

// What has not said anything on its connection is not used while others are, and alone it is.
func TestEndpointsThatSayNothingWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		r.up(at("mute"))
		r.wantServing("alone", "mute")
		time.Sleep(time.Second)
		r.settle()
		r.wantServing("overdue, and alone", "mute")
		r.wantStanding("mute", evenkeel.Failing, evenkeel.Checks)

		s.say("a", serving)
		s.say("b", serving)
		r.up(each("mute", "a", "b")...)
		r.wantServing("others serve", "a", "b")

		r.up(each("mute", "a", "b", "late")...)
		r.wantServing("a new one, mute as yet", "a", "b")
		r.wantStanding("late", evenkeel.NotReady, evenkeel.Connection)
		s.say("late", serving)
		r.settle()
		r.wantServing("it serves", "a", "b", "late")

		r.up(each("mute", "a", "b", "later")...)
		time.Sleep(time.Second)
		r.settle()
		r.wantServing("another one has taken too long", "a", "b")
		r.wantStanding("later", evenkeel.Failing, evenkeel.Checks)
	})
}

func TestNobodyWaitsWhenTheOthersAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		s.say("a", serving)
		r.up(at("a"))
		r.up(each("a", "mute", "mute too")...)
		r.wantServing("one serves", "a")
		r.manual = true
		r.conn("a").becomes(connectivity.Idle, nil)
		r.settle()
		r.wantServing("it is lost", "mute", "mute too")
		r.conn("a").becomes(connectivity.Ready, nil)
		r.settle()
		r.wantServing("it is back", "a", "mute", "mute too")
	})
}

func TestUseUncheckedWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, strings.Replace(watched, `"timeout"`, `"use_unchecked": true, "timeout"`, 1))
		s.say("a", serving)
		r.up(at("a"))
		r.up(each("a", "mute")...)
		r.wantServing("at once", "a", "mute")
	})
}

func TestEachConnectionIsAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		s.say("a", serving)
		s.say("b", serving)
		r.up(each("a", "b")...)
		r.manual = true
		s.mute("a")
		r.conn("a").becomes(connectivity.Idle, nil)
		r.settle()
		if n := s.open(); n != 1 {
			t.Errorf("%d streams, want b's", n)
		}
		r.conn("a").becomes(connectivity.Ready, nil)
		r.settle()
		r.wantServing("connected and mute", "b")
		s.say("a", serving)
		r.settle()
		r.wantServing("it serves", "a", "b")
		if n := len(s.began("a")); n != 2 {
			t.Errorf("%d streams, want one for each connection", n)
		}
		r.policy.Close()
		if n := s.open(); n != 0 {
			t.Errorf("%d streams after Close", n)
		}
	})
}

func TestServersWithoutTheServiceAreHealthyWithOneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		for _, a := range []string{"a", "b"} {
			s.end(a, status.Error(codes.Unimplemented, "unknown service"))
		}
		r.up(each("a", "b")...)
		r.wantServing("both", "a", "b")
		r.conn("a").becomes(connectivity.Idle, nil)
		r.settle()
		time.Sleep(time.Minute)
		r.wantServing("later", "a", "b")
		if n := len(s.began("a")) + len(s.began("b")); n != 3 {
			t.Errorf("%d streams, want one for each connection: it is not asked again", n)
		}
		if w := r.policy.warnings.list(); len(w) != 1 || !strings.Contains(w[0], "grpc.health.v1.Health") {
			t.Errorf("warnings %q, want one", w)
		}
	})
}

func TestBrokenWatchesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		s.say("b", serving)
		s.end("a", status.Error(codes.Internal, "broken"))
		s.say("c", serving)
		r.up(each("a", "b", "c")...)
		r.wantServing("broken", "b", "c")
		time.Sleep(10 * time.Minute)
		began := s.began("a")
		gaps := gapsOf(began)
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			want *= time.Second
			if gaps[i] < want*79/100 || gaps[i] > want*121/100 {
				t.Errorf("gap %d is %v, want about %v", i, gaps[i], want)
			}
		}
		// A message resets it. Where each stream ends after one, there is one a second.
		s.say("a", serving)
		time.Sleep(time.Minute)
		n := len(s.began("a"))
		time.Sleep(time.Minute)
		if more := len(s.began("a")) - n; more < 55 || more > 61 {
			t.Errorf("%d streams in a minute, want one a second", more)
		}
		s.end("a", nil)
		time.Sleep(2 * time.Second)
		r.settle()
		r.wantServing("well", "a", "b", "c")
	})
}

func gapsOf(began []time.Time) (gaps []time.Duration) {
	for i := 1; i < len(began); i++ {
		gaps = append(gaps, began[i].Sub(began[i-1]))
	}
	return gaps
}

// A wrapper of a parent's that does not offer calls, or the fake's: there is nobody to ask.
func TestConnectionsThatOfferNoCallsAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, watched)
		r.up(each("a", "b")...)
		r.wantServing("both", "a", "b")
		time.Sleep(time.Minute)
		r.wantServing("later", "a", "b")
		if w := r.policy.warnings.list(); len(w) != 1 || !strings.Contains(w[0], "hides") {
			t.Errorf("warnings %q, want one", w)
		}
	})
}

func TestConfigsThatChangeKeepConnectionsAndAskAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		s.say("a", notServing)
		s.say("b", serving)
		s.say("c", serving)
		r.up(each("a", "b", "c")...)
		r.wantServing("watched", "b", "c")
		change := func(config string) {
			t.Helper()
			r.config = parse(t, config)
			r.up(r.list...)
		}
		change(strings.Replace(watched, `"timeout"`, `"service": "x", "timeout"`, 1))
		if n := len(s.began("a")); n != 2 || s.open() != 3 {
			t.Errorf("%d streams of a, %d open, want another one for another service", n, s.open())
		}
		change(strings.Replace(watched, `"timeout"`, `"service": "x", "timeout"`, 1))
		if n := len(s.began("a")); n != 2 {
			t.Errorf("%d streams of a, want none more for the same config", n)
		}
		r.wantServing("another service", "b", "c")
		for _, a := range []string{"a", "b", "c"} {
			s.mute(a)
		}
		change(strings.Replace(watched, `"timeout"`, `"service": "y", "timeout"`, 1))
		r.wantServing("a service that says nothing yet", "b", "c")
		r.up(each("a", "b", "c", "d")...)
		r.wantServing("a new one that says nothing", "b", "c")
		r.up(each("a", "b", "c")...)
		r.up(each("a", "b", "c", "d")...)
		change(`{"policy": "round_robin", "outlier": {"mode": "off"}}`) // which has no ramps
		r.wantServing("no checks", "a", "b", "c", "d")
		s.say("a", notServing)
		s.say("b", serving)
		s.say("c", serving)
		s.say("d", serving)
		if s.open() != 0 {
			t.Errorf("%d streams without checks", s.open())
		}
		change(watched)
		r.wantServing("watched again", "b", "c", "d")
		if r.opened != 5 {
			t.Errorf("%d connections, want three, and one each time that d came", r.opened)
		}
	})
}

// What endpoints say as soon as they are asked must not come before anybody knows that they are checked.
func TestWhatIsSaidAtOnceIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, ``)
		s.say("a", notServing)
		r.up(each("a", "b", "c")...)
		r.policy.calls.Lock()
		if err := r.policy.setHealth(&evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC}); err != nil {
			t.Fatal(err)
		}
		r.policy.refollow()
		r.policy.calls.Unlock()
		r.settle()
		r.wantStanding("a", evenkeel.Failing, evenkeel.Checks)
	})
}

// Checks that are no longer in force may be about to say something when others take their place.
func TestWhatFormerChecksSayCountsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		r.policy.opts.Dialer = refuse
		s.say("a", serving)
		r.up(at("a"))
		late := []evenkeel.StateChange{{ID: "a", State: evenkeel.Failing, Source: evenkeel.Checks}}
		for _, config := range []string{`{"health": {"protocol": "tcp"}}`, `{}`, watched, ``} {
			former := r.policy.term
			r.config = parse(t, config)
			r.up(at("a"))
			before := r.stats("a").State
			r.policy.checked(former, late)
			if got := r.stats("a").State; got != before {
				t.Errorf("%s: %v, want %v as before", config, got, before)
			}
		}
		r.policy.Close()
		r.policy.checked(r.policy.term, late)
	})
}

func TestOnlySelectedEndpointsAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, `{"health": {"protocol": "grpc"}, "subset": {"size": 3, "seed": 7}}`)
		names := strings.Split("abcdefghij", "")
		for _, a := range names {
			s.say(a, serving)
		}
		r.up(each(names...)...)
		asked := 0
		for _, a := range names {
			asked += len(s.began(a))
		}
		if asked != 3 || s.open() != 3 {
			t.Errorf("%d endpoints were asked, %d streams are open, want 3", asked, s.open())
		}
	})
}

// In whatever phase it is closed, nothing is left that runs, or asks.
func TestNothingIsAskedAfterClose(t *testing.T) {
	for _, config := range []string{watched, `{"health": {"protocol": "tcp"}}`, `{"health": {"protocol": "http", "path": "/ready"}}`} {
		for _, phase := range phases {
			t.Run(config+"/"+phase.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, s := newWatchedRig(t, config)
					r.policy.opts.Dialer = refuse
					phase.enter(r)
					r.policy.Close()
					synctest.Wait()
					if n := s.open(); n != 0 {
						t.Errorf("%d streams are open", n)
					}
					n := len(s.began("a"))
					r.settle()
					time.Sleep(time.Hour)
					if len(s.began("a")) != n {
						t.Error("asked after Close")
					}
				}) // which waits for every goroutine
			})
		}
	}
}

// refuse is a dialer.
func refuse(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }
