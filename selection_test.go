package evenkeel_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// subsetted returns a pool with n members of which it uses a part.
func subsetted(tb testing.TB, n int, c subset.Config) *evenkeel.Pool[int] {
	tb.Helper()
	return newPool(tb, evenkeel.Config{Subset: &c}, n)
}

// selectedIDs are the IDs of the members, sorted.
func selectedIDs(p *evenkeel.Pool[int]) []string {
	var ids []string
	for _, e := range p.StatsAt(origin).Endpoints {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

// naive is what a pool should have selected, by the functions of package subset alone.
func naive(t *testing.T, c *subset.Config, list []evenkeel.Member[int]) []string {
	t.Helper()
	var m subset.Members
	for _, e := range list {
		m.IDs = append(m.IDs, e.ID)
	}
	var got []int
	var err error
	switch {
	case c == nil:
		return slices.Sorted(slices.Values(m.IDs))
	case c.Algorithm == subset.UseDeal:
		got, err = subset.DealLot(subset.Client{Index: c.ClientIndex.Value, Seed: c.Seed}, m, subset.Lot{Clients: c.LotSize, Exact: subset.DefaultExact})
	case c.Algorithm == subset.UseRocksteadier:
		got, err = subset.Rocksteadier(subset.Client{Index: c.ClientIndex.Value, Seed: c.Seed}, m, c.Size)
	default:
		got, err = subset.Rendezvous(subset.Client{Seed: c.Seed}, m, c.Size)
	}
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range got {
		ids = append(ids, m.IDs[i])
	}
	slices.Sort(ids)
	return ids
}

// subsetsOfChurn are what the pool of the test below changes between.
var subsetsOfChurn = []*subset.Config{
	nil,
	{Size: 6, Seed: 7, MinAvailable: -1},
	{Size: 9, Seed: 7, MinAvailable: -1},
	{Algorithm: subset.UseDeal, ClientIndex: subset.IndexOf(5), LotSize: 4, MinAvailable: -1},
	{Algorithm: subset.UseRocksteadier, ClientIndex: subset.IndexOf(5), Size: 8, Seed: 1, MinAvailable: -1},
}

// churn changes a pool at random, and keeps by itself what should be the case.
type churn struct {
	changes
	subset *subset.Config
	states map[string]evenkeel.State
	open   []evenkeel.Pick[int]
	now    time.Time
}

// serve sends ten requests and ends as many.
func (c *churn) serve() {
	for range 10 {
		c.now = c.now.Add(300 * time.Microsecond)
		if k, err := c.pool.PickAt(c.now, evenkeel.Request{}); err == nil {
			c.open = append(c.open, k)
		}
		if len(c.open) > 40 {
			i := c.r.IntN(len(c.open))
			c.open[i].DoneAt(c.now, evenkeel.Result{Outcome: evenkeel.Outcome(c.r.IntN(7))})
			c.open = slices.Delete(c.open, i, i+1)
		}
	}
}

// step makes one change: of the configuration, a state, or the list and the policy, which the
// pool of changes does.
func (c *churn) step(t *testing.T) {
	t.Helper()
	var err error
	switch c.r.IntN(6) {
	case 0:
		c.subset = subsetsOfChurn[c.r.IntN(len(subsetsOfChurn))]
		err = c.pool.SetConfigAt(c.now, evenkeel.Config{Subset: c.subset})
	case 1:
		e, s := c.list[c.r.IntN(len(c.list))], evenkeel.State(c.r.IntN(2))
		if c.states[e.ID] = s; !c.pool.SetState(e.ID, s) {
			t.Fatalf("%s is in the list, and SetState does not know it", e.ID)
		}
	default:
		for ok := false; !ok; { // one that changes no configuration and no state
			list := slices.Clone(c.list)
			switch i := c.r.IntN(len(list)); c.r.IntN(4) {
			case 0:
				list = append(list, evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: fmt.Sprintf("e%d", c.next)}, Handle: c.next})
				c.next++
				ok = true
			case 1:
				if ok = len(list) > 15; ok {
					delete(c.states, list[i].ID)
					list = slices.Delete(list, i, i+1)
				}
			case 2:
				c.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
				ok = true
			case 3:
				list[i].Weight = evenkeel.WeightOf(1 + float64(c.r.IntN(3)))
				ok = true
			}
			c.list = list
		}
		err = c.pool.UpdateAt(c.now, c.list)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check compares the pool with what should be.
func (c *churn) check(t *testing.T, step int) (selected []string) {
	t.Helper()
	selected = naive(t, c.subset, c.list)
	if got := selectedIDs(c.pool); !slices.Equal(got, selected) {
		t.Fatalf("step %d: selected %v, want %v", step, got, selected)
	}
	s := c.pool.StatsAt(c.now)
	if s.Listed != len(c.list) {
		t.Fatalf("step %d: %d listed, want %d", step, s.Listed, len(c.list))
	}
	var handles []int
	ready := 0
	for _, e := range s.Endpoints {
		i := slices.IndexFunc(c.list, func(m evenkeel.Member[int]) bool { return m.ID == e.ID })
		handles = append(handles, c.list[i].Handle)
		if e.State != c.states[e.ID] {
			t.Fatalf("step %d: %s is %v, want %v", step, e.ID, e.State, c.states[e.ID])
		}
		if e.State == evenkeel.Ready && (s.Panicking || !isOut(e)) {
			ready++
		}
	}
	if got := c.pool.Selected(); !slices.Equal(got, handles) || s.Ready != ready {
		t.Fatalf("step %d: handles %v, %d ready, want %v, %d", step, got, s.Ready, handles, ready)
	}
	return selected
}

// A few thousand random updates, states and changes of the configuration, with requests in
// flight: the pool has what package subset says, knows all states, and forgets nothing.
func TestSelectionIsWhatPackageSubsetSaysThroughEveryChange(t *testing.T) {
	c := churn{states: map[string]evenkeel.State{}, now: origin}
	c.r = rand.New(rand.NewPCG(41, 42))
	c.pool, c.list, c.next = newPool(t, evenkeel.Config{}, 30), members(30), 30
	was := c.check(t, -1)
	for step := range 3000 {
		c.serve()
		c.pool.Sweep(c.now)
		before, generation := statsByID(c.pool.StatsAt(c.now)), c.pool.Generation()
		c.step(t)
		is := c.check(t, step)
		if changed := c.pool.Generation() != generation; changed == slices.Equal(was, is) {
			t.Fatalf("step %d: from %v to %v, and the generation was raised: %v", step, was, is, changed)
		}
		for id, after := range statsByID(c.pool.StatsAt(c.now)) {
			old, stayed := before[id]
			if old, after = learnt(old), learnt(after); stayed && old != after {
				t.Fatalf("step %d: %s was %+v, is %+v", step, id, old, after)
			}
		}
		was = is
	}
	for i := range c.open {
		c.open[i].DoneAt(c.now, evenkeel.Result{})
	}
	if err := c.pool.SetConfigAt(c.now, evenkeel.Config{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range c.pool.StatsAt(c.now).Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%s: in flight %d at rest", e.ID, e.InFlight)
		}
	}
}

func TestAttributesMoveNothing(t *testing.T) {
	for _, c := range []subset.Config{
		{Size: 10, Seed: 3},
		{Size: 10},
		{Size: 10, ClientIndex: subset.IndexOf(2), ClientCount: 9},
		{Size: 10, ClientIndex: subset.IndexOf(2), Algorithm: subset.UseRocksteadier},
		{Size: 10, ClientIndex: subset.IndexOf(2), Algorithm: subset.UseDeterministic},
	} {
		p := subsetted(t, 100, c)
		ids, generation := selectedIDs(p), p.Generation()
		list := members(100)
		for i := range list {
			list[i].Weight, list[i].Handle, list[i].NotReady = evenkeel.WeightOf(float64(1+i%4)), -i, true
		}
		slices.Reverse(list)
		if err := p.UpdateAt(origin, list); err != nil {
			t.Fatal(err)
		}
		p.Sweep(origin.Add(time.Hour))
		if got := selectedIDs(p); !slices.Equal(got, ids) || p.Generation() != generation {
			t.Errorf("%+v: %v became %v, the generation %d %d", c, ids, got, generation, p.Generation())
		}
		if h := p.Selected(); h[0] > 0 {
			t.Errorf("%+v: handles are those of the last list: %v", c, h)
		}
	}
}

func TestBadListsAndSubsetsKeepTheLastSubset(t *testing.T) {
	p := subsetted(t, 50, subset.Config{Size: 12, Seed: 5})
	ids, generation := selectedIDs(p), p.Generation()
	bad := members(3)
	bad[1].ID, bad[2].Weight = "e0", evenkeel.WeightOf(-1)
	wrong := evenkeel.Config{Subset: &subset.Config{Size: -1, Algorithm: 99}}
	for what, err := range map[string]error{
		"a list":                p.UpdateAt(origin, bad),
		"a config":              p.SetConfigAt(origin, wrong),
		"an index not to find":  p.SetConfigAt(origin, evenkeel.Config{Subset: &subset.Config{ClientIndex: subset.IndexFromEnv("EVENKEEL_TEST_NOT_SET")}}),
		"a good list with both": p.ReplaceAt(origin, wrong, members(4)),
		"a good config":         p.ReplaceAt(origin, evenkeel.Config{}, bad),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	err := p.ReplaceAt(origin, wrong, bad)
	for _, want := range []string{"Config.Size is -1", "Config.Algorithm is 99", `ID "e0"`, "Weight is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if got := selectedIDs(p); !slices.Equal(got, ids) || p.Generation() != generation || p.StatsAt(origin).Listed != 50 {
		t.Errorf("%v became %v", ids, got)
	}
	if _, err := evenkeel.NewPool[int](wrong, evenkeel.Options{}); err == nil {
		t.Error("NewPool took it")
	}
	six := evenkeel.Config{Subset: &subset.Config{Size: 6, Seed: 5}}
	if err := p.ReplaceAt(origin, six, members(40)); err != nil || !slices.Equal(selectedIDs(p), naive(t, six.Subset, members(40))) {
		t.Errorf("%v: a good config and a good list select %v", err, selectedIDs(p))
	}
	six.Policy = picker.RoundRobin{}
	if err := p.ReplaceAt(origin, six, members(3)); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := p.PickAt(origin, evenkeel.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range p.StatsAt(origin).Endpoints {
		if e.Picks != 100 {
			t.Errorf("%s got %d of 300 picks in turn", e.ID, e.Picks)
		}
	}
	if err := p.ReplaceAt(origin, six, nil); err != nil || p.StatsAt(origin).Listed != 0 {
		t.Errorf("%v: no list is an empty one", err)
	}
}

// The caller's config is not looked at again, and a client without index and seed keeps its
// identity when something else about the subset changes.
func TestIdentityOfAClientStays(t *testing.T) {
	c := &subset.Config{Size: 20}
	p := newPool(t, evenkeel.Config{Subset: c}, 200)
	ids := selectedIDs(p)
	c.Size = 10
	if err := p.UpdateAt(origin, members(200)); err != nil || !slices.Equal(selectedIDs(p), ids) {
		t.Errorf("%v: an equal list changed the subset", err)
	}
	if err := p.SetConfigAt(origin, evenkeel.Config{Subset: c}); err != nil {
		t.Fatal(err)
	}
	half := selectedIDs(p)
	for _, id := range half {
		if !slices.Contains(ids, id) {
			t.Errorf("%s came in when the size went from 20 to 10", id)
		}
	}
	if len(half) != 10 {
		t.Errorf("%d are selected, want 10", len(half))
	}
	other, err := evenkeel.NewPool[int](evenkeel.Config{Subset: &subset.Config{}}, evenkeel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Update(members(200)); err != nil || slices.Equal(selectedIDs(other), ids) {
		t.Errorf("%v: two clients without an index have the same subset", err)
	}
}

func TestLoadWeightsMultiplyTheEndpointsOwn(t *testing.T) {
	c := subset.Config{Size: 12, ClientIndex: subset.IndexOf(0), ClientCount: 40, MinAvailable: -1}
	list := members(100)
	for i := range list {
		list[i].Weight = evenkeel.WeightOf(float64(i%3) * picker.MinWeight) // products below it are not refused
	}
	p := newPool(t, evenkeel.Config{Subset: &c}, 0)
	if err := p.UpdateAt(origin, list); err != nil {
		t.Fatal(err)
	}
	s, err := subset.NewSelector(c)
	if err != nil {
		t.Fatal(err)
	}
	var m subset.Members
	for _, e := range list {
		m.IDs, m.Weights = append(m.IDs, e.ID), append(m.Weights, e.Weight.Value())
	}
	want, err := s.Update(m)
	if err != nil {
		t.Fatal(err)
	}
	factors, differ := s.Weights(), false
	for k, e := range p.StatsAt(origin).Endpoints {
		w := m.Weights[want[k]] * factors[k]
		if w > 0 {
			w = max(w, picker.MinWeight)
		}
		if e.ID != m.IDs[want[k]] || e.Weight != w {
			t.Errorf("%s has weight %v, want %s with %v", e.ID, e.Weight, m.IDs[want[k]], w)
		}
		differ = differ || e.Weight != m.Weights[want[k]]
	}
	if !differ {
		t.Error("no factor counts")
	}
}

func TestWarningsAreToldOnceAndShown(t *testing.T) {
	var told []string
	p, err := evenkeel.NewPool[int](evenkeel.Config{Subset: &subset.Config{Size: 3}}, evenkeel.Options{
		OnWarning: func(text string) { told = append(told, text) }})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := p.Update(members(10 + len(told))); err != nil {
			t.Fatal(err)
		}
		p.Sweep(time.Now())
	}
	s := p.Stats()
	if len(told) != 1 || len(s.Warnings) != 1 || told[0] != s.Warnings[0] || !strings.Contains(told[0], "Config.Size is 3") {
		t.Fatalf("told %q, shown %q, want one about the size", told, s.Warnings)
	}
	few := &subset.Config{ClientIndex: subset.IndexOf(1), ClientCount: 2, Size: 12}
	if err := p.Replace(evenkeel.Config{Subset: few}, members(500)); err != nil {
		t.Fatal(err)
	}
	if s = p.Stats(); len(told) != 2 || len(s.Warnings) != 1 || !strings.Contains(told[1], "ClientCount is 2") {
		t.Errorf("told %q, shown %q, want one about too few clients", told, s.Warnings)
	}
	if err := p.SetConfig(evenkeel.Config{}); err != nil || p.Stats().Warnings != nil || len(told) != 2 {
		t.Errorf("%v: shown %q without a subset, told %q", err, p.Stats().Warnings, told)
	}
}

func TestPicksOfASubsetAllocateNothing(t *testing.T) {
	p := subsetted(t, 1000, subset.Config{Size: 20})
	at := origin
	if n := testing.AllocsPerRun(1000, func() {
		at = at.Add(time.Microsecond)
		k, err := p.PickAt(at, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		k.DoneAt(at, evenkeel.Result{Outcome: evenkeel.Success})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
