package picker

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// fromTheStart returns a snapshot whose schedule begins at time 0, with everybody a whole
// period before the first turn, in the order of the list.
func fromTheStart(t testing.TB, policy Policy, bias float64, weights ...float64) (*Snapshot, *turns) {
	t.Helper()
	m := membersOf(t, weights...)
	p := newTurns(integerWeights(m.weights), m.records, bias)
	for i := range weights {
		p.plan(i, 0)
	}
	return NewSnapshot(m, nil, policy, p), p
}

// The file gives the order in exact fractions, which is ours, and in float64, which is
// Envoy's. For edf-99-1 it gives the place of b in float64 alone, where 99 times 1/99 is
// less than 1: 99 picks of a come before b. In exact fractions that is a tie, which b
// wins, having waited longer, as it does in edf-21.
func testEDFVectors(t *testing.T) {
	for _, c := range vectorsOf(t, "edf", 4) {
		var in struct {
			Weights []float64
			Picks   int
		}
		var want struct {
			Exact    string `json:"sequence_exact_rational"`
			Float    string `json:"sequence_float64"`
			IndexOfB int    `json:"index_of_b"`
			CountB   int    `json:"count_b"`
		}
		c.read(t, &in, &want)
		s, _ := fromTheStart(t, EDF{}, 0, in.Weights...)
		got, float := letters(t, s, in.Picks, true), floatEDF(in.Weights, in.Picks)
		if c.ID == "edf-99-1" {
			if strings.Count(got, "b") != want.CountB || strings.Index(got, "b") != want.IndexOfB-1 ||
				strings.Index(float, "b") != want.IndexOfB {
				t.Errorf("%s: %s, and %s in float64", c.ID, got, float)
			}
			continue
		}
		if got != want.Exact || float != want.Float {
			t.Errorf("%s: %s, and %s in float64, want %s and %s", c.ID, got, float, want.Exact, want.Float)
		}
	}
}

// floatEDF returns the first picks of a schedule whose times are added up in float64.
func floatEDF(weights []float64, picks int) string {
	due, order := make([]float64, len(weights)), make([]int, len(weights))
	for i, w := range weights {
		due[i], order[i] = 1/w, i
	}
	var out strings.Builder
	for k := range picks {
		best := 0
		for i := range due {
			if due[i] < due[best] || due[i] == due[best] && order[i] < order[best] {
				best = i
			}
		}
		out.WriteString(string(rune('a' + best)))
		due[best] += 1 / weights[best]
		order[best] = len(weights) + k
	}
	return out.String()
}

// rational is a schedule in fractions without bounds, searched from end to end.
type rational struct {
	due   []*big.Rat
	order []int
	next  int
}

func (o *rational) pick(step func(i int) *big.Rat) int {
	best := 0
	for i := range o.due {
		if c := o.due[i].Cmp(o.due[best]); c < 0 || c == 0 && o.order[i] < o.order[best] {
			best = i
		}
	}
	o.due[best] = new(big.Rat).Add(o.due[best], step(best))
	o.order[best] = o.next
	o.next++
	return best
}

func newRational(weights []float64) *rational {
	o := &rational{next: len(weights)}
	for i, w := range weights {
		o.due = append(o.due, big.NewRat(1, int64(w)))
		o.order = append(o.order, i)
	}
	return o
}

// Ties of equal fractions stay ties, and no other fractions become one, whatever the
// weights.
func TestEDFFollowsExactFractions(t *testing.T) {
	for _, weights := range [][]float64{
		{5, 1, 1}, {3, 3, 3}, {2, 3, 5, 7, 30}, {1, 10_000}, {99, 33, 11, 1}, {7}, {1, 1},
		{1 << 32, 1<<32 - 1, 1<<32 - 2, 1 << 31}, {6, 4, 3, 2, 12, 12, 1},
	} {
		s, _ := fromTheStart(t, EDF{}, 0, weights...)
		oracle := newRational(weights)
		for k := range 3000 {
			p, got, err := s.Pick(Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			p.Done(0, Result{})
			if want := oracle.pick(func(i int) *big.Rat { return big.NewRat(1, int64(weights[i])) }); got != want {
				t.Fatalf("%v: pick %d is %d, want %d", weights, k, got, want)
			}
		}
	}
}

// Trap 29: nothing happens when a counter wraps around.
func TestTrap29ScheduleTimeWraps(t *testing.T) {
	weights := []float64{5, 1, 1, 3}
	s, p := fromTheStart(t, EDF{}, 0, weights...)
	s2, late := fromTheStart(t, EDF{}, 0, weights...)
	shift := vtime{whole: math.MaxUint64 - 20}
	late.schedule.now = late.schedule.now.plus(shift)
	for i := range late.schedule.turns {
		l := &late.schedule.turns[i]
		l.base, l.due = l.base.plus(shift), l.due.plus(shift)
		l.order += math.MaxUint64 - 100
	}
	late.schedule.order += math.MaxUint64 - 100
	if a, b := letters(t, s, 1000, true), letters(t, s2, 1000, true); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if now := p.schedule.now.plus(shift); now != late.schedule.now || now.whole > 1000 {
		t.Errorf("time is %v, want %v, after the wrap", late.schedule.now, now)
	}
}

// naiveEDF is a schedule in integers without bounds, by ID, searched from end to end.
type naiveEDF struct {
	random func() uint64
	now    *big.Int
	order  int
	turns  map[string]*naiveTurn
	list   []string
	fresh  bool
}

type naiveTurn struct {
	weight, base, j, paused *big.Int // paused: nil while in the queue
	order                   int
}

func shifted(v *big.Int) *big.Int { return new(big.Int).Lsh(v, 64) }

func (n *naiveTurn) due() *big.Int {
	part := shifted(n.j)
	return part.Add(part.Div(part, n.weight), n.base)
}

// wait is how long it is until the turn.
func (o *naiveEDF) wait(n *naiveTurn) *big.Int {
	from := o.now
	if n.paused != nil {
		from = n.paused
	}
	w := n.due()
	if w.Sub(w, from).Sign() < 0 {
		w.SetInt64(0)
	}
	return w
}

func (o *naiveEDF) plan(n *naiveTurn, wait *big.Int) {
	n.base, n.j, n.order, n.paused = new(big.Int).Add(o.now, wait), new(big.Int), o.order, o.now
	o.order++
}

func (o *naiveEDF) update(list []Endpoint) {
	old := o.turns
	o.turns, o.list, o.fresh = map[string]*naiveTurn{}, nil, true
	for _, e := range list {
		n := &naiveTurn{weight: big.NewInt(int64(e.Weight.Value()) * turnUnit)}
		o.list = append(o.list, e.ID)
		o.turns[e.ID] = n
		was := old[e.ID]
		switch {
		case was == nil || was.weight.Sign() == 0 || n.weight.Sign() == 0:
		case was.weight.Cmp(n.weight) == 0:
			*n = *was
			if n.paused == nil {
				n.paused = o.now
			}
			o.fresh = false
		default:
			wait := o.wait(was)
			wait.Mul(wait, was.weight)
			o.plan(n, wait.Div(wait, n.weight))
			n.order = was.order
			o.fresh = false
		}
	}
	for _, e := range list {
		was, n := old[e.ID], o.turns[e.ID]
		if was != nil && was.weight.Sign() > 0 && n.weight.Sign() > 0 {
			continue
		}
		u := new(big.Int).SetUint64(o.random())
		if n.weight.Sign() > 0 {
			o.plan(n, new(big.Int))
			u.Div(u.Mul(u, big.NewInt(turnUnit)), n.weight)
			n.base.Sub(n.base, u)
			n.j.SetInt64(turnUnit)
		}
	}
}

func (o *naiveEDF) watch(ids []string) {
	if o.fresh && len(ids) > 0 {
		o.fresh = false
		total := new(big.Int)
		for _, id := range ids {
			total.Add(total, o.turns[id].weight)
		}
		at := new(big.Int).SetUint64(o.random())
		at.Rsh(at.Mul(at, total.Div(total, big.NewInt(turnUnit))), 64)
		for _, id := range ids {
			w := new(big.Int).Div(o.turns[id].weight, big.NewInt(turnUnit))
			if at.Cmp(w) < 0 {
				o.plan(o.turns[id], new(big.Int))
				break
			}
			at.Sub(at, w)
		}
	}
	for _, id := range o.list {
		n := o.turns[id]
		switch {
		case slices.Contains(ids, id):
			o.resume(n)
			n.paused = nil
		case n.paused == nil:
			n.paused = o.now
		}
	}
}

func (o *naiveEDF) resume(n *naiveTurn) {
	if n.paused != nil {
		n.base = new(big.Int).Add(n.base, new(big.Int).Sub(o.now, n.paused))
		n.paused = o.now
	}
}

func (o *naiveEDF) pick(ids []string) string {
	if len(ids) == 1 {
		return ids[0]
	}
	best := ids[0]
	for _, id := range ids {
		c := o.turns[id].due().Cmp(o.turns[best].due())
		if c < 0 || c == 0 && o.turns[id].order < o.turns[best].order {
			best = id
		}
	}
	n := o.turns[best]
	if due := n.due(); due.Cmp(o.now) > 0 {
		o.now = due
	}
	n.j = new(big.Int).Add(n.j, big.NewInt(turnUnit))
	n.order = o.order
	o.order++
	return best
}

func TestEDFIsTheNaiveOneUnderRandomUpdates(t *testing.T) {
	for seed := range uint64(20) {
		oracle := &naiveEDF{random: rand.New(rand.NewPCG(7, 7)).Uint64, now: new(big.Int)}
		randomOperations(t, rand.New(rand.NewPCG(seed, 4)), EDF{}, operations{
			update: oracle.update,
			watch:  oracle.watch,
			pick:   oracle.pick,
		})
	}
}

// A snapshot that is no longer the last one watched is still served, from what is available
// in it, and in turn.
func TestEDFServesOlderSnapshots(t *testing.T) {
	for _, policy := range []Policy{EDF{}, WeightedLeastRequest{}} {
		m := membersOf(t, 3, 1, 2, 2)
		p := policy.Build(m, nil)
		first := NewSnapshot(m, []int32{0, 1}, policy, p)
		second := NewSnapshot(m, []int32{1, 2, 3}, policy, p)
		NewSnapshot(m, []int32{}, policy, p) // nobody is in the queue now
		count := map[int]int{}
		for k := range 8000 {
			s := first
			if k%2 == 0 {
				s = second
			}
			pick, i, err := s.Pick(Request{}, 0)
			if err != nil || !s.Available(i) {
				t.Fatalf("%T: picked %d, %v", policy, i, err)
			}
			pick.Done(0, Result{})
			count[i]++
		}
		if count[0] == 0 || count[1] == 0 || count[2] != count[3] && count[2] != count[3]+1 && count[3] != count[2]+1 {
			t.Errorf("%T: counts %v", policy, count)
		}
	}
}
