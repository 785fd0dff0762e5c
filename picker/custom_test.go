package picker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// stubborn is a policy of a test's own that always chooses the same index.
type stubborn struct{ index int }

func (stubborn) Validate() error                                      { return nil }
func (stubborn) Needs() picker.Need                                   { return picker.Adaptive{}.Needs() }
func (p stubborn) Build(*picker.Members, picker.Picker) picker.Picker { return p }
func (p stubborn) Pick(*picker.Snapshot, picker.Request, int64) int   { return p.index }

// A policy from outside that chooses nobody of the list makes the request fail, and nothing else.
func TestChoiceOutsideTheListIsAnError(t *testing.T) {
	for _, index := range []int{-1, 3, 4, math.MinInt, math.MaxInt} {
		for _, kind := range []picker.Kind{picker.Unary, picker.Stream, picker.UnknownKind} {
			_, s := build(t, stubborn{index}, endpoints(3), nil)
			for _, avoid := range [][]*picker.Record{nil, {s.Record(0)}, {s.Record(0), s.Record(1), s.Record(2)}} {
				p, _, err := s.Pick(picker.Request{Kind: kind, Avoid: avoid}, 0)
				if want := fmt.Sprintf("picker: the policy chose member %d, want an available one of 0 to 2", index); err == nil || err.Error() != want {
					t.Errorf("%v, %d to avoid: error %v, want %q", kind, len(avoid), err, want)
				}
				if p.Record() != nil || p.Learns() {
					t.Errorf("index %d: there is a pick beside the error", index)
				}
				p.Done(0, picker.Result{Outcome: picker.Success}) // harmless
			}
			for i := range 3 {
				if n := s.Record(i).Picks(); n != 0 {
					t.Errorf("index %d: endpoint %d has %d picks", index, i, n)
				}
			}
		}
	}
}

// Nor may a policy choose a member that is not available, or drained.
func TestChoiceOfOneThatIsNotAvailableIsAnError(t *testing.T) {
	_, s := build(t, stubborn{1}, weighted(1, 0, 1), nil)
	for name, s := range map[string]*picker.Snapshot{
		"drained":       s,
		"not available": picker.NewSnapshot(s.Members(), []int32{0, 2}, stubborn{1}, stubborn{1}),
	} {
		if p, _, err := s.Pick(picker.Request{}, 0); err == nil || p.Record() != nil {
			t.Errorf("%s: picked it without an error", name)
		}
	}
	if n := s.Record(1).Picks(); n != 0 {
		t.Errorf("it has %d picks", n)
	}
}

// A choice that is asked again because the request avoids it, and then is outside the list.
func TestChoiceOutsideTheListAfterOneToAvoid(t *testing.T) {
	turns := &turnsOf{indices: []int{0, -1, 7, 3, 0}}
	_, s := build(t, turns, endpoints(3), nil)
	p, i, err := s.Pick(picker.Request{Avoid: []*picker.Record{s.Record(0)}}, 0)
	if err != nil || i == 0 {
		t.Errorf("picked %d, %v; want one of the others", i, err)
	}
	p.Done(0, picker.Result{})
}

// turnsOf chooses the indices in turn.
type turnsOf struct {
	indices []int
	next    int
}

func (*turnsOf) Validate() error                                      { return nil }
func (*turnsOf) Needs() picker.Need                                   { return 0 }
func (p *turnsOf) Build(*picker.Members, picker.Picker) picker.Picker { return p }
func (p *turnsOf) Pick(*picker.Snapshot, picker.Request, int64) int {
	i := p.indices[p.next%len(p.indices)]
	p.next++
	return i
}

// wrapped is a signal of a user's own around a built-in one.
type wrapped struct{ inner picker.BuiltinSignal }

func (w wrapped) Cost(r *picker.Record, now int64) int64 { return w.inner.Cost(r, now) }
func (w wrapped) Needs() picker.Need                     { return w.inner.Needs() }

// counted is a wrapped one that says what it counts.
type counted struct{ wrapped }

func (counted) CountsInFlight() {}

// customSignals are signals that the package does not know, with and without the word that they count
// requests in flight.
func customSignals() map[string]picker.Signal {
	signals := map[string]picker.Signal{}
	for _, b := range []picker.BuiltinSignal{picker.InFlight, picker.Latency, picker.LogMean} {
		signals[b.String()] = wrapped{b}
		signals[b.String()+" counted"] = counted{wrapped{b}}
	}
	return signals
}

// While nothing is in flight a signal from outside leaves shares to the weights.
func TestCustomSignalsFollowWeightsWhenIdle(t *testing.T) {
	for name, signal := range customSignals() {
		for _, choices := range []int{2, 3} {
			_, s := build(t, picker.P2C{Signal: signal, Choices: choices}, weighted(3, 1, 1), rand.New(rand.NewPCG(83, 84)).Uint64)
			const total = 20_000
			counts, now := make([]int, 3), int64(0)
			for range total {
				now += ms
				p, i, err := s.Pick(picker.Request{}, now)
				if err != nil {
					t.Fatal(err)
				}
				counts[i]++
				p.Done(now+ms/10, picker.Result{Outcome: picker.Success})
			}
			for i, q := range []float64{0.6, 0.2, 0.2} {
				if d := math.Abs(float64(counts[i]) - q*total); d > 5*math.Sqrt(q*(1-q)*total) {
					t.Errorf("%s, %d choices: endpoint %d got %d of %d, want %.0f", name, choices, i, counts[i], total, q*total)
				}
			}
		}
	}
}

// Under load a signal that says that it counts settles by weight; for one that does not, a request
// in flight weighs the same on all, so that counts come together as far as the draw lets them.
func TestCustomSignalsUnderLoad(t *testing.T) {
	for name, signal := range customSignals() {
		_, s := build(t, picker.P2C{Signal: signal}, weighted(8, 1, 1), rand.New(rand.NewPCG(85, 86)).Uint64)
		for range 1000 {
			pickAt(t, s, picker.Request{Kind: picker.Stream}, 0)
		}
		heavy := float64(s.Record(0).InFlight())
		if strings.HasSuffix(name, "counted") {
			// By k/w + 1: 800, less what a band of a tenth of a doubling lets pass.
			if math.Abs(heavy-800) > 80 {
				t.Errorf("%s: the one with 8 of 10 has %v of 1,000 in flight, want about 800", name, heavy)
			}
		} else if heavy > 716 { // both draws are it in 64 of 100: 640 + 5σ
			t.Errorf("%s: the one with 8 of 10 has %v of 1,000 in flight, want about 640", name, heavy)
		}
	}
}
