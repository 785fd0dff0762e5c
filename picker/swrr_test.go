package picker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func testSmoothWRRVectors(t *testing.T) {
	for _, c := range vectorsOf(t, "smooth_wrr", 6) {
		var in struct {
			Weights    []float64
			Picks      int
			ThenRemove string `json:"then_remove"`
			PicksAfter int    `json:"picks_after"`
		}
		var want struct {
			Sequence       string
			CurrentAfter   []int64 `json:"current_after"`
			CountA         int     `json:"count_a"`
			CountB         int     `json:"count_b"`
			IndexOfA       int     `json:"index_of_a"`
			SequenceBefore string  `json:"sequence_before"`
			CurrentKept    []int64 `json:"current_kept"`
			SequenceAfter  string  `json:"sequence_after"`
		}
		c.read(t, &in, &want)
		g := NewRegistry(nil)
		list := listOf(in.Weights...)
		policy := SmoothWeightedRoundRobin{}
		m, err := g.Members(list, 0)
		if err != nil {
			t.Fatal(err)
		}
		p := policy.Build(m, nil).(*smooth)
		got := letters(t, NewSnapshot(m, nil, policy, p), in.Picks, true)
		switch {
		case want.CountA > 0:
			if strings.Count(got, "a") != want.CountA || strings.Count(got, "b") != want.CountB ||
				strings.Index(got, "a") != want.IndexOfA {
				t.Errorf("%s: %s", c.ID, got)
			}
		case in.ThenRemove != "":
			if got != want.SequenceBefore {
				t.Errorf("%s: %s, want %s", c.ID, got, want.SequenceBefore)
			}
			list = slices.DeleteFunc(list, func(e Endpoint) bool { return e.ID == in.ThenRemove })
			if m, err = g.Members(list, 0); err != nil {
				t.Fatal(err)
			}
			p = policy.Build(m, p).(*smooth)
			if !reflect.DeepEqual(p.inWeights(), want.CurrentKept) {
				t.Errorf("%s: kept %v, want %v", c.ID, p.inWeights(), want.CurrentKept)
			}
			if after := letters(t, NewSnapshot(m, nil, policy, p), in.PicksAfter, true); after != want.SequenceAfter {
				t.Errorf("%s: %s after, want %s", c.ID, after, want.SequenceAfter)
			}
			continue
		case got != want.Sequence:
			t.Errorf("%s: %s, want %s", c.ID, got, want.Sequence)
		}
		if want.CurrentAfter != nil && !reflect.DeepEqual(p.inWeights(), want.CurrentAfter) {
			t.Errorf("%s: current %v, want %v", c.ID, p.inWeights(), want.CurrentAfter)
		}
	}
}

// inWeights returns what everybody is owed in units of whole weights.
func (p *smooth) inWeights() []int64 {
	out := slices.Clone(p.current)
	for i := range out {
		out[i] /= smoothUnit
	}
	return out
}

// naiveSmooth keeps everything by ID, in the textbook's form.
type naiveSmooth struct {
	weights map[string]int64
	current map[string]int64
}

func (o *naiveSmooth) pick(ids []string) string {
	best, total := "", int64(0)
	for _, id := range ids {
		o.current[id] += o.weights[id]
		total += o.weights[id]
		if best == "" || o.current[id] > o.current[best] {
			best = id
		}
	}
	o.current[best] -= total
	return best
}

func (o *naiveSmooth) update(list []Endpoint) {
	weights, current := map[string]int64{}, map[string]int64{}
	var before, after int64
	var stayed []string
	for _, e := range list {
		weights[e.ID] = int64(e.Weight.Value()) * smoothUnit
		if old, ok := o.weights[e.ID]; ok {
			stayed = append(stayed, e.ID)
			before += old
			after += weights[e.ID]
		}
	}
	for _, id := range stayed {
		c := o.current[id]
		if before != after && before > 0 {
			c = int64(math.Round(float64(c) * (float64(after) / float64(before))))
		}
		current[id] = c
	}
	if after > 0 && len(stayed) < len(list) {
		sum := 0.0
		for _, c := range current {
			sum += float64(c)
		}
		for id := range current {
			current[id] -= int64(math.Round(sum * float64(weights[id]) / float64(after)))
		}
	}
	o.weights, o.current = weights, current
}

func (o *naiveSmooth) bound(ids []string) {
	total := int64(0)
	for _, id := range ids {
		total += o.weights[id]
	}
	for _, id := range ids {
		o.current[id] = min(max(o.current[id], -total), total)
	}
}

func TestSmoothWRRIsTheNaiveOneUnderRandomUpdates(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		oracle := &naiveSmooth{weights: map[string]int64{}, current: map[string]int64{}}
		randomOperations(t, r, SmoothWeightedRoundRobin{}, operations{
			update: oracle.update,
			watch:  oracle.bound,
			pick:   oracle.pick,
		})
	}
}

// operations are what an oracle has to follow.
type operations struct {
	update func(list []Endpoint)
	watch  func(available []string) // in the order of the list, not drained
	pick   func(available []string) string
}

// randomOperations adds, removes, reorders, reweights, takes endpoints out and back, and
// picks, and compares each pick with the oracle's.
func randomOperations(t *testing.T, r *rand.Rand, policy Policy, o operations) {
	t.Helper()
	// The oracle may draw from an equal source at the same time.
	g := NewRegistry(nil)
	g.shared.rand = rand.New(rand.NewPCG(7, 7)).Uint64
	l := randomList{r: r, down: map[string]bool{}}
	var prev Picker
	for step := range 300 {
		l.change()
		m, err := g.Members(l.list, 0)
		if err != nil {
			t.Fatal(err)
		}
		prev = policy.Build(m, prev)
		o.update(l.list)
		for range 1 + r.IntN(2) {
			available, ids := l.available()
			s := NewSnapshot(m, available, policy, prev)
			o.watch(ids)
			for range r.IntN(20) {
				if len(ids) == 0 {
					break
				}
				p, _, err := s.Pick(Request{}, 0)
				if err != nil {
					t.Fatal(err)
				}
				if want := o.pick(ids); p.Record().ID() != want {
					t.Fatalf("step %d: %s, want %s", step, p.Record().ID(), want)
				}
			}
			l.flip()
		}
	}
}

// randomList is a list that changes at random, and who of it is down.
type randomList struct {
	r    *rand.Rand
	list []Endpoint
	down map[string]bool
	next int // the name of the next newcomer
}

// change makes one change. Somebody always has a weight.
func (l *randomList) change() {
	l.list = slices.Clone(l.list)
	switch k := l.r.IntN(6); {
	case k == 0 || len(l.list) < 2:
		l.list = append(l.list, Endpoint{ID: fmt.Sprint("e", l.next), Weight: WeightOf(float64(1 + l.r.IntN(9)))})
		l.next++
	case k == 1:
		i := l.r.IntN(len(l.list))
		l.list = slices.Delete(l.list, i, i+1)
	case k == 2:
		l.r.Shuffle(len(l.list), func(i, j int) { l.list[i], l.list[j] = l.list[j], l.list[i] })
	case k == 3:
		l.list[l.r.IntN(len(l.list))].Weight = WeightOf(float64(l.r.IntN(3) * l.r.IntN(1000)))
	default:
		l.flip()
	}
	if !slices.ContainsFunc(l.list, func(e Endpoint) bool { return e.Weight.Value() > 0 }) {
		l.list[0].Weight = WeightOf(1)
	}
}

// flip takes one down, or back.
func (l *randomList) flip() {
	id := l.list[l.r.IntN(len(l.list))].ID
	l.down[id] = !l.down[id]
}

// available returns the indices, not nil, and IDs of those that may be picked.
func (l *randomList) available() (indices []int32, ids []string) {
	indices = []int32{}
	for i, e := range l.list {
		if !l.down[e.ID] && e.Weight.Value() > 0 {
			indices = append(indices, int32(i))
			ids = append(ids, e.ID)
		}
	}
	return indices, ids
}

// Of weights that are all a thousand times as great, or of which the greatest leaves,
// nobody waits longer than a turn for what happened before.
func TestSmoothWRRScalesWhatIsOwed(t *testing.T) {
	g := NewRegistry(nil)
	policy := SmoothWeightedRoundRobin{}
	var p Picker
	picks := func(n int, weights ...float64) string {
		m, err := g.Members(listOf(weights...), 0)
		if err != nil {
			t.Fatal(err)
		}
		p = policy.Build(m, p)
		return letters(t, NewSnapshot(m, nil, policy, p), n, true)
	}
	if got := picks(1, 1000, 1000) + picks(1, 1, 1) + picks(1, 0.3, 0.3) + picks(1, 500, 500); got != "abab" {
		t.Errorf("the rotation of two goes %s", got)
	}
	picks(7, 1, 1, 10_000)
	if got := picks(6, 1, 1); strings.Count(got, "a") != 3 {
		t.Errorf("after the great one left: %s", got)
	}
}

// However often others come and go, a newcomer has its share at once.
func TestSmoothWRRNewcomersAreNotLeftBehind(t *testing.T) {
	g := NewRegistry(nil)
	policy := SmoothWeightedRoundRobin{}
	var p Picker
	newest := 0
	for k := range 1000 {
		list := []Endpoint{{ID: "a"}, {ID: "b"}, {ID: fmt.Sprint("n", k)}}
		m, err := g.Members(list, 0)
		if err != nil {
			t.Fatal(err)
		}
		p = policy.Build(m, p)
		s := NewSnapshot(m, nil, policy, p)
		for range 3 {
			pick, i, err := s.Pick(Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			pick.Done(0, Result{})
			if i == 2 {
				newest++
			}
		}
	}
	if newest < 900 || newest > 1100 {
		t.Errorf("newcomers got %d of 3,000 picks, want 1,000", newest)
	}
}
