package subset

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// fewSeeds is how many seeds are looked at where a run is long: all with EVENKEEL_LONG=1.
func fewSeeds() int {
	if os.Getenv("EVENKEEL_LONG") == "1" {
		return hashSeeds
	}
	return 4
}

// restart replaces all n endpoints in ten batches: each goes, and then as many new ones come. It
// returns the connections that are opened, to twice those there are: each has to be
// opened again, and whoever takes over from those that are away opens as many.
func restart(t *testing.T, f fleet, n int, hold bool) float64 {
	t.Helper()
	list := everybody(n)
	if hold {
		f.lot = LotSize(n, f.size, 0)
	}
	before, opened := f.choose(t, list), 0
	next := n
	for batch := range 10 {
		size := n*(batch+1)/10 - n*batch/10
		for range 2 {
			if len(list) == n {
				list = slices.Clone(list[size:])
			} else {
				for range size {
					if f.algorithm == UseRocksteadier {
						list = append(list, next-n) // the new one has the ordinal of the old one
					} else {
						list = append(list, next)
					}
					next++
				}
			}
			after := f.choose(t, list)
			opened += opens(before, after)
			before = after
		}
	}
	return float64(opened) / float64(2*f.clients*f.size)
}

func TestDealGoesThroughARollingRestart(t *testing.T) {
	for _, s := range goalFleets {
		var held []float64
		for seed := range fewSeeds() {
			held = append(held, restart(t, deals(s, seed), s[1], true))
		}
		mean, _ := meanAndHigh(held)
		most := 1.0
		if s[1] == 200 {
			// A lot of 8 for 200/20 = 10 makes subsets of 25, so that 1.25 is what there is to open again.
			most = 1.25
		}
		bar(t, fmt.Sprintf("%v connections opened by a rolling restart", s), mean, most)
	}
}

// Up and down by a tenth around the number of endpoints at which rounding doubles the lot.
func TestDealStaysCalmAroundADoubling(t *testing.T) {
	for _, s := range [][3]int{{300, 452, 10}, {1000, 905, 20}, {5000, 226, 20}} {
		f := deals(s, 1)
		swing := s[1] / 10
		f.lot = LotSize(s[1], f.size, 0)
		before, opened := f.choose(t, everybody(s[1]+swing)), 0
		const swings = 5
		for range swings {
			for _, n := range []int{s[1] - swing, s[1] + swing} {
				f.lot = LotSize(n, f.size, f.lot)
				after := f.choose(t, everybody(n))
				opened += opens(before, after)
				before = after
			}
		}
		bar(t, fmt.Sprintf("%v connections opened by a swing of a tenth", s), float64(opened)/swings/float64(2*f.clients*f.size), 2)
	}
}

func TestDealWithGapsInTheIndices(t *testing.T) {
	for _, s := range goalFleets {
		for _, gaps := range []float64{0.05, 0.1, 0.2} {
			var counts, loads []float64
			for seed := range hashSeeds {
				f := deals(s, seed)
				f.clients = int(float64(s[0]) / (1 - gaps))
				r := rand.New(rand.NewPCG(uint64(seed), 13))
				absent := map[int]bool{}
				for _, i := range r.Perm(f.clients)[:f.clients-s[0]] {
					absent[i] = true
				}
				c := f.choose(t, everybody(s[1]))
				for i := range absent {
					clear(c.rows[i])
				}
				e := c.measure(everybody(s[1]), nil, func(i int) bool { return absent[i] }, nil)
				counts, loads = append(counts, e.clients), append(loads, e.load)
			}
			mean, _ := meanAndHigh(counts)
			load, _ := meanAndHigh(loads)
			t.Logf("%v with %.0f %% of gaps: load, most to mean: %.3f", s, 100*gaps, load)
			most := map[float64]float64{0.05: 1.15, 0.1: 1.25, 0.2: 1.36}[gaps]
			bar(t, fmt.Sprintf("%v with %.0f %% of gaps: clients per endpoint, most to mean", s, 100*gaps), mean, most)
		}
	}
}

// Indices that everybody draws for themselves are no indices.
func TestDealWithRandomIndicesIsNoBetterThanRendezvous(t *testing.T) {
	for _, s := range goalFleets[:2] {
		sum := 0.0
		for seed := range fewSeeds() {
			f := deals(s, seed)
			r := rand.New(rand.NewPCG(uint64(seed), 29))
			m, c := listOf(everybody(s[1])), newConnected(s[0], s[1])
			for i := range s[0] {
				got, err := f.one(r.IntN(1<<20), m)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range got {
					c.add(i, e)
				}
			}
			sum += c.measure(everybody(s[1]), nil, nil, nil).clients
		}
		bar(t, fmt.Sprintf("%v with random indices: clients per endpoint, most to mean", s), sum/float64(fewSeeds()), 2.5)
	}
}

// Fewer clients than a lot: nobody has the endpoints that are dealt to clients that do not exist.
func TestDealWithFewerClientsThanALot(t *testing.T) {
	for _, clients := range []int{8, 20, 31} {
		unused := map[Algorithm]int{}
		for seed := range hashSeeds {
			for _, a := range []Algorithm{UseDeal, UseRendezvous} {
				f := deals([3]int{clients, 300, 10}, seed)
				f.algorithm = a
				e := f.choose(t, everybody(300)).measure(everybody(300), nil, nil, nil)
				unused[a] += e.unused
				if a == UseDeal && e.most > 1 {
					t.Errorf("%d clients of a lot of 32: an endpoint has %d", clients, e.most)
				}
			}
		}
		deal, random := float64(unused[UseDeal])/hashSeeds, float64(unused[UseRendezvous])/hashSeeds
		t.Logf("%d clients: %.1f of 300 endpoints without a client, rendezvous %.1f", clients, deal, random)
		if most := 300*(1-float64(clients)/32) + 5; deal > most || deal > random {
			t.Errorf("%d clients: %.1f of 300 endpoints have no client, want at most %.1f and rendezvous's %.1f", clients, deal, most, random)
		}
	}
}

// A third of the endpoints is dead, and the selectors add others until half of the size is alive.
func TestThirdOfTheEndpointsDead(t *testing.T) {
	for _, s := range goalFleets {
		seeds := 1
		if s[0] == 300 {
			seeds = 5
		}
		for seed := range seeds {
			r := rand.New(rand.NewPCG(uint64(seed), 17))
			dead := map[int]bool{}
			for _, e := range r.Perm(s[1])[:s[1]/3] {
				dead[e] = true
			}
			down := func(i int) bool { return dead[i] }
			all := everybody(s[1])
			bare := deals(s, seed).choose(t, all)
			topped := newConnected(s[0], s[1])
			added := 0
			for i := range s[0] {
				sel, err := NewSelector(Config{Size: s[2], ClientIndex: IndexOf(i), Seed: uint64(seed)})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := sel.Update(Members{IDs: endpointNames[:s[1]]}); err != nil {
					t.Fatal(err)
				}
				got, _ := sel.Cover(0, down)
				for _, k := range got {
					topped.add(i, k)
				}
				added += len(sel.cover.added)
			}
			was, is := bare.measure(all, nil, nil, down), topped.measure(all, nil, nil, down)
			t.Logf("%v seed %d: smallest subset alive %d, topped up %d; added %d; load, most to mean: %.2f, topped up %.2f",
				s, seed, was.smallestAlive, is.smallestAlive, added, was.load, is.load)
			if is.smallestAlive < s[2]/2 {
				t.Errorf("%v: a client has %d endpoints alive, want %d", s, is.smallestAlive, s[2]/2)
			}
			if added > s[0]*s[2]/8 {
				t.Errorf("%v: %d added to about %d, want at most an eighth", s, added, s[0]*s[2])
			}
		}
	}
}

// Half of the clients, drawn at random, have not heard of removals yet, or hold the other size of
// lot: then each lot deals an endpoint to a client by chance, and the spread is that of
// so many coins, still below that of rendezvous.
func TestDealWhileViewsDiffer(t *testing.T) {
	mixed := func(a, b *connected, seed int) *connected {
		c := newConnected(len(a.rows), 64*min(a.words, b.words))
		r := rand.New(rand.NewPCG(uint64(seed), 19))
		for i := range c.rows {
			from := a
			if r.IntN(2) == 1 {
				from = b
			}
			copy(c.rows[i], from.rows[i])
		}
		return c
	}
	for _, s := range goalFleets {
		for _, removed := range []int{1, s[1] / 10} {
			var worst float64
			for seed := range fewSeeds() {
				f := deals(s, seed)
				f.lot = LotSize(s[1], f.size, 0)
				c := mixed(f.choose(t, everybody(s[1])), f.choose(t, everybody(s[1])[removed:]), seed)
				worst = max(worst, c.measure(everybody(s[1])[removed:], nil, nil, nil).clients)
			}
			bar(t, fmt.Sprintf("%v, half do not know of %d removals: clients per endpoint, most to mean, worst seed", s, removed), worst, 1.30)
		}
		var sum float64
		for seed := range fewSeeds() {
			f, g := deals(s, seed), deals(s, seed)
			f.lot = LotSize(s[1], f.size, 0)
			g.lot = 2 * f.lot
			sum += mixed(f.choose(t, everybody(s[1])), g.choose(t, everybody(s[1])), seed).measure(everybody(s[1]), nil, nil, nil).clients
		}
		bar(t, fmt.Sprintf("%v, half hold the double lot: clients per endpoint, most to mean", s), sum/float64(fewSeeds()), 1.60)
	}
}
