package picker_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// bringingIn are rules of each kind that has to do something of its own about shares.
var bringingIn = []struct {
	name    string
	policy  picker.Policy
	plain   bool // goes by no weights
	rotates bool // takes the next turn for one that is held back
}{
	{name: "random", plain: true, policy: picker.Random{}},
	{name: "round_robin", plain: true, rotates: true, policy: picker.RoundRobin{}},
	{name: "weighted_random", policy: picker.WeightedRandom{}},
	{name: "stride", rotates: true, policy: picker.WeightedRoundRobin{}},
	{name: "edf", rotates: true, policy: picker.EDF{}},
	{name: "swrr", rotates: true, policy: picker.SmoothWeightedRoundRobin{}},
	{name: "weighted_least_request", rotates: true, policy: picker.WeightedLeastRequest{}},
	{name: "p2c_in_flight", policy: picker.P2C{Signal: picker.InFlight}},
	{name: "p2c_latency", policy: picker.P2C{}},
	{name: "p2c_of_four", policy: picker.P2C{Choices: 4}},
	{name: "p2c_peak_ewma", policy: picker.P2C{Signal: picker.PeakEWMA{}}},
	{name: "least_in_flight", policy: picker.Least{}},
	{name: "least_latency", policy: picker.Least{Signal: picker.Latency}},
	{name: "adaptive", policy: picker.Adaptive{}},
}

// follower sends requests of exponential work to endpoints of which e1 has a share.
type follower struct {
	*fleet
	weights float64 // of all, in units of e1's
	step    time.Duration
	work    answer
}

// newFollower keeps that many requests in flight on each endpoint in the mean.
func newFollower(t *testing.T, policy picker.Policy, weights []float64, open float64) *follower {
	r := rand.New(rand.NewPCG(77, 78))
	f := &follower{fleet: newFleet(t, policy, weighted(weights...), 7)}
	for _, w := range weights {
		f.weights += w / weights[1]
	}
	f.step = time.Duration(float64(usual) / open / float64(len(weights)))
	f.work = func(int, int64) (time.Duration, picker.Outcome) {
		return time.Duration(r.ExpFloat64() * float64(usual)), picker.Success
	}
	f.runEvery(5000*f.step, f.step, f.work)
	return f
}

// with returns how many of n requests e1 gets with that share, in parts of what its weight is of all.
func (f *follower) with(share float64, n int) float64 {
	f.snapshot.Record(1).SetShare(share)
	f.runEvery(2000*f.step, f.step, f.work)
	clear(f.counts)
	f.runEvery(time.Duration(n)*f.step, f.step, f.work)
	return f.weights * float64(f.counts["e1"]) / float64(n)
}

// An endpoint that is brought in gets the part that it is to have, whether requests come one by one or
// all endpoints are busy, of few endpoints as of many, and by any weights. Where the next of a rotation takes what
// it may not have, its turn is there again sooner: it gets what its weight times the share would get.
func TestShareFollowsWhatWasSet(t *testing.T) {
	requests, load := 20_000, []float64{0.1, 1, 5}
	if testing.Short() {
		requests, load = 5000, []float64{1}
	}
	for _, p := range bringingIn {
		const off = 1.25
		worst := 0.0
		for _, weights := range [][]float64{{1, 1}, {1, 1, 1, 1, 1}, {2, 1, 1, 2, 4}, {1, 3, 1, 1, 2}, slices.Repeat([]float64{1}, 20)} {
			for _, open := range load {
				f := newFollower(t, p.policy, weights, open)
				for _, share := range []float64{0.1, 0.3, 0.7} {
					if p.plain && weights[0] != weights[1] {
						continue
					}
					most := share
					if p.rotates {
						most = share * f.weights / (f.weights - 1 + share)
					}
					chance := 4 * math.Sqrt(share*f.weights/float64(requests)) // four standard deviations
					got := f.with(share, requests)
					if got < share/off-chance || got > most*off+chance {
						t.Errorf("%s, weights %v, %v in flight: with a share of %v it gets %.3f", p.name, weights, open, share, got)
					}
					worst = max(worst, share/(got+chance), (got-chance)/most)
				}
			}
		}
		t.Logf("%s: off by a factor of %.2f at most, chance left out", p.name, worst)
	}
}

// Keys go on to others when as many requests are in flight as the share of the bound allows. The bound is
// 1.25 times the mean.
func TestShareOfHashedKeysIsOneOfTheBound(t *testing.T) {
	for _, table := range []picker.HashTable{picker.Maglev, picker.Ring, picker.Rendezvous} {
		for _, sticky := range []int{0, 1000} {
			for _, share := range []float64{0.1, 0.3, 0.7} {
				got, most := hashedPart(t, picker.Hash{Table: table, StickyKeys: sticky}, share, 1<<60)
				if got > 1.3*share || got < 0.75*share || float64(most) > math.Ceil(share*1.25*31) {
					t.Errorf("%v, %d sticky: with a share of %v it gets %.3f, and has %d in flight", table, sticky, share, got, most)
				}
				t.Logf("%v, %d sticky: %v: %.3f", table, sticky, share, got)
			}
		}
	}
}

// Without a bound, keys are what there is to divide.
func TestShareOfUnboundedKeysIsOneOfTheKeys(t *testing.T) {
	for _, table := range []picker.HashTable{picker.Maglev, picker.Ring, picker.Rendezvous} {
		for _, share := range []float64{0.1, 0.3, 0.7} {
			if got, _ := hashedPart(t, picker.Hash{Table: table, Unbounded: true}, share, 1<<60); math.Abs(got-share) > 0.15*share {
				t.Errorf("%v: with a share of %v it gets %.3f", table, share, got)
			}
		}
	}
}

// As the share grows, keys come to the endpoint and none leaves it.
func TestUnboundedKeysComeOnceAndStay(t *testing.T) {
	_, s := build(t, picker.Hash{Unbounded: true}, endpoints(5), rand.New(rand.NewPCG(3, 3)).Uint64)
	had := map[uint64]bool{}
	for share := 0.0; share <= 1; share += 0.125 {
		s.Record(1).SetShare(share)
		for key := range uint64(2000) {
			key *= 0x9e3779b97f4a7c15
			p, i, err := s.Pick(picker.Request{Key: key, HasKey: true}, 1)
			if err != nil {
				t.Fatal(err)
			}
			p.Done(1, picker.Result{})
			if had[key] && i != 1 {
				t.Fatalf("with a share of %v, key %#x left", share, key)
			}
			had[key] = i == 1
		}
	}
}

// hashedPart returns what part of its usual requests e1 of five gets with that share, of keys drawn at
// random from so many, and the most that it has in flight; 25 on each are, in the mean.
func hashedPart(t *testing.T, policy picker.Hash, share float64, keys uint64) (part float64, most int64) {
	r := rand.New(rand.NewPCG(5, uint64(100*share)))
	_, s := build(t, policy, endpoints(5), r.Uint64)
	f := &fleet{tb: t, snapshot: s, counts: map[string]int{}}
	run := func(n int) float64 {
		got := 0
		for range n {
			f.now += int64(usual) / 125
			f.finish(f.now)
			p, i, err := s.Pick(picker.Request{Key: r.Uint64N(keys), HasKey: true}, f.now)
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				got++
				most = max(most, s.Record(1).InFlight())
			}
			heap.Push(&f.events, end{f.now + int64(r.ExpFloat64()*float64(usual)), p, picker.Result{Outcome: picker.Success}})
		}
		return float64(got)
	}
	run(2000)
	full := run(20_000)
	s.Record(1).SetShare(share)
	run(2000)
	most = 0
	return run(20_000) / full, most
}
