package picker

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/hash"
)

// inFlight returns what is in flight on each member.
func (c *hashClient) inFlight() []int64 {
	var list []int64
	for i := range c.m.Len() {
		list = append(list, c.m.Record(i).InFlight())
	}
	return list
}

// total returns what the pool believes to be in flight, summed now.
func (c *hashClient) total() int64 { return c.g.shared.totals.Load().sum() }

// One key that gets everything fills its candidates one after the other, each to its bound and
// none beyond, and is back at its owner when that has room.
func TestHashHotKeyIsSharedByItsCandidates(t *testing.T) {
	for _, kind := range hashKinds {
		h := Hash{Table: kind, Fallback: Random{}}
		list := hashList(10, false)
		c := newHashClient(t, h, list)
		var open []Pick
		for range 200 {
			p, _ := c.pick(keyed(42))
			open = append(open, p)
		}
		loads := c.inFlight()
		if most := slices.Max(loads); most > 26 { // 1.25 · 201/10, by a total that may be old
			t.Errorf("%v: %d in flight on one endpoint, want at most 26: %v", kind, most, loads)
		}
		order := candidates(t, h, list, 42)
		if loads[order[0]] < loads[order[9]] {
			t.Errorf("%v: the owner has %d, the last candidate %d", kind, loads[order[0]], loads[order[9]])
		}
		for i := range open {
			open[i].Done(c.now, Result{Outcome: Success})
		}
		if _, i := c.pick(keyed(42)); i != order[0] {
			t.Errorf("%v: afterwards the key goes to %d, want %d", kind, i, order[0])
		}
	}
}

// Without a bound a key stays, whatever the load.
func TestHashUnboundedKeysStay(t *testing.T) {
	for _, kind := range hashKinds {
		c := newHashClient(t, Hash{Table: kind, Unbounded: true, Fallback: Random{}}, hashList(10, false))
		if c.policy.Needs() != 0 {
			t.Errorf("%v: it needs %b, want nothing", kind, c.policy.Needs())
		}
		_, first := c.pick(keyed(7))
		for range 500 {
			if _, i := c.pick(keyed(7)); i != first {
				t.Fatalf("%v: the key went to %d, want %d", kind, i, first)
			}
		}
	}
}

// The bars of bounded load, through the policy: with ten requests in flight an endpoint most
// keys are at home, nobody is above the bound, and without one endpoint nobody gets more than
// 1.6 times of what the others should.
func TestHashBoundedLoadStaysCloseToHome(t *testing.T) {
	const n, inFlight, requests = 100, 1000, 40_000
	for _, kind := range hashKinds {
		h := Hash{Table: kind, Fallback: Random{}}
		list := hashList(n, false)
		for _, out := range []int{-1, 50} {
			c := newHashClient(t, h, list)
			c.without(out)
			r := rand.New(rand.NewPCG(9, uint64(kind)))
			open := make([]Pick, 0, inFlight)
			got := make([]int, n)
			home, worst := 0, int64(0)
			for k := range requests {
				key := r.Uint64()
				p, i := c.pick(keyed(key))
				got[i]++
				worst = max(worst, c.m.Record(i).InFlight())
				if i == c.p.(*hashed).table.lookup(key) {
					home++
				}
				if len(open) < inFlight {
					open = append(open, p)
					continue
				}
				open[k%inFlight].Done(c.now, Result{Outcome: Success})
				open[k%inFlight] = p
			}
			most := float64(slices.Max(got)) * float64(c.s.Len()) / requests
			t.Logf("%v, without %d: %.1f%% at home, at most %d in flight, the worst gets %.2f times the mean", kind, out, 100*float64(home)/requests, worst, most)
			if worst > 14 {
				t.Errorf("%v: %d in flight on one endpoint, want at most 14", kind, worst)
			}
			if most > 1.6 {
				t.Errorf("%v: one gets %.2f times the mean, want at most 1.6", kind, most)
			}
			if least := 0.84; out < 0 && float64(home)/requests < least {
				t.Errorf("%v: %.3f at home, want at least %.2f", kind, float64(home)/requests, least)
			}
		}
	}
}

// Bounds follow weights.
func TestHashBoundsFollowWeights(t *testing.T) {
	list := hashList(3, false)
	list[0].Weight = WeightOf(8)
	c := newHashClient(t, Hash{Fallback: Random{}, MinCapacity: 1}, list)
	for range 100 {
		c.pick(keyed(3))
	}
	for i, want := range []int64{102, 14, 14} {
		if got := c.inFlight()[i]; got > want {
			t.Errorf("%d of 100 requests on endpoint %d, want at most %d", got, i, want)
		}
	}
}

// Whatever happens to lists, policies and availability, the total agrees with the records after
// a sweep, and requests on endpoints that went away never make it wrong in between.
func TestHashTotalAgreesWithTheRecords(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	all := hashList(40, false)
	hashed, other := Hash{Fallback: Random{}}, Policy(Random{})
	c := newHashClient(t, other, all[:20])
	var open []Pick
	exact := false // every request in flight is known to the total
	for step := range 8000 {
		switch x := r.IntN(200); {
		case x == 0:
			c.use(other)
			exact = false
		case x == 1:
			c.use(hashed)
		case x == 2:
			list := slices.Clone(all)
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			c.update(list[:10+r.IntN(30)])
		case x < 6:
			c.without(r.IntN(10), r.IntN(10), r.IntN(10))
		case x == 7:
			c.sweep()
		case x < 100:
			p, _ := c.pick(keyed(r.Uint64()))
			open = append(open, p)
		case len(open) > 0:
			k := r.IntN(len(open))
			if c.policy == Policy(hashed) && open[k].flags&flagTotal == 0 {
				exact = false
			}
			open[k].Done(c.now, Result{Outcome: Success})
			open = slices.Delete(open, k, k+1)
			if c.policy != Policy(hashed) {
				continue
			}
			if x == 199 {
				c.sweep()
				exact = true
			}
		}
		if c.policy != Policy(hashed) || !exact {
			continue
		}
		want := int64(0)
		for k := range c.s.Len() {
			want += c.s.Record(c.s.At(k)).InFlight()
		}
		if got := c.total(); got != want {
			t.Fatalf("step %d: the total is %d, want %d", step, got, want)
		}
	}
}

// A pool that has become idle is seen as such after some picks, whatever it was before: else a
// popular key would fill its owner up to yesterday's bound.
func TestHashTotalFollowsAPoolThatBecomesIdle(t *testing.T) {
	c := newHashClient(t, Hash{Fallback: Random{}}, hashList(10, false))
	var open []Pick
	for k := range 1000 {
		p, _ := c.pick(keyed(hashKey(k)))
		open = append(open, p)
	}
	for i := range open {
		open[i].Done(c.now, Result{Outcome: Success})
	}
	for k := range lanes * summedEvery {
		c.owner(hashKey(k))
	}
	if got := c.g.shared.totals.Load().recent.Load(); got > 1 {
		t.Errorf("an idle pool is believed to have %d in flight", got)
	}
}

// A bound needs no clock. Requests that began after some were given up as lost are told from
// those all the same.
func TestHashBoundWithoutAClock(t *testing.T) {
	c := newHashClient(t, Hash{Fallback: Random{}}, hashList(2, false))
	if c.s.Needs() != 0 {
		t.Errorf("it needs %b", c.s.Needs())
	}
	pick := func() Pick {
		p, _, err := c.s.Pick(keyed(1), 0)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	lost := pick()
	rec := lost.Record()
	for range 20 {
		c.now += int64(time.Minute)
		c.sweep()
	}
	if rec.Leaked() != 1 || c.total() != 0 {
		t.Fatalf("%d are given up, and the total is %d", rec.Leaked(), c.total())
	}
	p := pick()
	if p.Learns() || c.total() != 1 {
		t.Errorf("the new one learns: %v, and the total is %d, want 1", p.Learns(), c.total())
	}
	p.Done(0, Result{Outcome: Success})
	if rec.Leaked() != 1 || rec.InFlight() != 0 || c.total() != 0 {
		t.Errorf("after the end of the new one %d are given up, %d in flight, %d in total", rec.Leaked(), rec.InFlight(), c.total())
	}
	lost.Done(0, Result{})
	c.sweep()
	if rec.Leaked() != 0 || rec.InFlight() != 0 || c.total() != 0 {
		t.Errorf("after the end of all %d are given up, %d in flight, %d in total", rec.Leaked(), rec.InFlight(), c.total())
	}
}

// A dead endpoint's requests end all at once after it was taken out: the others' bounds must
// not shrink.
func TestHashEndOfADeadEndpointsRequestsLeavesBoundsAlone(t *testing.T) {
	c := newHashClient(t, Hash{Fallback: Random{}, MinCapacity: 1}, hashList(10, false))
	r := rand.New(rand.NewPCG(5, 5))
	var dead []Pick
	for range 1000 {
		if p, i := c.pick(keyed(r.Uint64())); i == 4 {
			dead = append(dead, p)
		}
	}
	c.without(4)
	before := c.total()
	for i := range dead {
		dead[i].Done(c.now, Result{Outcome: Timeout})
	}
	if len(dead) < 50 || before < 850 || c.total() != before {
		t.Errorf("the total was %d and is %d after %d ends elsewhere", before, c.total(), len(dead))
	}
}

// Picks from many goroutines, while lists and availability change: afterwards nothing is left.
func TestHashConcurrentPicks(t *testing.T) {
	h := Hash{Fallback: RoundRobin{}, StickyKeys: 100}
	all := hashList(30, true)
	c := newHashClient(t, h, all)
	var current sync.Map
	current.Store(0, c.s)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for k := range 4000 {
				s, _ := current.Load(0)
				p, i, err := s.(*Snapshot).Pick(Request{Key: r.Uint64N(200), HasKey: k%8 > 0}, int64(k+1))
				if err != nil || !s.(*Snapshot).Available(i) {
					t.Errorf("picked %d: %v", i, err)
					return
				}
				p.Done(int64(k+2), Result{Outcome: Success})
			}
		})
	}
	r := rand.New(rand.NewPCG(8, 8))
	for range 200 {
		switch r.IntN(3) {
		case 0:
			c.update(all[:20+r.IntN(11)])
		case 1:
			c.without(r.IntN(20), r.IntN(20))
		default:
			c.sweep()
		}
		current.Store(0, c.s)
	}
	wg.Wait()
	c.available(nil)
	if got := c.total(); got != 0 {
		t.Errorf("the total is %d with nothing in flight", got)
	}
	for i, n := range c.inFlight() {
		if n != 0 {
			t.Errorf("%d in flight on %d", n, i)
		}
	}
}

// The compiler keeps structs of up to four fields in registers. One more cost every policy a
// quarter of its pick.
func TestPickHasFourFields(t *testing.T) {
	if n := reflect.TypeFor[Pick]().NumField(); n > 4 {
		t.Errorf("Pick has %d fields, want at most 4", n)
	}
}

// A pick that allocates or locks would do so for every request.
func TestHashPickDoesNotAllocate(t *testing.T) {
	for _, kind := range hashKinds {
		for _, h := range []Hash{
			{Table: kind}, {Table: kind, Fallback: Random{}, Unbounded: true}, {Table: kind, MinCapacity: 1, StickyKeys: 1000},
		} {
			c := newHashClient(t, h, hashList(50, true))
			c.without(1, 2, 3, 4, 5)
			for k := range 60 { // some have no room
				c.pick(keyed(hashKey(k % 3)))
			}
			avoid := []*Record{c.m.Record(7), c.m.Record(8)}
			k := 0
			if n := testing.AllocsPerRun(500, func() {
				k++
				r := keyed(hash.Sum("key") + uint64(k))
				if k%3 == 0 {
					r.Avoid = avoid
				}
				if k%5 == 0 {
					r.HasKey = false
				}
				p, _, err := c.s.Pick(r, c.now)
				if err != nil {
					t.Fatal(err)
				}
				p.Done(c.now, Result{Outcome: Success})
			}); n != 0 {
				t.Errorf("%+v: %v allocations, want 0", h, n)
			}
		}
	}
}
