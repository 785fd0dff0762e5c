package subset

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The load of every endpoint is exactly in proportion to its weight, whatever the
// numbers.
func TestApertureIsExactlyEven(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		m := some(r, 1+r.IntN(60))
		count := 1 + r.IntN(60)
		size := 1 + r.IntN(20)
		load, total := make([]float64, len(m.IDs)), 0.0
		for i := range m.IDs {
			total += weightOf(m, i)
		}
		for i := range count {
			got, parts, err := Aperture(Client{Index: i, Count: count, Seed: 5}, m, size)
			if err != nil || len(got) != len(parts) || len(got) == 0 {
				t.Fatalf("%v, %v, %v", got, parts, err)
			}
			sum := 0.0
			for k, at := range got {
				if parts[k] <= 0 || parts[k] > 1 {
					t.Fatalf("a part of %v", parts[k])
				}
				sum += parts[k] * weightOf(m, at)
			}
			for k, at := range got {
				load[at] += parts[k] * weightOf(m, at) / sum
			}
		}
		for i, got := range load {
			if want := weightOf(m, i) / total * float64(count); math.Abs(got-want) > 1e-6 {
				t.Fatalf("%d clients, size %d: endpoint %d of weight %v has the load %v, want %v", count, size, i, weightOf(m, i), got, want)
			}
		}
	}
}

// weightOf is 1 for all if nobody has any weight.
func weightOf(m Members, i int) float64 {
	if m.Weights == nil || slices.Max(m.Weights) == 0 {
		return 1
	}
	return m.Weights[i]
}

func TestApertureIsAsWideAsItSays(t *testing.T) {
	all := listOf(everybody(300))
	for i := range 300 {
		got, parts, err := Aperture(Client{Index: i, Count: 300}, all, 10)
		if err != nil || len(got) != 10 || slices.Min(parts) != 1 {
			t.Fatalf("client %d of 300 has %v in the parts %v, %v; want ten whole ones", i, got, parts, err)
		}
		got, _, _ = Aperture(Client{Index: i, Count: 301}, all, 10)
		if len(got) < 10 || len(got) > 13 {
			t.Errorf("client %d of 301 has %d, want 10 to 13", i, len(got))
		}
	}
	if _, _, err := Aperture(Client{}, all, 10); err == nil {
		t.Error("no number of clients is accepted")
	}
	// Two clients of twenty endpoints have ten each at least, or some would have nobody.
	if got, _, _ := Aperture(Client{Index: 1, Count: 2}, listOf(everybody(20)), 3); len(got) != 10 {
		t.Errorf("a client of two has %d of 20, want 10", len(got))
	}
}

// With ordinals that stay, one endpoint moves what it has itself; without, most move.
func TestRocksteadierNeedsStableOrdinals(t *testing.T) {
	f := fleet{algorithm: UseRocksteadier, clients: 300, size: 10, seed: 3}
	e := f.choose(t, everybody(300)).measure(everybody(300), nil, nil, nil)
	if e.least != 10 || e.most != 10 {
		t.Errorf("%d to %d clients for each endpoint, want 10", e.least, e.most)
	}
	removal, addition := f.changes(t, everybody(300), 10)
	if removal > 11 || addition > 11 {
		t.Errorf("a removal opens %.1f and an addition %.1f, want about 10", removal, addition)
	}
	list := listOf(everybody(300))
	list.Ordinals = nil
	moved := 0
	for i := range f.clients {
		a, _ := Rocksteadier(Client{Index: i, Seed: 3}, list, 10)
		b, _ := Rocksteadier(Client{Index: i, Seed: 3}, Members{IDs: list.IDs[150:]}, 10)
		for _, at := range b {
			if !slices.Contains(a, at+150) {
				moved++
			}
		}
	}
	if moved < 1000 {
		t.Errorf("without ordinals %d moved, want most", moved)
	}
}

func TestRocksteadierWithHolesStaysEven(t *testing.T) {
	worst := 0.0
	for seed := range hashSeeds {
		r := rand.New(rand.NewPCG(uint64(seed), 23))
		list := r.Perm(333)[:300]
		f := fleet{algorithm: UseRocksteadier, clients: 300, size: 10, seed: uint64(seed)}
		worst = max(worst, f.choose(t, list).measure(list, nil, nil, nil).clients)
	}
	bar(t, "clients per endpoint with a tenth of holes, most to mean, worst seed", worst, 1.5)
}

// The leftover of a round is not used in it, and every other endpoint exactly once.
func TestDeterministicRoundUsesEndpointsOnce(t *testing.T) {
	m := listOf(everybody(305))
	for round := range 4 {
		times := make([]int, 305)
		for i := range 30 {
			got, err := Deterministic(Client{Index: 30*round + i}, m, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range got {
				times[at]++
			}
		}
		left := 0
		for _, n := range times {
			if n > 1 {
				t.Fatalf("round %d has an endpoint %d times", round, n)
			}
			left += 1 - n
		}
		if left != 5 {
			t.Errorf("round %d leaves %d, want 5", round, left)
		}
	}
}

// Each lot of endpoints is shuffled by itself, or a client would have the same place in all.
func TestRocksteadierTakesDifferentPlaces(t *testing.T) {
	m := listOf(everybody(300))
	for i := range 50 {
		got, err := Rocksteadier(Client{Index: i, Seed: 3}, m, 10)
		if err != nil {
			t.Fatal(err)
		}
		places := map[int]bool{}
		for _, at := range got {
			places[at%lotOfTen] = true
		}
		if len(places) < 3 {
			t.Errorf("client %d has the places %v of ten lots", i, places)
		}
	}
}

func TestShufflesPutEverybodyEverywhere(t *testing.T) {
	const n, times = 7, 14_000
	var counts [n][n]float64
	for i := range times {
		list := everybody(n)
		d := draws(mix2(5, uint64(i)))
		shuffle(list, d.below)
		for place, v := range list {
			counts[v][place]++
		}
	}
	for v := range n {
		for place := range n {
			const p = 1.0 / n
			if off := math.Abs(counts[v][place]/times - p); off > 4.5*math.Sqrt(p*(1-p)/times) {
				t.Errorf("%d is in place %d in %.4f, want %.4f", v, place, counts[v][place]/times, p)
			}
		}
	}
}
