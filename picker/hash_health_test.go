package picker

import (
	"slices"
	"testing"
	"time"
)

// Endpoints in Avoid are passed by in the order of candidates; when all are in it, the pick
// still finds somebody.
func TestHashAvoidFollowsTheOrderOfCandidates(t *testing.T) {
	for _, kind := range hashKinds {
		h := Hash{Table: kind, Fallback: Random{}}
		list := hashList(8, false)
		c := newHashClient(t, h, list)
		for k := range 30 {
			key := hashKey(k)
			request := keyed(key)
			for _, want := range candidates(t, h, list, key) {
				p, i := c.pick(request)
				if i != want {
					t.Fatalf("%v: try %d of key %d went to %d, want %d", kind, len(request.Avoid), k, i, want)
				}
				request.Avoid = append(request.Avoid, p.Record())
				p.Done(c.now, Result{Outcome: Failure})
			}
			if p, _ := c.pick(request); p.Record() == nil {
				t.Fatalf("%v: with everybody avoided nobody was picked", kind)
			} else {
				p.Done(c.now, Result{Outcome: Success})
			}
		}
	}
}

// An endpoint that asks to be left alone is passed by until its hint is over. Nobody loops over
// thousands when all do.
func TestHashPassesByWhoAsksToBeLeftAlone(t *testing.T) {
	list := hashList(300, false)
	h := Hash{Table: Rendezvous}
	c := newHashClient(t, h, list)
	key := hashKey(1)
	order := candidates(t, h, list, key)
	p, i := c.pick(keyed(key))
	p.Done(c.now, Result{Outcome: Overload, RetryAfter: 2 * time.Second})
	if i != order[0] {
		t.Fatalf("the key went to %d, want %d", i, order[0])
	}
	c.now += int64(time.Second)
	if p, i = c.pick(keyed(key)); i != order[1] {
		t.Errorf("a second later it goes to %d, want %d", i, order[1])
	}
	p.Done(c.now, Result{Outcome: Success})
	c.now += int64(time.Hour)
	for range 2 { // the sweep makes no difference
		if p, i = c.pick(keyed(key)); i != order[0] {
			t.Errorf("after the hint it goes to %d, want %d", i, order[0])
		}
		p.Done(c.now, Result{Outcome: Success})
		c.sweep()
	}
	for n, i := range order {
		c.m.Record(i).avoid(c.now, 20*time.Second)
		want := 0
		if n+1 < limitedTries {
			want = n + 1
		}
		p, i := c.pick(keyed(key))
		if i != order[want] {
			t.Fatalf("when %d ask to be left alone it goes to %d, want %d", n+1, i, order[want])
		}
		p.Done(c.now, Result{Outcome: Canceled})
	}
	// One that was tried before is worse.
	r := keyed(key)
	r.Avoid = []*Record{c.m.Record(order[0])}
	if _, i = c.pick(r); i != order[1] {
		t.Errorf("a retry goes to %d, want %d", i, order[1])
	}
}

// One that joined others which are known gets one request of its keys at a time until it has
// answered; the rest goes to the next candidate.
func TestHashProbesNewcomersWithOneRequest(t *testing.T) {
	h := Hash{Table: Rendezvous}
	list := hashList(10, false)
	c := newHashClient(t, h, list[:9])
	for k := range 200 {
		p, _ := c.pick(keyed(hashKey(k)))
		c.now += int64(time.Millisecond)
		p.Done(c.now, Result{Outcome: Success})
	}
	c.now += int64(time.Second)
	c.sweep()
	c.update(list)
	var newcomers []Pick
	mine := 0
	for k := range 400 {
		owner := candidates(t, h, list, hashKey(k))[0]
		p, i := c.pick(keyed(hashKey(k)))
		if owner == 9 {
			mine++
		}
		if i == 9 {
			newcomers = append(newcomers, p)
		} else {
			p.Done(c.now, Result{Outcome: Success})
		}
	}
	if len(newcomers) != 1 || mine < 10 {
		t.Errorf("a newcomer that has not answered got %d of %d requests, want 1", len(newcomers), mine)
	}
	c.now += int64(time.Millisecond)
	newcomers[0].Done(c.now, Result{Outcome: Success})
	got := 0
	for k := range 400 {
		if c.owner(hashKey(k)) == list[9].ID {
			got++
		}
	}
	if got != mine {
		t.Errorf("once it has answered it gets %d of its %d keys", got, mine)
	}
}

// By default, one that joined others has a tenth of its bound once it has answered, and one that
// asked to be left alone when that is over; both grow. Whatever a ramp does not let in goes to
// the key's next candidate.
func TestHashEasesInNewcomersAndThoseThatComeBack(t *testing.T) {
	const most = 20
	for _, kind := range hashKinds {
		h := Hash{Table: kind, MinCapacity: most}
		list := hashList(10, false)
		for _, back := range []bool{false, true} {
			c := newHashClient(t, h, list[:9])
			warm := func(n int) {
				for k := range n {
					p, _ := c.pick(keyed(hashKey(k)))
					c.now += int64(time.Millisecond)
					p.Done(c.now, Result{Outcome: Success})
				}
				c.sweep()
			}
			warm(300)
			c.update(list)
			key := uint64(0)
			for c.p.(*hashed).table.lookup(key) != 9 {
				key++
			}
			p, i := c.pick(keyed(key))
			if back {
				p.Done(c.now, Result{Outcome: Overload, RetryAfter: 10 * time.Second})
				if _, i := c.pick(keyed(key)); i == 9 {
					t.Errorf("%v: it asked to be left alone, and got a request", kind)
				}
				c.now = c.m.Record(9).avoidUntil.Load()
			} else {
				c.now += int64(time.Millisecond)
				p.Done(c.now, Result{Outcome: Success})
			}
			if i != 9 {
				t.Fatalf("%v: the key went to %d, want the newcomer", kind, i)
			}
			start, window := c.now, int64(rampUnits*c.g.shared.learning.Load().unit)
			if window < int64(10*time.Second) {
				t.Errorf("a ramp takes %v, want 10 s at least", time.Duration(window))
			}
			next := candidates(t, h, list, key)[1]
			for _, tc := range []struct{ tenths, want int64 }{{0, 2}, {5, 10}, {9, 18}, {10, most}} {
				c.now = start + tc.tenths*window/10
				before := c.m.Record(next).InFlight()
				var open []Pick
				for range most {
					p, _ := c.pick(keyed(key))
					open = append(open, p)
				}
				if got := c.m.Record(9).InFlight(); got != tc.want {
					t.Errorf("%v, back %v: after %d tenths it has %d in flight, want %d", kind, back, tc.tenths, got, tc.want)
				}
				if got := c.m.Record(next).InFlight() - before; got != most-tc.want {
					t.Errorf("%v, back %v: the next candidate has %d, want the other %d", kind, back, got, most-tc.want)
				}
				for i := range open {
					open[i].Done(c.now, Result{Outcome: Canceled})
				}
			}
		}
	}
}

// A ramp is a part of a bound, and begins with an answer: a Hash asks for it where it has both.
func TestHashNeedsWhatItsFallbackLearnsAndARamp(t *testing.T) {
	adaptive := Adaptive{}.Needs()
	for _, c := range []struct {
		h    Hash
		want Need
	}{
		{Hash{}, adaptive | NeedRamp},
		{Hash{Unbounded: true}, adaptive},
		{Hash{Fallback: Random{}}, 0},
		{Hash{Fallback: P2C{}}, P2C{}.Needs()},
	} {
		if got := newHashClient(t, c.h, nil).s.Needs(); got != c.want {
			t.Errorf("%+v needs %b, want %b", c.h, got, c.want)
		}
	}
}

// An endpoint that is available again has its keys at once, and never more than its bound.
func TestHashBoundsWhoIsAvailableAgain(t *testing.T) {
	list := hashList(10, false)
	c := newHashClient(t, Hash{}, list)
	for k := range 300 {
		p, _ := c.pick(keyed(hashKey(k)))
		c.now += int64(time.Millisecond)
		p.Done(c.now, Result{Outcome: Success})
	}
	c.without(4)
	for k := range 200 {
		c.pick(keyed(hashKey(k)))
	}
	c.available(nil)
	for n := range 100 {
		c.pick(keyed(hashKey(n)))
		// Sums are taken at every 16th pick of a lane.
		if got, bound := c.m.Record(4).InFlight(), int64(1.25*float64(200+n+1)/10)+1; got > bound {
			t.Fatalf("pick %d: it has %d in flight, want at most %d", n, got, bound)
		}
	}
}

// An endpoint on its way back has a part of its bound that grows.
func TestHashRampsByRequestsInFlight(t *testing.T) {
	h := Hash{Table: Rendezvous, MinCapacity: 20}
	list := hashList(4, false)
	c := newHashClient(t, h, list)
	for k := range 100 { // everybody has answered
		p, _ := c.pick(keyed(hashKey(k)))
		p.Done(c.now, Result{Outcome: Success})
	}
	key := hashKey(1)
	owner := candidates(t, h, list, key)[0]
	rec := c.m.Record(owner)
	window := int64(rampUnits * c.g.shared.learning.Load().unit)
	rec.startRamp(c.now)
	start := c.now
	for _, tc := range []struct {
		at   int64 // in tenths of the window
		want int64
	}{{0, 2}, {3, 6}, {5, 10}, {9, 18}, {10, 20}} {
		c.now = start + tc.at*window/10
		var open []Pick
		for range 40 {
			p, _ := c.pick(keyed(key))
			open = append(open, p)
		}
		if got := rec.InFlight(); got != tc.want {
			t.Errorf("after %d tenths of the ramp it has %d in flight, want %d", tc.at, got, tc.want)
		}
		for i := range open {
			open[i].Done(c.now, Result{Outcome: Canceled})
		}
	}
}

// Nobody stays on probation for ever because the policy learns no answers.
func TestHashWithoutLearningHasNoProbation(t *testing.T) {
	list := hashList(6, false)
	c := newHashClient(t, Adaptive{}, list[:5])
	for k := range 100 {
		p, _ := c.pick(keyed(hashKey(k)))
		c.now += int64(time.Millisecond)
		p.Done(c.now, Result{Outcome: Success})
	}
	c.sweep()
	c.update(list)
	c.use(Hash{Table: Rendezvous, Fallback: Random{}, MinCapacity: 1000})
	for k := range 100 {
		want := list[candidates(t, Hash{Table: Rendezvous}, list, hashKey(k))[0]].ID
		p, i := c.pick(keyed(hashKey(k)))
		if got := list[i].ID; got != want {
			t.Fatalf("key %d went to %s, want %s", k, got, want)
		}
		// The same past somebody else.
		r := keyed(hashKey(k))
		r.Avoid = []*Record{c.m.Record((i + 1) % 6)}
		if _, i := c.pick(r); list[i].ID != want {
			t.Fatalf("with somebody to avoid key %d went to %s, want %s", k, list[i].ID, want)
		}
		if k%4 == 0 {
			p.Done(c.now, Result{Outcome: Success})
		}
	}
}

// Requests without a key go by the fallback, whose state survives updates and a change of
// policy, and whose sweeps and watches take place.
func TestHashWithoutAKeyGoesByTheFallback(t *testing.T) {
	list := hashList(7, false)
	c := newHashClient(t, RoundRobin{}, list)
	_, last := c.pick(Request{Key: 99})
	c.use(Hash{Fallback: RoundRobin{}})
	for k := range 50 {
		if k%10 == 3 {
			c.update(slices.Clone(list))
		}
		_, i := c.pick(Request{Key: 99})
		if want := (last + 1) % 7; i != want {
			t.Fatalf("pick %d went to %d, want %d", k, i, want)
		}
		last = i
		c.pick(keyed(uint64(k)))
	}
	for _, h := range []Hash{{}, {Fallback: WeightedRandom{}}, {Fallback: P2C{}}} {
		c := newHashClient(t, h, hashList(40, true))
		c.without(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
		counts := map[int]int{}
		for range 2000 {
			p, i := c.pick(Request{})
			p.Done(c.now, Result{Outcome: Success})
			counts[i]++
			c.now += int64(time.Millisecond)
		}
		c.sweep()
		if len(counts) < 20 {
			t.Errorf("%+v: picks without a key go to %d endpoints of 25", h, len(counts))
		}
	}
	c = newHashClient(t, Hash{}, hashList(40, false))
	a := c.p.(*hashed).fallback.(*adaptive)
	before := a.fast.Load()
	if before == nil {
		t.Error("the fallback was not told of the snapshot")
	}
	c.sweep()
	if a.fast.Load() == before {
		t.Error("the fallback was not swept")
	}
}
