package grpcbalancer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// Lists, connections and configs change at random for a while: a connection is open to exactly
// those that are selected, the pool knows who of them is READY, and nothing is left at the end.
func TestChildrenAreThoseSelectedThroughEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(61, 62))
		r := newRig(t, fourOf)
		all := manyAt(40)
		var done []func(balancer.DoneInfo)
		var lost []string
		for step := range 300 {
			switch rnd.IntN(5) {
			case 0, 1:
				rnd.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
				r.update(slices.Clone(all[:10+rnd.IntN(30)])...)
			case 2:
				r.config = parse(t, []string{`{}`, fourOf, `{"subset": {"client_index": 1, "size": 6}}`, `{"subset": {"size": 7, "seed": 2}}`}[rnd.IntN(4)])
				r.update(r.list...)
			case 3:
				lost = nil
				r.back()
				for range rnd.IntN(40) {
					lost = append(lost, fmt.Sprintf("s%d", rnd.IntN(40)))
				}
				r.lose(lost...)
			case 4:
				if result, err := r.pick(); err == nil {
					done = append(done, result.Done)
				}
			}
			r.passing(time.Duration(rnd.IntN(40)) * 100 * time.Millisecond)
			r.passWindow()
			wantChildrenSelected(t, r, step)
		}
		for _, d := range done {
			d(succeeded)
		}
		r.back()
		r.config = parse(t, `{}`)
		r.up(all...)
		r.passing(3 * time.Minute)
		for id, s := range statsOf(r.policy) {
			if s.InFlight != 0 || s.State != 0 {
				t.Errorf("%s: %+v, want it READY and at rest", id, s)
			}
		}
	})
}

func wantChildrenSelected(t *testing.T, r *rig, step int) {
	t.Helper()
	r.policy.calls.Lock()
	defer r.policy.calls.Unlock()
	r.policy.mu.Lock()
	defer r.policy.mu.Unlock()
	var selected []string
	stats := r.policy.pool.Stats()
	for _, e := range stats.Endpoints {
		selected = append(selected, e.ID)
		if ready := r.policy.children[e.ID].is(connectivity.Ready); ready != (e.State == 0) {
			t.Fatalf("step %d: %s is READY: %v, and the pool has it as %v", step, e.ID, ready, e.State)
		}
	}
	slices.Sort(selected)
	if got := r.openAddrs(); !slices.Equal(got, selected) {
		t.Fatalf("step %d: connections to %v, want %v", step, got, selected)
	}
	if stats.Listed != len(r.list) || len(r.policy.children) != len(selected) || len(r.policy.listed) != len(r.list) {
		t.Fatalf("step %d: %d listed, %d children, %d endpoints, want %d, %d, %d", step,
			stats.Listed, len(r.policy.children), len(r.policy.listed), len(r.list), len(selected), len(r.list))
	}
	for key, e := range r.policy.listed {
		if r.policy.children[key] == nil && e.state.Load() != &unheard {
			t.Fatalf("step %d: %s has no child, and the state %v", step, key, e.state.Load())
		}
	}
	counts := [connectivity.Shutdown]int{}
	for _, e := range r.policy.children {
		counts[e.state.Load().ConnectivityState]++
	}
	if counts != r.policy.counts {
		t.Fatalf("step %d: the policy counts %v, want %v", step, r.policy.counts, counts)
	}
}

// Sweeps that select others meet updates, reports and the end from other goroutines.
func TestSweepsOfSubsetsOverlapWithAnything(t *testing.T) {
	config := parse(t, fourOf)
	for range 10 {
		c := newFakeChannel()
		var n atomic.Int64
		c.dial = func(string) error { // every third attempt
			if n.Add(1)%3 == 0 {
				return errors.New("refused")
			}
			return nil
		}
		p := builder{}.Build(c, balancer.BuildOptions{}).(*policy)
		update := func(n int) func() {
			state := stateOf(manyAt(n))
			state.BalancerConfig = config
			return func() { _ = p.UpdateClientConnState(state) }
		}
		update(40)()
		var all sync.WaitGroup
		for i, do := range []func(){
			update(40), update(30), c.pump, p.ExitIdle, p.sweep, func() { pickOnce(c) },
			func() {
				for _, e := range manyAt(40) {
					if c := c.conn(e.Addresses[0].Addr); c != nil {
						c.becomes(connectivity.Idle, nil)
					}
				}
			},
			func() { // as if it were later
				p.calls.Lock()
				defer p.calls.Unlock()
				p.pool.Sweep(time.Now().Add(time.Duration(n.Load()) * time.Second))
			},
		} {
			all.Go(func() {
				for round := range 30 {
					do()
					if i == 0 && round == 20 {
						p.Close()
					}
				}
			})
		}
		all.Wait()
		c.pump()
		if n := c.openConns(); n != 0 {
			t.Fatalf("%d connections are open after Close", n)
		}
	}
}
