package grpcbalancer

import (
	"testing"
	"testing/synctest"
)

// One that waits and leaves is not counted among those who wait.
func TestWaitingEndsWhereTheEndpointLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, watched)
		s.say("a", serving)
		s.say("b", serving)
		r.up(each("a", "b")...)
		for _, name := range []string{"mute", "mute too", "mute"} {
			r.up(each("a", "b", name)...)
			r.wantServing(name+" joins", "a", "b")
			checkHeld(t, r)
			r.up(each("a", "b")...)
			checkHeld(t, r)
		}
	})
}

// A call that found nobody waits for the next picker, which nothing but the check brings.
func TestCallsThatWaitAreWokenByAPassedCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newWatchedRig(t, `{"outlier": {"panic": {"fail_fast": true}}, "health": {"protocol": "grpc"}}`)
		s.say("a", serving)
		r.up(at("a"))
		s.say("a", notServing)
		r.settle()
		if _, err := r.pick(); err == nil {
			t.Fatal("a call went to an endpoint that does not serve")
		}
		before := r.publications()
		s.say("a", serving)
		r.settle()
		if r.publications() == before {
			t.Error("nobody was woken")
		}
		_, done := r.picked()
		done(succeeded)
	})
}
