package subset

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// algorithms are all but Auto, as functions of one shape.
var algorithms = map[string]func(c Client, m Members, size int) ([]int, error){
	"rendezvous":    Rendezvous,
	"deterministic": Deterministic,
	"rocksteadier":  Rocksteadier,
	"deal":          Deal,
	"aperture": func(c Client, m Members, size int) ([]int, error) {
		got, _, err := Aperture(c, m, size)
		return got, err
	},
}

// some returns a list of n endpoints in random order, with random weights and ordinals that
// have holes.
func some(r *rand.Rand, n int) Members {
	m := Members{IDs: make([]string, n), Weights: make([]float64, n), Ordinals: r.Perm(2*n + 3)[:n]}
	for i, e := range r.Perm(n) {
		m.IDs[i] = endpointNames[e]
		m.Weights[i] = float64(r.IntN(4))
	}
	if r.IntN(2) == 0 {
		m.Weights = nil
	}
	if r.IntN(2) == 0 {
		m.Ordinals = nil
	}
	return m
}

func clone(m Members) Members {
	return Members{slices.Clone(m.IDs), slices.Clone(m.Weights), slices.Clone(m.Ordinals)}
}

// promise returns which sizes an algorithm may give.
func promise(name string, m Members, size int) (least, most int) {
	n := len(m.IDs)
	k := min(size, n)
	switch name {
	case "deal":
		return Lot{LotSize(n, k, 0), DefaultExact}.Band(n)
	case "aperture":
		return min(n, 1), n // depends on weights and the number of clients
	}
	return k, k
}

func TestSubsetsAreSortedDistinctAndAsLargeAsPromised(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		m := some(r, r.IntN(120))
		count := 1 + r.IntN(400)
		c := Client{Index: r.IntN(count), Count: count, Seed: r.Uint64()}
		size := 1 + r.IntN(40)
		before := clone(m)
		for name, choose := range algorithms {
			got, err := choose(c, m, size)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			least, most := promise(name, m, size)
			if len(got) < least || len(got) > most {
				t.Errorf("%s gives %d of %d for size %d, want %d to %d", name, len(got), len(m.IDs), size, least, most)
			}
			for i, at := range got {
				if at < 0 || at >= len(m.IDs) || i > 0 && at <= got[i-1] {
					t.Fatalf("%s gives %v of %d", name, got, len(m.IDs))
				}
			}
			if again, _ := choose(c, m, size); !slices.Equal(got, again) {
				t.Errorf("%s gives %v and then %v", name, got, again)
			}
		}
		if !same(before, m) {
			t.Fatal("the arguments have changed")
		}
	}
}

// The order of the list is the resolver's affair, and may be another each time.
func TestOrderOfTheListDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		m := some(r, 1+r.IntN(80))
		other := clone(m)
		r.Shuffle(len(m.IDs), func(i, j int) {
			other.IDs[i], other.IDs[j] = other.IDs[j], other.IDs[i]
			if m.Weights != nil {
				other.Weights[i], other.Weights[j] = other.Weights[j], other.Weights[i]
			}
			if m.Ordinals != nil {
				other.Ordinals[i], other.Ordinals[j] = other.Ordinals[j], other.Ordinals[i]
			}
		})
		c := Client{Index: r.IntN(50), Count: 50, Seed: r.Uint64()}
		for name, choose := range algorithms {
			a, err := choose(c, m, 10)
			b, err2 := choose(c, other, 10)
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			if x, y := names(m, a), names(other, b); !slices.Equal(x, y) {
				t.Errorf("%s gives %v, and in another order %v", name, x, y)
			}
		}
	}
}

func names(m Members, indices []int) []string {
	out := make([]string, len(indices))
	for k, i := range indices {
		out[k] = m.IDs[i]
	}
	slices.Sort(out)
	return out
}

// What is chosen without weights does not depend on them: a weight is an attribute.
func TestWeightsMoveNothingWhereTheyDoNotCount(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		m := some(r, 1+r.IntN(80))
		other := clone(m)
		other.Weights = make([]float64, len(m.IDs))
		for i := range other.Weights {
			other.Weights[i] = r.Float64()
		}
		for _, name := range []string{"deal", "rocksteadier", "deterministic"} {
			c, size := Client{Index: r.IntN(50), Seed: 1}, 1+r.IntN(10)
			a, _ := algorithms[name](c, m, size)
			if b, _ := algorithms[name](c, other, size); !slices.Equal(a, b) {
				t.Errorf("%s gives %v, and with other weights %v", name, a, b)
			}
		}
	}
}

// Only a ring that is divided by the number of clients depends on it.
func TestClientThatComesOrGoesMovesNothingAtOthers(t *testing.T) {
	m := listOf(everybody(300))
	for name, choose := range algorithms {
		moved := 0
		for i := range 299 {
			a, err := choose(Client{Index: i, Count: 300}, m, 10)
			b, err2 := choose(Client{Index: i, Count: 299}, m, 10)
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(a, b) {
				moved++
			}
		}
		if (moved > 0) != (name == "aperture") {
			t.Errorf("%s: %d subsets differ when a client goes", name, moved)
		}
	}
}

func TestRendezvousMovesOnlyWhatComesAndGoes(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		m := some(r, 2+r.IntN(80))
		c := Client{Seed: r.Uint64()}
		with, _ := Rendezvous(c, m, 10)
		gone := r.IntN(len(m.IDs))
		less := Members{IDs: slices.Delete(slices.Clone(m.IDs), gone, gone+1)}
		if m.Weights != nil {
			less.Weights = slices.Delete(slices.Clone(m.Weights), gone, gone+1)
		}
		without, _ := Rendezvous(c, less, 10)
		before, after := names(m, with), names(less, without)
		for _, id := range before {
			if id != m.IDs[gone] && !slices.Contains(after, id) {
				t.Fatalf("%v becomes %v when %v goes", before, after, m.IDs[gone])
			}
		}
	}
}

func TestRendezvousIsTheBeginningOfTheOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		m := some(r, r.IntN(80))
		c := Client{Seed: r.Uint64()}
		all, err := Order(c, m)
		if err != nil {
			t.Fatal(err)
		}
		size := 1 + r.IntN(30)
		got, _ := Rendezvous(c, m, size)
		if want := ascendingInts(slices.Clone(all[:min(size, len(all))])); !slices.Equal(got, want) {
			t.Errorf("Rendezvous gives %v of the order %v", got, all)
		}
	}
}

func TestRendezvousDrawsInProportionToWeights(t *testing.T) {
	m := listOf(everybody(4))
	m.Weights = []float64{1, 2, 5, 0}
	counts := make([]float64, 4)
	const draws = 20_000
	for i := range draws {
		got, err := Rendezvous(Client{Seed: mix2(1, uint64(i))}, m, 1)
		if err != nil {
			t.Fatal(err)
		}
		counts[got[0]]++
	}
	for i, w := range m.Weights {
		p := w / 8
		if d := math.Abs(counts[i]/draws - p); d > 4*math.Sqrt(p*(1-p)/draws) {
			t.Errorf("weight %v is first in %.4f, want %.4f", w, counts[i]/draws, p)
		}
	}
}

func TestWrongArgumentsAreToldAllAtOnce(t *testing.T) {
	list := Members{IDs: []string{"a", "", "a"}, Weights: []float64{1, -1, math.NaN()}, Ordinals: []int{4, 4, -1}}
	for name, choose := range algorithms {
		_, err := choose(Client{Index: -1, Count: -1}, list, -1)
		for _, want := range []string{
			`Members.IDs[1] is empty`, `Members.IDs[2] is "a" as Members.IDs[0] is`, "Members.Weights[1] is -1", "Members.Weights[2] is NaN",
			"Members.Ordinals[1] is 4 as Members.Ordinals[0] is", "Members.Ordinals[2] is -1", "Client.Index is -1", "Client.Count is -1", "size is -1",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want it to say %q", name, err, want)
			}
		}
		if _, err := choose(Client{Index: 5, Count: 5}, Members{}, 1); err == nil || !strings.Contains(err.Error(), "Client.Index is 5, want less than Client.Count, 5") {
			t.Errorf("%s: an index that is the count gives %v", name, err)
		}
		if _, err := choose(Client{Index: 1, Count: 5}, Members{IDs: []string{"a"}, Weights: []float64{1, 2}, Ordinals: []int{}}, 1); err == nil ||
			strings.Count(err.Error(), "want one for each of 1 IDs") != 2 {
			t.Errorf("%s: too many weights and too few ordinals give %v", name, err)
		}
	}
	many := Members{IDs: make([]string, 100)}
	if err := many.Validate(); err == nil || !strings.Contains(err.Error(), "and 84 more problems") {
		t.Errorf("a hundred problems give %v", err)
	}
}

func TestSizeOfAtLeastTheListIsTheList(t *testing.T) {
	for _, n := range []int{0, 1, 2, 19, 20} {
		for name, choose := range algorithms {
			for _, size := range []int{0, 20, 1 << 30} { // 0 means 20
				got, err := choose(Client{Index: 3, Count: 7}, listOf(everybody(12_000)[:n]), size)
				if err != nil || len(got) != n {
					t.Errorf("%s: size %d of %d gives %v, %v", name, size, n, got, err)
				}
			}
		}
	}
}

// Another version must not move everybody's connections: to change these is to break users.
func TestSubsetsAreThoseOfEarlierVersions(t *testing.T) {
	m := listOf(everybody(60))
	c := Client{Index: 21, Count: 40, Seed: 5}
	for name, want := range map[string][]int{
		"rendezvous":    {9, 11, 17, 29, 31, 40, 47, 51},
		"deterministic": {5, 8, 14, 29, 48, 50, 57, 59},
		"rocksteadier":  {7, 13, 17, 21, 26, 36, 44, 59},
		"deal":          {12, 15, 16, 23, 26, 29, 55, 57},
		"aperture":      {10, 17, 26, 27, 31, 34, 35, 53, 56, 58},
	} {
		if got, err := algorithms[name](c, m, 8); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s gives %v, %v, want %v", name, got, err, want)
		}
	}
	if got := Identity("web-0"); got != 0x85e5fc17013dac0b {
		t.Errorf("Identity gives %#x", got)
	}
}

func ExampleLot_Band() {
	least, most := Lot{Clients: 32, Exact: 1}.Band(300)
	fmt.Println(least, "to", most)
	// Output: 2 to 19
}
