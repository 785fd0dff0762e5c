package picker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// hintRig is a client of a policy that has a clock of its own, as a pool has, and gives instants only where the
// policy needs them.
type hintRig struct {
	t     *testing.T
	g     *Registry
	m     *Members
	s     *Snapshot
	clock int64
	reads int // of the clock, by the registry
	held  int // requests in flight at a time
}

func newHintRig(t *testing.T, policy Policy, weights ...float64) *hintRig {
	t.Helper()
	h := &hintRig{t: t, held: 5, g: NewRegistry(rand.New(rand.NewPCG(4, 29)).Uint64), clock: 1}
	h.g.SetClock(func() int64 { h.reads++; return h.clock })
	h.g.Learn(policy.Needs())
	list := make([]Endpoint, len(weights))
	for i, w := range weights {
		list[i] = Endpoint{ID: fmt.Sprint("e", i), Weight: WeightOf(w)}
	}
	var err error
	if h.m, err = h.g.Members(list, 0); err != nil {
		t.Fatal(err)
	}
	h.s = NewSnapshot(h.m, nil, policy, policy.Build(h.m, nil))
	return h
}

// now is the instant for a pick or its end.
func (h *hintRig) now() int64 {
	if h.s.Needs() == 0 {
		return 0
	}
	return h.clock
}

// send sends n requests, a millisecond apart, each of which takes as many as are held, and returns how many went
// where.
func (h *hintRig) send(n int, r Request) []int {
	h.t.Helper()
	counts := make([]int, h.m.Len())
	open := make([]Pick, h.held)
	for k := range n {
		one := &open[k%h.held]
		one.Done(h.now(), Result{Outcome: Success})
		p, i, err := h.s.Pick(r, h.now())
		if err != nil {
			h.t.Fatal(err)
		}
		counts[i]++
		*one = p
		h.clock += int64(time.Millisecond)
	}
	for i := range open {
		open[i].Done(h.now(), Result{Outcome: Success})
	}
	return counts
}

// refuse has the endpoint ask to be left alone.
func (h *hintRig) refuse(i int, hint time.Duration) {
	p := h.s.Begin(i, Request{}, h.now())
	p.Done(h.now(), Result{Outcome: Overload, RetryAfter: hint})
}

func ones(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

// hintPolicies are rules of each kind that respect hints.
var hintPolicies = append(sharePolicies[:len(sharePolicies):len(sharePolicies)], new(LoadTable).policy(), Hash{Fallback: RoundRobin{}}, Hash{Fallback: Random{}, Unbounded: true},
	Hash{Fallback: P2C{Signal: InFlight}})

func (t *LoadTable) policy() Policy { return P2C{Signal: t} }

// By every rule an endpoint that asked to be left alone gets no request until its time is over, and then its share
// again, without a sweep.
func TestEndpointsThatAskToBeLeftAloneAre(t *testing.T) {
	for _, policy := range hintPolicies {
		for _, weights := range [][]float64{ones(10), {1, 2, 1, 2, 3, 1, 2, 1, 2, 3}} {
			t.Run(fmt.Sprintf("%T/%+v/%v", policy, policy, weights), func(t *testing.T) {
				h := newHintRig(t, policy, weights...)
				before := h.send(4000, Request{})
				for i := 3; i <= 5; i++ { // side by side, where a rotation could give all of theirs to the next one
					h.refuse(i, 20*time.Second)
				}
				counts := h.send(2000, Request{})
				if n := counts[3] + counts[4] + counts[5]; n > 0 {
					t.Errorf("%d of 2,000 requests went to those that asked to be left alone: %v", n, counts)
				}
				h.clock += int64(25 * time.Second)
				if policy.Needs() != 0 {
					return // and a ramp, which other tests are about
				}
				after := h.send(4000, Request{})
				for i := 3; i <= 5; i++ {
					if 2*after[i] < before[i] || after[i] > 2*before[i]+20 {
						t.Errorf("after their time: %v, before: %v", after, before)
					}
				}
			})
		}
	}
}

// What those that ask to be left alone would have got is everybody's.
func TestOthersShareWhatIsLeftOver(t *testing.T) {
	for _, tc := range []struct {
		policy Policy
		most   float64 // of the mean
		held   int
	}{{RoundRobin{}, 1.01, 5}, {Random{}, 1.15, 5}, {WeightedRandom{}, 1.15, 5}, {WeightedRoundRobin{}, 1.05, 5}, {EDF{}, 1.01, 5},
		{SmoothWeightedRoundRobin{}, 1.01, 5}, {WeightedLeastRequest{}, 1.1, 5}, {WeightedLeastRequest{}, 1.02, 100}, {P2C{Signal: InFlight}, 1.1, 5},
		{P2C{Signal: InFlight, Choices: 3}, 1.1, 5}} {
		h := newHintRig(t, tc.policy, ones(10)...)
		h.held = tc.held
		for i := 3; i <= 5; i++ {
			h.refuse(i, 20*time.Second)
		}
		counts, most := h.send(7000, Request{}), 0
		for _, n := range counts {
			most = max(most, n)
		}
		if float64(most) > tc.most*1000 {
			t.Errorf("%T: %v of 7,000, want at most %v", tc.policy, counts, tc.most*1000)
		}
	}
}

// Where all ask to be left alone, none is: requests go as if nobody had.
func TestWhereAllAskToBeLeftAloneNobodyIs(t *testing.T) {
	for _, policy := range []Policy{RoundRobin{}, Random{}, WeightedRoundRobin{}, WeightedRandom{}, SmoothWeightedRoundRobin{}, EDF{},
		WeightedLeastRequest{}, P2C{Signal: InFlight}, P2C{Signal: InFlight, Choices: 3}, Least{Signal: InFlight}, Hash{Fallback: RoundRobin{}}} {
		for _, n := range []int{1, 2, 5, 10, 100} {
			h := newHintRig(t, policy, ones(n)...)
			for i := range n {
				h.refuse(i, time.Duration(10+i%10)*time.Second)
			}
			counts := make([]int, n)
			for range 30 {
				h.clock = 1
				for i, c := range h.send(10*n, Request{}) {
					counts[i] += c
				}
			}
			for i, c := range counts {
				if c < 150 || c > 480 {
					t.Errorf("%T, n = %d: endpoint %d gets %d requests, 300 is its share", policy, n, i, c)
				}
			}
		}
	}
}

// The key of an endpoint that asks to be left alone goes to its next candidate, and comes back.
func TestKeysOfWhoAsksToBeLeftAloneGoToTheirNextCandidate(t *testing.T) {
	for _, policy := range []Policy{Hash{Fallback: Random{}}, Hash{Fallback: Random{}, Unbounded: true}, Hash{Table: Ring, Fallback: RoundRobin{}}, Hash{Table: Rendezvous, Fallback: P2C{Signal: InFlight}}} {
		h := newHintRig(t, policy, ones(10)...)
		h.held = 1
		for key := range uint64(20) {
			r := Request{Key: mix(key), HasKey: true}
			var candidates []int
			w := h.s.picker.(*hashed).table.walk(r.Key)
			for i, ok := w.Next(); ok; i, ok = w.Next() {
				candidates = append(candidates, i)
			}
			if counts := h.send(10, r); counts[candidates[0]] != 10 {
				t.Fatalf("%+v: key %d: %v of its owner, want 10", policy, key, counts)
			}
			h.refuse(candidates[0], 10*time.Second)
			if counts := h.send(10, r); counts[candidates[1]] != 10 {
				t.Errorf("%+v: key %d: %v of its next candidate, want 10", policy, key, counts)
			}
			h.clock += int64(12 * time.Second)
			if counts := h.send(10, r); counts[candidates[0]] != 10 {
				t.Errorf("%+v: key %d: %v of its owner afterwards, want 10", policy, key, counts)
			}
		}
	}
}

// A hint is bounded, and has a default, for every rule alike.
func TestHintsAreBounded(t *testing.T) {
	for _, policy := range []Policy{RoundRobin{}, P2C{Signal: InFlight}, Adaptive{}} {
		for _, tc := range []struct{ hint, least, most time.Duration }{
			{0, 900 * time.Millisecond, 1100 * time.Millisecond}, {10 * time.Second, 9 * time.Second, 11 * time.Second}, {time.Hour, 27 * time.Second, 33 * time.Second},
		} {
			h := newHintRig(t, policy, 1, 1)
			h.refuse(0, tc.hint)
			if got := h.m.Record(0).AvoidFor(h.clock); got < tc.least || got > tc.most {
				t.Errorf("%T: a hint of %v keeps requests off for %v, want %v to %v", policy, tc.hint, got, tc.least, tc.most)
			}
		}
	}
}

// A hint counts once, when the answer begins, and not if its endpoint was ejected since the request was sent.
func TestHintsOfPoliciesThatLearnNothing(t *testing.T) {
	h := newHintRig(t, RoundRobin{}, 1, 1)
	rec := h.m.Record(0)
	p := h.s.Begin(0, Request{}, 0)
	p.Answered(0, Result{Outcome: Overload, RetryAfter: time.Second})
	until := rec.avoidUntil.Load()
	if rec.AvoidFor(h.clock) == 0 {
		t.Fatal("nothing is known when the answer begins")
	}
	h.clock += int64(time.Second / 2)
	p.Done(0, Result{Outcome: Overload, RetryAfter: time.Second})
	if rec.avoidUntil.Load() != until {
		t.Error("the end of the answer counts once more")
	}
	late, _, err := h.s.Pick(Request{Avoid: []*Record{rec}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	late.Record().RaiseEpoch()
	late.Done(0, Result{Outcome: Overload})
	if got := h.m.Record(1).AvoidFor(h.clock); got != 0 {
		t.Errorf("a hint from before the ejection counts for %v", got)
	}
	for name, begin := range map[string]func() Pick{
		"Pick":   func() Pick { p, _, _ := h.s.Pick(Request{Avoid: []*Record{rec}}, 0); return p },
		"Start":  func() (p Pick) { h.s.Start(&p, 1, Unary, 0); return p },
		"Begin":  func() Pick { return h.s.Begin(1, Request{}, 0) },
		"stream": func() (p Pick) { h.s.Start(&p, 1, Stream, 0); return p },
	} {
		h.m.Record(1).avoidUntil.Store(0)
		p := begin()
		p.Done(0, Result{Outcome: Overload})
		if h.m.Record(1).AvoidFor(h.clock) == 0 {
			t.Errorf("%s: a hint after the ejection does not count", name)
		}
	}
}

// Of two of which one asks to be left alone the other one wins, whatever it has in flight.
func TestTwoChoicesLeaveAloneWhoAsks(t *testing.T) {
	h := newHintRig(t, P2C{Signal: InFlight}, 1, 1)
	h.refuse(0, 10*time.Second)
	for range 100 {
		h.s.Begin(1, Request{}, 0)
		if i := h.s.picker.Pick(h.s, Request{}, 0); i != 1 {
			t.Fatalf("it is %d, want 1", i)
		}
	}
}

// The clock is read only while somebody asks to be left alone, or asked since the last sweep.
func TestTheClockIsReadForHintsAlone(t *testing.T) {
	for _, policy := range []Policy{RoundRobin{}, Random{}, WeightedRoundRobin{}, P2C{Signal: InFlight}, Least{Signal: InFlight}, Hash{Fallback: Random{}}} {
		h := newHintRig(t, policy, ones(5)...)
		h.send(1000, Request{})
		h.send(1000, Request{Key: 9, HasKey: true})
		if h.reads > 0 {
			t.Errorf("%T: %d reads of the clock without a hint", policy, h.reads)
		}
		h.refuse(2, time.Second)
		h.clock += int64(2 * time.Second)
		h.g.Sweep(h.clock)
		h.reads = 0
		if h.send(1000, Request{}); h.reads > 0 {
			t.Errorf("%T: %d reads of the clock after a hint's end", policy, h.reads)
		}
	}
}

// Without a clock the last sweep is the present.
func TestHintsWithoutAClockGoByTheLastSweep(t *testing.T) {
	h := newHintRig(t, RoundRobin{}, ones(3)...)
	h.g.SetClock(nil)
	h.g.Sweep(int64(100 * time.Second))
	h.refuse(1, 5*time.Second)
	if counts := h.send(300, Request{}); counts[1] != 0 {
		t.Errorf("%v, want none of the one that asks to be left alone", counts)
	}
	h.g.Sweep(int64(106 * time.Second))
	if counts := h.send(300, Request{}); counts[1] != 100 {
		t.Errorf("%v, want a third of each", counts)
	}
}

// Whoever has another reason against most of them asks those that want to be left alone after the others.
func TestChooseAmongAsksThoseToBeLeftAloneAfterOthers(t *testing.T) {
	for _, policy := range []Policy{RoundRobin{}, P2C{Signal: InFlight}, Hash{Fallback: Random{}}} {
		h := newHintRig(t, policy, ones(40)...)
		for i := range 30 {
			h.refuse(i, 10*time.Second)
		}
		tried := []*Record{h.m.Record(32), h.m.Record(33)}
		for range 200 {
			for _, tc := range []struct {
				avoid []*Record
				takes map[int]bool
				want  int
			}{{nil, map[int]bool{3: true, 35: true}, 35}, {tried, map[int]bool{3: true, 32: true}, 3}, {tried, map[int]bool{32: true}, 32}} {
				i, ok := h.s.ChooseAmong(Request{Avoid: tc.avoid}, 0, func(i int) bool { return tc.takes[i] })
				if !ok || i != tc.want {
					t.Fatalf("%T: of %v it is %d, want %d", policy, tc.takes, i, tc.want)
				}
			}
		}
	}
}
