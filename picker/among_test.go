package picker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// amongPolicies are rules of each kind, and those that hash with and without a bound.
var amongPolicies = []picker.Policy{picker.RoundRobin{}, picker.Random{}, picker.P2C{Signal: picker.InFlight}, picker.Adaptive{}, picker.EDF{},
	picker.WeightedRandom{}, picker.Hash{}, picker.Hash{Table: picker.Ring, Unbounded: true}, picker.Hash{Table: picker.Rendezvous, StickyKeys: 100}}

// The choice is an available endpoint that is accepted, if there is one, and one that was tried before only
// if there is no other. Nobody who is not available is asked.
func TestChoiceAmongThoseThatAreAccepted(t *testing.T) {
	for _, policy := range amongPolicies {
		t.Run(fmt.Sprintf("%T/%+v", policy, policy), func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 3))
			g, all := build(t, policy, endpoints(12), r.Uint64)
			for range 300 {
				available := []int32{}
				for i := range int32(12) {
					if r.IntN(3) > 0 {
						available = append(available, i)
					}
				}
				s := picker.NewSnapshot(all.Members(), available, policy, policy.Build(all.Members(), nil))
				accepts := r.Uint32() & r.Uint32()
				request := picker.Request{HasKey: r.IntN(2) == 0, Key: r.Uint64()}
				for range r.IntN(4) {
					request.Avoid = append(request.Avoid, s.Record(r.IntN(12)))
				}
				testChoiceAmong(t, s, request, available, func(i int) bool { return accepts>>i&1 != 0 })
			}
			g.Sweep(0)
		})
	}
}

func testChoiceAmong(t *testing.T, s *picker.Snapshot, r picker.Request, available []int32, accepts func(int) bool) {
	t.Helper()
	some, fresh := false, false
	for _, i := range available {
		if accepts(int(i)) {
			some = true
			fresh = fresh || !slices.Contains(r.Avoid, s.Record(int(i)))
		}
	}
	i, ok := s.ChooseAmong(r, 0, func(i int) bool {
		if !slices.Contains(available, int32(i)) {
			t.Errorf("%d of %v was asked", i, available)
		}
		return accepts(i)
	})
	switch {
	case ok != some:
		t.Fatalf("found: %v, there is one: %v", ok, some)
	case ok && !accepts(i):
		t.Errorf("%d was chosen, which was not accepted", i)
	case ok && fresh && slices.Contains(r.Avoid, s.Record(i)):
		t.Errorf("%d was chosen, which was tried before, and there are others", i)
	}
}

// A key goes to the endpoint that it goes to when the others are not available.
func TestKeysGoToTheirNextCandidateAmongThoseAccepted(t *testing.T) {
	for _, table := range []picker.HashTable{picker.Maglev, picker.Ring, picker.Rendezvous} {
		policy := picker.Hash{Table: table, Unbounded: true, Fallback: picker.Random{}}
		_, s := build(t, policy, endpoints(9), rand.New(rand.NewPCG(5, 4)).Uint64)
		r := rand.New(rand.NewPCG(5, 5))
		for range 200 {
			accepted := r.Perm(9)[:1+r.IntN(9)]
			slices.Sort(accepted)
			available := make([]int32, len(accepted))
			for k, i := range accepted {
				available[k] = int32(i)
			}
			request := picker.Request{HasKey: true, Key: r.Uint64()}
			few := picker.NewSnapshot(s.Members(), available, policy, policy.Build(s.Members(), nil))
			want, err := few.Choose(request, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := s.ChooseAmong(request, 0, func(i int) bool { return slices.Contains(accepted, i) }); !ok || got != want {
				t.Errorf("%v: among %v a key goes to %d, and to %d when the others are not available", table, accepted, got, want)
			}
		}
	}
}

// A candidate that asked to be left alone is passed by while there are others, and not otherwise.
func TestKeysPassByWhoAskedToBeLeftAlone(t *testing.T) {
	_, s := build(t, picker.Hash{Fallback: picker.P2C{}}, endpoints(5), rand.New(rand.NewPCG(5, 7)).Uint64)
	now := ms
	for i := range 5 { // everybody has answered
		p := s.Begin(i, picker.Request{}, now)
		p.Done(now+ms, picker.Result{Outcome: picker.Success})
	}
	now += 2 * ms
	r := picker.Request{HasKey: true, Key: 1 << 62}
	owner, err := s.Choose(r, now)
	if err != nil {
		t.Fatal(err)
	}
	notOwner := func(i int) bool { return i != owner }
	next, _ := s.ChooseAmong(r, now, notOwner)
	p := s.Begin(next, r, now)
	p.Done(now+ms, picker.Result{Outcome: picker.Overload})
	now += 2 * ms
	if i, ok := s.ChooseAmong(r, now, notOwner); !ok || i == next {
		t.Errorf("%d is next, which asked to be left alone", i)
	}
	if i, ok := s.ChooseAmong(r, now, func(i int) bool { return i == next }); !ok || i != next {
		t.Errorf("%d, %v, although there is nobody else", i, ok)
	}
}

// Choose and Start are Pick in two steps: they leave the same behind.
func TestChooseAndStartArePick(t *testing.T) {
	for _, policy := range amongPolicies {
		for _, kind := range []picker.Kind{picker.Unary, picker.Stream, picker.UnknownKind} {
			whole, one := build(t, policy, endpoints(5), rand.New(rand.NewPCG(5, 6)).Uint64)
			halves, two := build(t, policy, endpoints(5), rand.New(rand.NewPCG(5, 6)).Uint64)
			now := int64(0)
			for n := range 50 {
				now += ms
				r := picker.Request{Kind: kind, HasKey: n%2 == 0, Key: uint64(n) * 0x9e3779b97f4a7c15}
				p, i, err := one.Pick(r, now)
				j, err2 := two.Choose(r, now)
				if err != nil || err2 != nil || i != j {
					t.Fatalf("%T: %d, %v by Pick, %d, %v by Choose", policy, i, err, j, err2)
				}
				var q picker.Pick
				two.Start(&q, j, kind, now)
				if p.Start() != q.Start() || p.Learns() != q.Learns() || q.Record() != two.Record(j) {
					t.Fatalf("%T, %v: %+v by Pick, %+v by Start", policy, kind, p, q)
				}
				if n%3 > 0 {
					p.Done(now+ms, picker.Result{Outcome: picker.Success})
					q.Done(now+ms, picker.Result{Outcome: picker.Success})
				}
				for k := range 5 {
					a, b := one.Record(k), two.Record(k)
					if a.Picks() != b.Picks() || a.InFlight() != b.InFlight() || a.Streams() != b.Streams() {
						t.Fatalf("%T, %v: endpoint %d differs after %d", policy, kind, k, n)
					}
				}
			}
			whole.Sweep(now)
			halves.Sweep(now)
			p, i, err := one.Pick(picker.Request{Kind: kind}, 0) // as for a policy that needs no time
			var q picker.Pick
			two.Start(&q, i, kind, 0)
			if err != nil || p.Start() != q.Start() {
				t.Errorf("%T, %v: without an instant %d by Pick, %d by Start, %v", policy, kind, p.Start(), q.Start(), err)
			}
			if a, b := whole.Ended(), halves.Ended(); a != b || a != 33 || whole.Ended() != 0 {
				t.Errorf("%T, %v: %d and %d have ended, want 33, and none afterwards", policy, kind, a, b)
			}
		}
	}
}

// Endpoints that left count until their last request has ended.
func TestEndsOnFormerMembersAreCounted(t *testing.T) {
	g, s := build(t, picker.RoundRobin{}, endpoints(2), nil)
	a, b := pickAt(t, s, picker.Request{}, 1), pickAt(t, s, picker.Request{Kind: picker.Stream}, 1)
	if _, err := g.Members(nil, 2); err != nil {
		t.Fatal(err)
	}
	a.Done(3, picker.Result{})
	if n := g.Ended(); n != 1 {
		t.Errorf("%d have ended, want 1", n)
	}
	b.Done(3, picker.Result{})
	if n := g.Ended(); n != 1 {
		t.Errorf("%d have ended since, want 1", n)
	}
}
