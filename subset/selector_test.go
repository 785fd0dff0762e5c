package subset

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func newSelector(t testing.TB, c Config) *Selector {
	t.Helper()
	s, err := NewSelector(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func update(t testing.TB, s *Selector, m Members) []int {
	t.Helper()
	got, err := s.Update(m)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestIndexDecidesTheDefault(t *testing.T) {
	if a := newSelector(t, Config{}).Algorithm(); a != UseRendezvous {
		t.Errorf("without an index it is %v", a)
	}
	if a := newSelector(t, Config{ClientIndex: IndexOf(0)}).Algorithm(); a != UseDeal {
		t.Errorf("with an index it is %v", a)
	}
	if a := newSelector(t, Config{ClientIndex: IndexOf(0), Algorithm: UseRendezvous}).Algorithm(); a != UseRendezvous {
		t.Errorf("what is asked for is %v", a)
	}
	for a := Auto; a <= UseDeterministic; a++ {
		if got, err := ParseAlgorithm(a.String()); err != nil || got != a {
			t.Errorf("%v is parsed as %v, %v", a, got, err)
		}
	}
	if _, err := ParseAlgorithm("best"); err == nil {
		t.Error("an unknown name is accepted")
	}
}

func TestWrongConfigsAreToldAllAtOnce(t *testing.T) {
	err := Config{
		Algorithm: 9, Size: -1, ClientIndex: IndexOf(-1), ClientCount: -1, MinAvailable: -2, LotSize: 3, MaxSize: -5, LoadPerEndpoint: math.NaN(),
	}.Validate()
	for _, want := range []string{"Algorithm is 9", "Size is -1", "ClientIndex is -1", "ClientCount is -1", "MinAvailable is -2", "LotSize is 3",
		"MaxSize is -5", "LoadPerEndpoint is NaN", "LotSize is 3, want 0 with MaxSize"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want it to say %q", err, want)
		}
	}
	for text, c := range map[string]Config{
		"ClientIndex is not set, want an index for deal": {Algorithm: UseDeal},
		"ClientCount is 0, want":                         {Algorithm: UseAperture, ClientIndex: IndexOf(1)},
		"ClientIndex is 7, want less than":               {ClientIndex: IndexOf(7), ClientCount: 7},
		"LoadPerEndpoint is 2, want 0 without":           {LoadPerEndpoint: 2},
		"LoadPerEndpoint is 0, want a finite":            {MaxSize: 30},
		"Variable is empty":                              {ClientIndex: Index{Source: EnvironmentIndex}},
		"ClientIndex.Source is 8":                        {ClientIndex: Index{Source: 8}},
		"Size is 16777217":                               {Size: MaxMembers + 1},
	} {
		if _, err := NewSelector(c); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v gives %v, want %q", c, err, text)
		}
	}
	t.Setenv("EVENKEEL_TEST_INDEX", "9")
	if _, err := NewSelector(Config{ClientIndex: IndexFromEnv("EVENKEEL_TEST_INDEX"), ClientCount: 9}); err == nil {
		t.Error("an index from the environment that is the count is accepted")
	}
}

func TestSmallSizesAreWarnedOf(t *testing.T) {
	if w := (Config{Size: 12}).Warnings(); w != nil {
		t.Errorf("12 is warned of: %q", w)
	}
	if w := (Config{}).Warnings(); w != nil {
		t.Errorf("the default is warned of: %q", w)
	}
	if w := (Config{Size: 3}).Warnings(); len(w) != 1 || !strings.Contains(w[0], "Config.Size is 3") {
		t.Errorf("3 is warned of with %q", w)
	}
	s := newSelector(t, Config{Size: 10, ClientIndex: IndexOf(1), ClientCount: 20, MinAvailable: 11})
	update(t, s, listOf(everybody(300)))
	w := strings.Join(s.Warnings(), "\n")
	for _, want := range []string{"Config.Size is 10", "MinAvailable is 11, above Size", "ClientCount is 20 and a lot is 32 clients: about 38 %"} {
		if !strings.Contains(w, want) {
			t.Errorf("the warnings are %q, want %q", w, want)
		}
	}
}

// A list that is refused changes nothing.
func TestWrongListKeepsTheLastSubset(t *testing.T) {
	for a := Auto; a <= UseDeterministic; a++ {
		s := newSelector(t, Config{Algorithm: a, ClientIndex: IndexOf(3), ClientCount: 50, Seed: 4, Size: 12})
		want := update(t, s, listOf(everybody(100)))
		for _, m := range []Members{{IDs: []string{"a", "a"}}, {IDs: []string{""}}, {IDs: []string{"a"}, Weights: []float64{math.Inf(1)}}} {
			if got, err := s.Update(m); err == nil || got != nil {
				t.Errorf("%v: %v, %v", a, got, err)
			}
		}
		if got := s.Subset(); !slices.Equal(got, want) {
			t.Errorf("%v: the subset is %v after errors, want %v", a, got, want)
		}
		if got := update(t, s, listOf(everybody(100))); !slices.Equal(got, want) {
			t.Errorf("%v: the same list gives %v, want %v", a, got, want)
		}
		if got := update(t, s, Members{}); len(got) != 0 {
			t.Errorf("%v: an empty list gives %v", a, got)
		}
		if got := update(t, s, listOf(everybody(100))); !slices.Equal(got, want) {
			t.Errorf("%v: after an empty list it is %v, want %v", a, got, want)
		}
	}
}

func TestSelectorKeepsNothingOfItsArguments(t *testing.T) {
	m := listOf(everybody(100))
	s := newSelector(t, Config{ClientIndex: IndexOf(3), Size: 12})
	got := update(t, s, m)
	clear(m.IDs)
	clear(got)
	if again := update(t, s, listOf(everybody(100))); slices.Equal(got, again) || !slices.Equal(again, s.Subset()) {
		t.Errorf("the subset is %v", again)
	}
}

// Whoever has no identity draws one, and then stays with it.
func TestRendezvousWithoutASeedIsRandomForEachSelector(t *testing.T) {
	m := listOf(everybody(200))
	a, b := newSelector(t, Config{}), newSelector(t, Config{})
	x, y := update(t, a, m), update(t, b, m)
	if slices.Equal(x, y) {
		t.Error("two selectors have the same twenty of two hundred")
	}
	if again := update(t, a, listOf(everybody(199))); len(again) != DefaultSize {
		t.Errorf("%d of 199", len(again))
	}
	if again := update(t, a, m); !slices.Equal(x, again) {
		t.Errorf("%v becomes %v", x, again)
	}
	p, q := newSelector(t, Config{Seed: Identity("web-a")}), newSelector(t, Config{Seed: Identity("web-a")})
	if !slices.Equal(update(t, p, m), update(t, q, m)) {
		t.Error("one identity has two subsets")
	}
}

func TestSelectorHoldsTheLot(t *testing.T) {
	s := newSelector(t, Config{Size: 20, ClientIndex: IndexOf(7)})
	for _, v := range []struct{ n, lot int }{{1000, 64}, {780, 64}, {1900, 64}, {0, 64}, {1930, 128}, {1600, 128}, {1530, 64}} {
		if update(t, s, Members{IDs: endpointNames[:v.n]}); s.Lot() != v.lot {
			t.Errorf("with %d endpoints the lot is %d, want %d", v.n, s.Lot(), v.lot)
		}
	}
	s = newSelector(t, Config{LotSize: 16, ClientIndex: IndexOf(7)})
	for _, n := range []int{1000, 50, 3000} {
		if update(t, s, Members{IDs: endpointNames[:n]}); s.Lot() != 16 {
			t.Errorf("with %d endpoints the fixed lot is %d", n, s.Lot())
		}
	}
}

func TestWeightsOfTheSelectorEvenTheLoadOut(t *testing.T) {
	m := listOf(everybody(300))
	for _, c := range []Config{{Size: 10, ClientCount: 300}, {Algorithm: UseAperture, Size: 10, ClientCount: 290}} {
		load := make([]float64, 300)
		for i := range c.ClientCount {
			c.ClientIndex = IndexOf(i)
			s := newSelector(t, c)
			got, w := update(t, s, m), s.Weights()
			sum := 0.0
			for _, v := range w {
				sum += v
			}
			for k, at := range got {
				load[at] += w[k] / sum
			}
		}
		if most := slices.Max(load) * 300 / float64(c.ClientCount); most > 1.02 {
			t.Errorf("%v: the busiest has %.3f of the mean, want at most 1.02", c.Algorithm, most)
		}
	}
	s := newSelector(t, Config{Size: 10, ClientIndex: IndexOf(1)})
	if update(t, s, m); s.Weights() != nil {
		t.Error("factors without the number of clients")
	}
}

func TestLoadWeightsFollowTheEndpointsOwn(t *testing.T) {
	m := listOf(everybody(300))
	m.Weights = make([]float64, 300)
	r := rand.New(rand.NewPCG(1, 2))
	total := 0.0
	for i := range m.Weights {
		m.Weights[i] = float64(r.IntN(4)) / 2
		total += m.Weights[i]
	}
	factors, err := LoadWeights(Client{Count: 300, Seed: 3}, m, Lot{32, 1})
	if err != nil {
		t.Fatal(err)
	}
	load := make([]float64, 300)
	for i := range 300 {
		got, _ := DealLot(Client{Index: i, Seed: 3}, m, Lot{32, 1})
		sum := 0.0
		for _, at := range got {
			sum += factors[at] * m.Weights[at]
		}
		for _, at := range got {
			load[at] += factors[at] * m.Weights[at] / sum
		}
	}
	for i, got := range load {
		if want := m.Weights[i] / total * 300; math.Abs(got-want) > 0.02*want {
			t.Errorf("endpoint %d of weight %v has the load %.3f, want %.3f", i, m.Weights[i], got, want)
		}
	}
	if _, err := LoadWeights(Client{}, m, Lot{32, 1}); err == nil {
		t.Error("no number of clients is accepted")
	}
	if _, err := LoadWeights(Client{Count: MaxClients}, m, Lot{1, 1}); err == nil {
		t.Error("too many shares are accepted")
	}
	for i := range m.Weights {
		m.Weights[i] = 0
	}
	if f, err := LoadWeights(Client{Count: 20}, m, Lot{32, 1}); err != nil || slices.Max(f) != 1 || slices.Min(f) != 1 {
		t.Errorf("where nobody has weight the factors are %v, %v", f, err)
	}
}

func TestSizeFollowsTheLoad(t *testing.T) {
	m := listOf(everybody(300))
	for a := UseRendezvous; a <= UseDeterministic; a++ {
		s := newSelector(t, Config{Algorithm: a, Size: 15, MaxSize: 60, LoadPerEndpoint: 10, ClientIndex: IndexOf(2), ClientCount: 100})
		before := update(t, s, m)
		for _, v := range []struct {
			load float64
			size int
		}{{0, 15}, {180, 15}, {190, 19}, {230, 19}, {150, 19}, {1e9, 60}, {370, 60}, {350, 35}, {210, 35}, {-1, 15}, {math.NaN(), 15}, {math.Inf(1), 60}} {
			got, changed := s.SetLoad(v.load)
			if s.Size() != v.size || changed == slices.Equal(before, got) {
				t.Errorf("%v: load %v gives size %d, changed %v from %v to %v, want %d", a, v.load, s.Size(), changed, before, got, v.size)
			}
			before = got
		}
	}
	s := newSelector(t, Config{ClientIndex: IndexOf(2), Size: 15, MaxSize: 60, LoadPerEndpoint: 10})
	narrow := update(t, s, m)
	wide, changed := s.SetLoad(600)
	if !changed || len(wide) < 3*len(narrow) {
		t.Errorf("%v becomes %v", narrow, wide)
	}
	s = newSelector(t, Config{})
	want := update(t, s, m)
	if got, changed := s.SetLoad(1e9); changed || !slices.Equal(got, want) {
		t.Error("a fixed size follows the load")
	}
}

// Weights are for picking: they move connections only where a ring is divided by them.
func TestWeightsMoveNoConnectionsOfTheSelector(t *testing.T) {
	for a := Auto; a <= UseDeterministic; a++ {
		s := newSelector(t, Config{Algorithm: a, ClientIndex: IndexOf(3), ClientCount: 50, Seed: 4, Size: 12})
		m := listOf(everybody(100))
		before := update(t, s, m)
		m.Weights = make([]float64, 100)
		for i := range m.Weights {
			m.Weights[i] = float64(i % 7)
		}
		after := update(t, s, m)
		if moved := !slices.Equal(before, after); moved != (a == UseAperture) {
			t.Errorf("%v: weights change %v to %v", a, before, after)
		}
	}
}

func TestLoadBeforeTheFirstListCounts(t *testing.T) {
	s := newSelector(t, Config{Algorithm: UseRendezvous, Size: 15, MaxSize: 60, LoadPerEndpoint: 10})
	if got, changed := s.SetLoad(400); changed || len(got) != 0 {
		t.Errorf("without a list it is %v, changed %v", got, changed)
	}
	if got := update(t, s, listOf(everybody(100))); len(got) != 40 {
		t.Errorf("%d endpoints, want 40", len(got))
	}
}

// So many clients that nobody wants to deal for all of them: the subset is there all the same.
func TestTooManyClientsToEvenOutAreWarnedOf(t *testing.T) {
	s := newSelector(t, Config{LotSize: 2, ClientIndex: IndexOf(3), ClientCount: MaxClients})
	got := update(t, s, listOf(everybody(50)))
	if len(got) == 0 || s.Weights() != nil {
		t.Errorf("%v with the factors %v", got, s.Weights())
	}
	if w := strings.Join(s.Warnings(), ""); !strings.Contains(w, "the load is not evened out") {
		t.Errorf("the warnings are %q", w)
	}
}

// Bounds that are near the size are reached, and left.
func TestSizeReachesItsBounds(t *testing.T) {
	for _, most := range []int{21, 24, 33} {
		s := newSelector(t, Config{Size: 20, MaxSize: most, LoadPerEndpoint: 2, Seed: 3})
		update(t, s, listOf(everybody(100)))
		for _, step := range []struct {
			load float64
			want int
		}{{0, 20}, {50, 20}, {51, min(most, 26)}, {1000, most}, {40, most}, {2 * 0.6 * float64(most), most}, {0, 20}, {math.Inf(1), most}, {math.NaN(), 20}, {-1, 20}} {
			if got, _ := s.SetLoad(step.load); s.Size() != step.want || len(got) != step.want {
				t.Errorf("up to %d, a load of %v: %d endpoints of a size of %d, want %d", most, step.load, len(got), s.Size(), step.want)
			}
		}
	}
}

// A configuration that differs in something else keeps the lot and the size.
func TestResumedSelectorsKeepWhatWasHeld(t *testing.T) {
	c := Config{Size: 10, ClientIndex: IndexOf(3), Seed: 1}
	s := newSelector(t, c)
	update(t, s, listOf(everybody(300)))
	want := update(t, s, listOf(everybody(460)))
	c.MinAvailable, c.ClientCount = 2, 50
	next := newSelector(t, c)
	next.Resume(nil)
	next.Resume(s)
	if got := update(t, next, listOf(everybody(460))); !slices.Equal(got, want) || next.Lot() != 32 {
		t.Errorf("%v became %v, in lots of %d", want, got, next.Lot())
	}
	if next.Resume(newSelector(t, c)); next.Lot() != 32 {
		t.Error("a selector with a list took another lot")
	}
	ring := newSelector(t, Config{Algorithm: UseRendezvous, ClientIndex: IndexOf(3)})
	ring.Resume(s)
	if got := update(t, ring, listOf(everybody(460))); ring.Lot() != 0 || len(got) != 20 {
		t.Errorf("rendezvous has a lot of %d, and %d endpoints", ring.Lot(), len(got))
	}
	for most, want := range map[int]int{0: 20, 30: 30, 60: 50} {
		wide := newSelector(t, Config{Size: 20, MaxSize: 60, LoadPerEndpoint: 1})
		wide.SetLoad(50)
		c := Config{Size: 20, MaxSize: most}
		if most > 0 {
			c.LoadPerEndpoint = 1
		}
		narrow := newSelector(t, c)
		if narrow.Resume(wide); narrow.Size() != want {
			t.Errorf("up to %d: the size is %d, want %d", most, narrow.Size(), want)
		}
	}
}

func TestSettingsWithoutEffectAreWarnedOf(t *testing.T) {
	for text, c := range map[string]Config{
		"Config.ClientCount, 5":   {ClientCount: 5},
		"Config.LotSize, 32":      {LotSize: 32},
		"Members.Ordinals is nil": {Algorithm: UseRocksteadier, ClientIndex: IndexOf(1)},
	} {
		s := newSelector(t, c)
		m := listOf(everybody(100))
		m.Ordinals = nil
		update(t, s, m)
		if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], text) {
			t.Errorf("%+v is warned of with %q, want %q", c, w, text)
		}
	}
	if w := (Config{ClientCount: 5, LotSize: 32, ClientIndex: IndexOf(1)}).Warnings(); w != nil {
		t.Errorf("what has an effect is warned of: %q", w)
	}
	s := newSelector(t, Config{Algorithm: UseRocksteadier, ClientIndex: IndexOf(1)})
	if s.Warnings() != nil {
		t.Error("there is no list yet")
	}
	m := listOf(everybody(100))
	m.Ordinals = everybody(100)
	if update(t, s, m); s.Warnings() != nil {
		t.Errorf("with ordinals: %q", s.Warnings())
	}
}

func TestIndexThatIsNotFoundIsToldWithTheRest(t *testing.T) {
	_, err := NewSelector(Config{Size: -1, ClientIndex: IndexFromEnv("EVENKEEL_TEST_NOT_SET")})
	for _, want := range []string{"Size is -1", "EVENKEEL_TEST_NOT_SET"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
}
