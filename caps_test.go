package evenkeel_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

func capped(most int, p evenkeel.Policy) evenkeel.Config {
	return evenkeel.Config{Policy: p, Limit: evenkeel.LimitConfig{PerEndpoint: most}}
}

// take begins a request that has to find somebody.
func take(tb testing.TB, p *evenkeel.Pool[int], r evenkeel.Request) evenkeel.Pick[int] {
	tb.Helper()
	k, err := p.PickAt(origin, r)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// allFull fails unless a request is refused because every endpoint has as many as it may.
func allFull(tb testing.TB, p *evenkeel.Pool[int], most int) {
	tb.Helper()
	k, err := p.PickAt(origin, evenkeel.Request{})
	over, ok := errors.AsType[*evenkeel.OverloadError](err)
	if !ok || !errors.Is(err, evenkeel.ErrOverloaded) || over.Limit != most || !over.Endpoint {
		tb.Fatalf("%v, want an OverloadError of endpoints that may have %d", err, most)
	}
	if k.Record() != nil {
		tb.Error("a refusal is a pick")
	}
}

// No race lets one more begin on an endpoint than it may have. Run with -race.
func TestNoRaceBeginsMoreThanAnEndpointMayHave(t *testing.T) {
	for _, policy := range []evenkeel.Policy{picker.RoundRobin{}, picker.P2C{Signal: picker.InFlight}, picker.Adaptive{}, picker.Hash{}} {
		const most, n = 3, 5
		p, err := evenkeel.NewPool[int](capped(most, policy), evenkeel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Update(members(n)); err != nil {
			t.Fatal(err)
		}
		var inFlight, peak [n]atomic.Int64
		var refused atomic.Uint64
		var wg sync.WaitGroup
		for w := range 64 {
			wg.Go(func() {
				for i := range 100 {
					k, err := p.Pick(evenkeel.Request{Kind: picker.Kind((w + i) % 3), HasKey: true, Key: uint64(w) << 50})
					if err != nil {
						if !errors.Is(err, evenkeel.ErrOverloaded) {
							t.Error(err)
						}
						refused.Add(1)
						continue
					}
					now := inFlight[k.Handle()].Add(1)
					for most := peak[k.Handle()].Load(); now > most && !peak[k.Handle()].CompareAndSwap(most, now); most = peak[k.Handle()].Load() {
					}
					runtime.Gosched()
					inFlight[k.Handle()].Add(-1)
					k.Done(evenkeel.Result{Outcome: evenkeel.Success})
				}
			})
		}
		wg.Wait()
		for i := range n {
			if got := peak[i].Load(); got != most {
				t.Errorf("%T: endpoint %d had %d in flight, want %d of 64 at most and at times", policy, i, got, most)
			}
		}
		s := p.Stats()
		if s.Full != refused.Load() {
			t.Errorf("%T: %d refused, Stats says %d", policy, refused.Load(), s.Full)
		}
		for range n * most { // all places are free again
			if _, err := p.Pick(evenkeel.Request{}); err != nil {
				t.Fatalf("%T: at rest: %v", policy, err)
			}
		}
	}
}

// Who finds an endpoint full goes to another, and is refused when all are, whatever the policy.
func TestFullEndpointsAreLeftOut(t *testing.T) {
	for _, tc := range allPolicies {
		p := newPool(t, capped(2, tc.policy), 4)
		var picks []evenkeel.Pick[int]
		got := map[int]int{}
		for range 8 {
			k := take(t, p, evenkeel.Request{})
			got[k.Handle()]++
			picks = append(picks, k)
		}
		for i := range 4 {
			if got[i] != 2 {
				t.Errorf("%s: %v of 8 requests, want 2 each", tc.name, got)
			}
		}
		allFull(t, p, 2)
		allFull(t, p, 2)
		at := picks[5].Handle()
		picks[5].DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
		picks[5].DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success}) // does nothing
		if k := take(t, p, evenkeel.Request{}); k.Handle() != at {
			t.Errorf("%s: %d gets the request for which %d has room", tc.name, k.Handle(), at)
		}
		allFull(t, p, 2)
		s := p.StatsAt(origin)
		turned := uint64(0)
		for _, e := range s.Endpoints {
			turned += e.Full
			if e.InFlight != 2 {
				t.Errorf("%s: %s has %d in flight, want 2", tc.name, e.ID, e.InFlight)
			}
		}
		if s.Full != 3 || turned < 3 || s.Refused != 0 {
			t.Errorf("%s: %d refused, %d found their endpoint full, %d beyond the pool's limit; want 3, as many or more, none", tc.name, s.Full, turned, s.Refused)
		}
	}
}

// A request that has been somewhere goes there again only if nobody else has room.
func TestFullEndpointsAndThoseToAvoid(t *testing.T) {
	p := newPool(t, capped(1, picker.Random{}), 3)
	a := take(t, p, evenkeel.Request{})
	tried := p.StatsAt(origin)
	b := take(t, p, evenkeel.Request{})
	avoid := evenkeel.Request{Avoid: []*evenkeel.Record{b.Record()}}
	b.DoneAt(origin, evenkeel.Result{})
	c := take(t, p, avoid)
	if c.Handle() == b.Handle() {
		t.Errorf("it went where it had been, with room elsewhere: %+v", tried)
	}
	if d := take(t, p, avoid); d.Handle() != b.Handle() {
		t.Errorf("it went to %d, which is full", d.Handle())
	}
	a.DoneAt(origin, evenkeel.Result{})
}

// Keys of a full endpoint go to their next candidates, where they go when it is not available, and come back.
func TestKeysOfAFullEndpointGoToTheirNextCandidate(t *testing.T) {
	for _, table := range []picker.HashTable{picker.Maglev, picker.Ring, picker.Rendezvous} {
		p := newPool(t, capped(1, picker.Hash{Table: table, Unbounded: true}), 6)
		for key := range uint64(20) {
			r := evenkeel.Request{HasKey: true, Key: key * 0x9e3779b97f4a7c15}
			owner := take(t, p, r)
			id := fmt.Sprintf("e%d", owner.Handle())
			next := take(t, p, r)
			third := take(t, p, r)
			next.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
			third.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
			p.SetState(id, evenkeel.NotReady)
			want := take(t, p, r)
			if next.Handle() != want.Handle() || third.Handle() == next.Handle() {
				t.Errorf("%v: key %d goes to %d and %d, and to %d when its owner is away", table, key, next.Handle(), third.Handle(), want.Handle())
			}
			want.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
			p.SetState(id, evenkeel.Ready)
			owner.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
			again := take(t, p, r)
			if again.Handle() != owner.Handle() {
				t.Errorf("%v: key %d is at %d, want its owner %d, which has room", table, key, again.Handle(), owner.Handle())
			}
			again.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
		}
	}
}

// Streams count until they end, and not from their first byte on.
func TestStreamsCountAgainstAnEndpoint(t *testing.T) {
	p := newPool(t, capped(1, nil), 1)
	for range 3 {
		k := take(t, p, evenkeel.Request{Kind: picker.Stream})
		k.FirstByteAt(origin)
		allFull(t, p, 1)
		k.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Canceled})
	}
}

// The number may change while requests are in flight: those beyond a lower one end as usual, and are
// in nobody's place afterwards.
func TestNumberForEachEndpointChangesWhileRequestsAreInFlight(t *testing.T) {
	p := newPool(t, capped(3, picker.RoundRobin{}), 1)
	set := func(most int) {
		t.Helper()
		if err := p.SetConfigAt(origin, capped(most, picker.RoundRobin{})); err != nil {
			t.Fatal(err)
		}
	}
	var picks []evenkeel.Pick[int]
	fill := func(n, most int) {
		t.Helper()
		for range n {
			picks = append(picks, take(t, p, evenkeel.Request{}))
		}
		allFull(t, p, most)
	}
	end := func(n int) {
		for range n {
			picks[0].DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
			picks = picks[1:]
		}
	}
	fill(3, 3)
	set(1)
	allFull(t, p, 1)
	end(2)
	allFull(t, p, 1)
	end(1)
	fill(1, 1)
	set(4)
	fill(3, 4)
	set(0)
	picks = append(picks, take(t, p, evenkeel.Request{}), take(t, p, evenkeel.Request{}))
	set(5) // the two that began without a number do not count
	fill(1, 5)
	end(len(picks))
	fill(5, 5)
	if s := p.StatsAt(origin); s.Endpoints[0].InFlight != 5 {
		t.Errorf("%d in flight, want 5", s.Endpoints[0].InFlight)
	}
}

// An endpoint that leaves the list and comes back meets what it has in flight; so does one that is changed
// otherwise.
func TestEndpointsThatComeBackMeetTheirOwnRequests(t *testing.T) {
	p := newPool(t, capped(2, picker.Random{}), 1)
	a, b := take(t, p, evenkeel.Request{}), take(t, p, evenkeel.Request{})
	now := origin
	for range 3 {
		for _, list := range [][]evenkeel.Member[int]{nil, members(1)} {
			now = now.Add(70 * time.Second) // longer than what is idle is kept, and not as long as what leaks is believed
			if err := p.UpdateAt(now, list); err != nil {
				t.Fatal(err)
			}
		}
		allFull(t, p, 2)
	}
	p.Drain("e0")
	a.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	p.Resume("e0")
	a = take(t, p, evenkeel.Request{})
	allFull(t, p, 2)
	a.DoneAt(now, evenkeel.Result{})
	b.DoneAt(now, evenkeel.Result{})
	for range 2 {
		take(t, p, evenkeel.Request{})
	}
	allFull(t, p, 2)
}

// Requests that were never ended do not keep an endpoint shut for ever.
func TestLeakedRequestsMakeRoomAgain(t *testing.T) {
	p := newPool(t, capped(2, nil), 1)
	take(t, p, evenkeel.Request{})
	take(t, p, evenkeel.Request{})
	allFull(t, p, 2)
	now := origin
	for range 3 {
		now = now.Add(picker.LeakAfter)
		p.Sweep(now)
	}
	a, err := p.PickAt(now, evenkeel.Request{})
	if err != nil {
		t.Fatalf("nobody believes in the two: %v, %+v", err, p.StatsAt(now).Endpoints)
	}
	if _, err := p.PickAt(now, evenkeel.Request{}); err != nil {
		t.Error(err)
	}
	if _, err := p.PickAt(now, evenkeel.Request{}); err == nil {
		t.Error("a third one began")
	}
	a.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
}

// A pick, one that goes elsewhere, and one that is refused allocate nothing.
func TestBoundedPicksDoNotAllocate(t *testing.T) {
	for _, policy := range []evenkeel.Policy{picker.RoundRobin{}, picker.P2C{}, picker.Adaptive{}, picker.Hash{}, picker.Hash{Table: picker.Ring}, picker.Hash{Table: picker.Rendezvous}} {
		p := newPool(t, capped(1, policy), 10)
		r := evenkeel.Request{HasKey: true, Key: 1 << 60}
		for taken := range 11 {
			if n := testing.AllocsPerRun(100, func() {
				k, err := p.PickAt(origin, r)
				if (err != nil) != (taken == 10) {
					t.Fatal(err)
				}
				k.DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
			}); n != 0 {
				t.Errorf("%T, %d of 10 full: %v allocations", policy, taken, n)
			}
			if taken < 10 {
				take(t, p, r)
			}
		}
	}
}

func TestNumberForEachEndpointIsValidated(t *testing.T) {
	for _, most := range []int{-1, 1<<30 + 1} {
		_, err := evenkeel.NewPool[int](capped(most, nil), evenkeel.Options{})
		if want := fmt.Sprintf("PerEndpoint is %d, want 0 to %d", most, 1<<30); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	p := newPool(t, capped(1<<30, nil), 1)
	take(t, p, evenkeel.Request{})
}
