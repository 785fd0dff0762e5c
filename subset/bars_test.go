package subset

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// meanAndHigh returns the mean of the values and the second highest of twenty, the 95 % point.
func meanAndHigh(values []float64) (mean, high float64) {
	v := slices.Clone(values)
	slices.Sort(v)
	for _, x := range v {
		mean += x / float64(len(v))
	}
	return mean, v[(len(v)*95+99)/100-1]
}

// bar fails the test when a figure is above its bar, and shows it anyway.
func bar(t *testing.T, what string, got, most float64) {
	t.Helper()
	t.Logf("%s: %.3f, bar %.2f", what, got, most)
	if !(got <= most) {
		t.Errorf("%s is %.3f, want at most %.2f", what, got, most)
	}
}

func deals(s [3]int, seed int) fleet {
	return fleet{algorithm: UseDeal, clients: s[0], size: s[2], seed: uint64(seed), exact: DefaultExact}
}

func TestDealGivesEveryEndpointTheSameNumberOfClients(t *testing.T) {
	for _, s := range goalFleets {
		worst := 0.0
		for seed := range hashSeeds {
			e := deals(s, seed).choose(t, everybody(s[1])).measure(everybody(s[1]), nil, nil, nil)
			worst = max(worst, e.clients)
		}
		bar(t, fmt.Sprintf("%v clients per endpoint, most to mean", s), worst, 1.10)
	}
}

func TestDealMovesLittleForOneEndpoint(t *testing.T) {
	for _, s := range goalFleets {
		var removals, additions []float64
		for seed := range hashSeeds {
			f := deals(s, seed)
			removal, addition := f.changes(t, everybody(s[1]), 3)
			removals, additions = append(removals, removal/f.least(s[1])), append(additions, addition/f.least(s[1]))
		}
		removal, _ := meanAndHigh(removals)
		addition, _ := meanAndHigh(additions)
		bar(t, fmt.Sprintf("%v connections opened by a removal, to the least", s), removal, 2)
		bar(t, fmt.Sprintf("%v connections opened by an addition, to the least", s), addition, 2)
	}
}

func TestDealSpreadsLoad(t *testing.T) {
	for _, s := range goalFleets {
		var loads []float64
		for seed := range hashSeeds {
			loads = append(loads, deals(s, seed).choose(t, everybody(s[1])).measure(everybody(s[1]), nil, nil, nil).load)
		}
		mean, high := meanAndHigh(loads)
		bar(t, fmt.Sprintf("%v load, most to mean, mean of seeds", s), mean, 1.40)
		bar(t, fmt.Sprintf("%v load, most to mean, 95 %% of seeds", s), high, 1.50)
	}
}

func TestDealWithTheNumberOfClientsEvensLoadOut(t *testing.T) {
	for _, s := range goalFleets {
		worst := 0.0
		all := everybody(s[1])
		for seed := range hashSeeds {
			f := deals(s, seed)
			factors, err := LoadWeights(Client{Count: s[0], Seed: f.seed}, listOf(all), f.lotFor(s[1]))
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, f.choose(t, all).measure(all, factors, nil, nil).load)
		}
		bar(t, fmt.Sprintf("%v load with factors, most to mean", s), worst, 1.02)
	}
}

// growth opens connections as a pool grows by one endpoint at a time, and holds its lots.
func growth(t *testing.T, f fleet, from, to int) (total, step int, least float64) {
	t.Helper()
	f.lot = LotSize(from, f.size, 0)
	before := f.choose(t, everybody(from))
	for n := from + 1; n <= to; n++ {
		f.lot = LotSize(n, f.size, f.lot)
		after := f.choose(t, everybody(n))
		opened := opens(before, after)
		total, step = total+opened, max(step, opened)
		least += f.least(n)
		before = after
	}
	return total, step, least
}

func TestDealGrowsCheaply(t *testing.T) {
	var ratios []float64
	for seed := range hashSeeds {
		total, step, least := growth(t, deals(goalFleets[0], seed), 260, 560)
		ratios = append(ratios, float64(total)/least)
		if seed == 0 {
			t.Logf("seed 0: %d opened from 260 to 560, at most %d at once", total, step)
		}
	}
	mean, high := meanAndHigh(ratios)
	bar(t, "connections opened by growth, to the least", mean, 2)
	bar(t, "connections opened by growth, to the least, 95 % of seeds", high, 2)
}

// The goals are for three sizes of fleet. Where a lot is just still held, the mean subset is 0.6
// or 1.5 times the size, and so are connections, which is no surprise, and their changes.
func TestDealAtTheEndsOfAHeldLot(t *testing.T) {
	for _, v := range []struct {
		endpoints           int
		addition, mean, top float64
	}{{192, 1.2, 1.5, 1.7}, {480, 2.6, 1.3, 1.4}} {
		var additions, loads []float64
		for seed := range hashSeeds {
			f := deals([3]int{300, v.endpoints, 10}, seed)
			if f.lot = 32; LotSize(v.endpoints, 10, 32) != 32 {
				t.Fatal("the lot is not held")
			}
			_, addition := f.changes(t, everybody(v.endpoints), 3)
			additions = append(additions, addition/f.least(v.endpoints))
			e := f.choose(t, everybody(v.endpoints)).measure(everybody(v.endpoints), nil, nil, nil)
			loads = append(loads, e.load)
			if e.clients > 1.10 {
				t.Errorf("%d endpoints: clients per endpoint, most to mean: %.3f", v.endpoints, e.clients)
			}
		}
		addition, _ := meanAndHigh(additions)
		mean, high := meanAndHigh(loads)
		bar(t, fmt.Sprintf("%d endpoints in lots of 32: opened by an addition, to the least", v.endpoints), addition, v.addition)
		bar(t, fmt.Sprintf("%d endpoints in lots of 32: load, most to mean", v.endpoints), mean, v.mean)
		bar(t, fmt.Sprintf("%d endpoints in lots of 32: load, most to mean, 95 %% of seeds", v.endpoints), high, v.top)
	}
}

// The two larger fleets grow in the same proportion.
func TestLongDealGrowsCheaplyAtOtherSizes(t *testing.T) {
	if os.Getenv("EVENKEEL_LONG") != "1" {
		t.Skip("EVENKEEL_LONG is not 1")
	}
	for _, s := range goalFleets[1:] {
		var ratios []float64
		for seed := range hashSeeds {
			total, _, least := growth(t, deals(s, seed), s[1]*26/30, s[1]*56/30)
			ratios = append(ratios, float64(total)/least)
		}
		mean, high := meanAndHigh(ratios)
		bar(t, fmt.Sprintf("%v connections opened by growth, to the least", s), mean, 2)
		bar(t, fmt.Sprintf("%v connections opened by growth, to the least, 95 %% of seeds", s), high, 2)
	}
}
