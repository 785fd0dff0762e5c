package grpcbalancer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// Connections, lists, configs and what endpoints say change at random: at the end the calls go where they should,
// each connection that is in use is asked once, and nobody waits for anybody.
func TestWatchesSurviveRandomEvents(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { watchRandomEvents(t, rand.New(rand.NewPCG(seed, 3))) })
		})
	}
}

func watchRandomEvents(t *testing.T, rnd *rand.Rand) {
	r, s := newWatchedRig(t, watched)
	r.manual = true
	names := strings.Split("abcdef", "")
	configs := []string{watched, watched, strings.Replace(watched, `"timeout"`, `"service": "x", "timeout"`, 1),
		`{"policy": "round_robin", "outlier": {"mode": "off"}}`}
	for range 300 {
		name := names[rnd.IntN(len(names))]
		switch c := r.conn(name); {
		case rnd.IntN(8) == 0:
			rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			r.config = parse(t, configs[rnd.IntN(len(configs))])
			_ = r.send(each(names[:rnd.IntN(len(names)+1)]...))
		case rnd.IntN(3) == 0:
			s.say(name, []healthStatus{serving, notServing}[rnd.IntN(2)])
		case rnd.IntN(4) == 0:
			s.mute(name)
		case rnd.IntN(10) == 0:
			s.end(name, []error{nil, nil, status.Error(codes.Internal, "x"), status.Error(codes.Unimplemented, "x")}[rnd.IntN(4)])
		case c == nil:
		default:
			r.settle() // a connection that is READY does not become it
			next := []connectivity.State{connectivity.Idle, connectivity.Connecting, connectivity.Ready,
				connectivity.TransientFailure}[rnd.IntN(4)]
			if next != connectivity.Ready || !r.isReady(name) {
				c.becomes(next, errors.New("connection"))
			}
		}
		switch rnd.IntN(3) {
		case 0:
			r.settle()
		case 1:
			r.passWindow()
			checkHeld(t, r)
		}
		if rnd.IntN(20) == 0 {
			time.Sleep(time.Second)
		}
	}
	for _, name := range names {
		s.end(name, nil)
		s.say(name, serving)
	}
	r.manual = false
	r.config = parse(t, watched)
	r.up(each(names...)...)
	for _, name := range names { // who did not know the service is asked anew
		r.conn(name).becomes(connectivity.Idle, nil)
	}
	r.settle()
	slices.Sort(names)
	r.wantServing("at the end", names...)
	if n := s.open(); n != len(names) {
		t.Errorf("%d streams are open, want one for each endpoint", n)
	}
	r.policy.Close()
	if n := s.open(); n != 0 {
		t.Errorf("%d streams after Close", n)
	}
}

// isReady reports whether an endpoint has a connection.
func (r *rig) isReady(name string) bool {
	e := r.policy.children[name]
	return e != nil && e.is(connectivity.Ready)
}

// checkHeld compares the count of those that are held with who is, and finds nobody held in vain.
func checkHeld(t *testing.T, r *rig) {
	t.Helper()
	r.policy.mu.Lock()
	defer r.policy.mu.Unlock()
	held, ready := 0, 0
	for _, e := range r.policy.list {
		if e.is(connectivity.Ready) {
			ready++
			if e.held {
				held++
			}
		}
	}
	if held != r.policy.held || held > 0 && held == ready {
		t.Fatalf("%d of %d are held and %d counted", held, ready, r.policy.held)
	}
}
