package grpcbalancer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
)

const updates = 1000

// fleetOf is a list of endpoints that a test changes at random.
type fleetOf struct {
	rnd  *rand.Rand
	list []resolver.Endpoint
	next int
}

func newFleet(rnd *rand.Rand, n int) *fleetOf {
	f := &fleetOf{rnd: rnd}
	for range n {
		f.add()
	}
	return f
}

func (f *fleetOf) add() {
	f.list = append(f.list, at(fmt.Sprintf("e%d", f.next), fmt.Sprintf("e%d'", f.next)))
	f.next++
}

func (f *fleetOf) any() int { return f.rnd.IntN(len(f.list)) }

func (f *fleetOf) remove() {
	if len(f.list) > 3 {
		i := f.any()
		f.list = append(f.list[:i:i], f.list[i+1:]...)
	}
}

func (f *fleetOf) reorder() {
	f.rnd.Shuffle(len(f.list), func(i, j int) { f.list[i], f.list[j] = f.list[j], f.list[i] })
	a := append([]resolver.Address(nil), f.list[0].Addresses...)
	f.list[0].Addresses = append(a[1:], a[0])
}

func (f *fleetOf) reweigh() {
	i := f.any()
	f.list[i] = weight.Set(f.list[i], weight.EndpointInfo{Weight: f.rnd.Uint32N(4)})
}

func (f *fleetOf) relabel() {
	type key struct{}
	f.list[f.any()].Attributes = attributes.New(key{}, f.rnd.Int())
}

// current returns a copy of the list; the policy must not depend on the original.
func (f *fleetOf) current() []resolver.Endpoint { return append([]resolver.Endpoint(nil), f.list...) }

// change makes one random change to the list.
func (f *fleetOf) change() {
	switch f.rnd.IntN(6) {
	case 0:
		f.add()
	case 1:
		f.remove()
	case 2:
		f.reorder()
	case 3:
		f.reweigh()
	case 4:
		f.relabel()
	default: // the same list again
	}
}

// outcomes are ends of attempts that teach different things.
var outcomes = []balancer.DoneInfo{
	succeeded, succeeded, succeeded, phantom,
	{Err: status.Error(codes.Unavailable, "x"), BytesSent: true},
	{Err: status.Error(codes.DeadlineExceeded, "x"), BytesSent: true},
	{Err: status.Error(codes.NotFound, "x"), BytesSent: true, BytesReceived: true},
}

// What is known of an endpoint that stays is the same to the last bit before and
// after each of a thousand updates, with attempts open across them.
func TestRecordsSurviveEveryUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		// So many of the outcomes are timeouts that there would be a limit.
		r := newSeededRig(t, `{"limit": {"disabled": true}}`, rnd.Uint64)
		f := newFleet(rnd, 8)
		r.up(f.current()...)
		// A sweep may change what is known at an instant, by what it finds out about the
		// pool: it is done before each comparison, and not within.
		r.policy.sweeper.Stop()
		var open []func(balancer.DoneInfo)
		end := func(i int) {
			open[i](outcomes[rnd.IntN(len(outcomes))])
			open = append(open[:i], open[i+1:]...)
		}
		for range updates {
			for range 5 {
				_, done := r.picked()
				open = append(open, done)
			}
			time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
			for len(open) > 12 {
				end(rnd.IntN(len(open)))
			}
			r.settle()
			r.policy.pool.Sweep(time.Now())
			before := statsOf(r.policy)
			r.changeAnything(f)
			comparable := func(s evenkeel.EndpointStats) evenkeel.EndpointStats {
				// What the owner says may change.
				s.Weight, s.State, s.Source, s.Available, s.Ejection.Standing = 0, 0, 0, false, 0
				return s
			}
			for key, now := range statsOf(r.policy) {
				if was, stayed := before[key]; stayed && comparable(was) != comparable(now) {
					t.Fatalf("%s was %+v\nand is %+v", key, was, now)
				}
			}
			r.passWindow()
			r.forget()
		}
		for len(open) > 0 {
			end(0)
		}
		for key, s := range statsOf(r.policy) {
			if s.InFlight != 0 || s.Leaked != 0 {
				t.Errorf("%s has %d in flight at rest, %d leaked", key, s.InFlight, s.Leaked)
			}
		}
		r.policy.Close()
		if n := r.openConns(); n != 0 {
			t.Errorf("%d connections are open after Close", n)
		}
	})
}

// changeAnything makes one change, and no time passes.
func (r *rig) changeAnything(f *fleetOf) {
	switch f.rnd.IntN(8) {
	case 0: // a connection is lost, and made again
		e := f.list[f.any()]
		for _, a := range e.Addresses {
			if c := r.conn(a.Addr); c != nil {
				c.becomes(connectivity.Idle, nil)
			}
		}
		r.settle()
		return
	case 1:
		r.config = parse(r.t, []string{`{"limit": {"disabled": true}}`, `{"policy": {"p2c": {}}, "limit": {"disabled": true}}`}[f.rnd.IntN(2)])
	}
	f.change()
	r.update(f.current()...)
}

// The same under fire: other endpoints come and go and are picked all the time, while
// those that are watched have attempts open and no new ones.
func TestUpdatesUnderConcurrentPicks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	r := &rig{fakeChannel: newFakeChannel(), t: t, config: parse(t, "")}
	r.policy = builder{}.Build(r.fakeChannel, balancer.BuildOptions{}).(*policy)
	defer r.policy.Close()
	watched := []string{"w0", "w1", "w2"}
	open := r.watch(watched)
	r.policy.sweeper.Stop() // see TestRecordsSurviveEveryUpdate
	instant := time.Now()
	was := r.statsAt(instant)

	var stop atomic.Bool
	var pickers sync.WaitGroup
	for range 4 {
		pickers.Go(func() {
			for i := 0; !stop.Load(); i++ {
				r.pickAndEnd(i)
			}
		})
	}
	f := newFleet(rnd, 6)
	for range updates {
		f.change()
		list := append(f.current(), weight.Set(at(watched[0]), weight.EndpointInfo{Weight: rnd.Uint32N(5)}), at(watched[1]), at(watched[2]))
		rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if err := r.send(list); err != nil {
			t.Fatal(err)
		}
		r.pump()
		if c := r.conn(fmt.Sprintf("e%d", f.next-1)); c != nil {
			c.becomes(connectivity.Idle, nil)
		}
		r.pump()
		now := r.statsAt(instant)
		for _, w := range watched {
			a, b := was[w], now[w]
			if a.InFlight != b.InFlight || a.Success != b.Success || a.Latency != b.Latency || a.Picks != b.Picks {
				t.Fatalf("%s was %+v\nand is %+v", w, a, b)
			}
		}
		r.forget()
	}
	stop.Store(true)
	pickers.Wait()
	for _, done := range open {
		done(succeeded)
	}
	for key, s := range statsOf(r.policy) {
		if s.InFlight != 0 {
			t.Errorf("%s has %d in flight at rest", key, s.InFlight)
		}
	}
}

// watch makes the policy learn about endpoints, leaves attempts open on them, and
// takes their connections away for good. It returns the ends of the attempts.
func (r *rig) watch(names []string) (open []func(balancer.DoneInfo)) {
	r.t.Helper()
	if err := r.send(each(names...)); err != nil {
		r.t.Fatal(err)
	}
	r.pump()
	for i, name := range names {
		for range i + 1 {
			r.pickedOn(name)(balancer.DoneInfo{Err: errors.New("x"), BytesSent: true})
			r.pickedOn(name)(succeeded)
			open = append(open, r.pickedOn(name))
		}
	}
	for _, name := range names {
		r.conn(name).becomes(connectivity.TransientFailure, errors.New("gone"))
	}
	r.pump()
	return open
}

// pickAndEnd is a caller's attempt, if there is anybody to pick.
func (r *rig) pickAndEnd(i int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result, err := r.latest().Picker.Pick(balancer.PickInfo{Ctx: ctx})
	if err != nil {
		return
	}
	if i%5 == 0 {
		cancel()
	}
	result.Done(outcomes[i%len(outcomes)])
}

func (r *rig) statsAt(instant time.Time) map[string]evenkeel.EndpointStats {
	all := map[string]evenkeel.EndpointStats{}
	for _, s := range r.policy.pool.StatsAt(instant).Endpoints {
		all[s.ID] = s
	}
	return all
}
