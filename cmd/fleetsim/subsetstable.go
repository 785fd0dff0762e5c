package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel/subset"
)

// How the lists change.
const (
	subsetsChanges = 3  // single removals and additions, each from the same list
	restartBatches = 10 // of a rolling restart
	growthSteps    = 25 // of a growth by half
)

// subsetsRow is a line of the table: means over seeds, the least and most over all of them.
type subsetsRow struct {
	least, most, small, large int
	clients, load             float64
	removal, addition, client float64
	restart, growth           float64
}

// subsetsTable returns what the preset prints.
func subsetsTable(s subsetsSettings, workers int) (string, error) {
	heads := [][]string{
		{"", "clients of", "most to", "load most", "", "opened by", "", "client", "rolling", "growth"},
		{"algorithm", "an endpoint", "mean", "to mean", "subset", "removal", "addition", "added", "restart", "by half"},
	}
	lines := heads
	for _, sch := range schemes {
		row := subsetsRow{least: 1 << 30, small: 1 << 30}
		for seed := range s.seeds {
			f := &subsetsFleet{subsetsSettings: s, scheme: sch, workers: workers}
			f.seed += seed
			if err := row.measure(f, 1/float64(s.seeds)); err != nil {
				return "", fmt.Errorf("%s: %w", sch.name, err)
			}
		}
		lines = append(lines, row.cells(sch))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", wrap(fmt.Sprintf("Subsets of about %d for %s and %s, %s.", s.size,
		plural(s.clients, "client"), plural(s.endpoints, "endpoint"), plural(s.seeds, "seed"))), align(lines))
	for _, note := range subsetsNotes(s) {
		b.WriteString(wrap(note))
	}
	return b.String(), nil
}

func subsetsNotes(s subsetsSettings) []string {
	least := float64(s.clients*min(s.size, s.endpoints)) / float64(s.endpoints)
	var needs []string
	for _, sch := range schemes {
		needs = append(needs, sch.name+" "+sch.needs)
	}
	return []string{
		"A client needs: " + strings.Join(needs, "; ") + ".",
		fmt.Sprintf("opened by: connections that the clients open, and have not had before, when one endpoint is removed or added; "+
			"1× is %s of %s, what it takes if every subset keeps its size.", number(least), whole(s.clients*min(s.size, s.endpoints))),
		"client added: connections that the other clients open for it.",
		"rolling restart: all endpoints are replaced, a tenth at a time, each tenth going before the new one comes; 1× is two times all connections.",
		"growth by half: in 25 steps; 1× is what the additions take at the least.",
		"load: of equal clients that spread it evenly over their subsets, or by the weights that the algorithm gives.",
	}
}

// measure adds what one fleet does.
func (r *subsetsRow) measure(f *subsetsFleet, part float64) error {
	all := numbersTo(f.endpoints)
	before, err := f.choose(all, f.clients)
	if err != nil {
		return err
	}
	if err := r.balance(f, before, all, part); err != nil {
		return err
	}
	least := float64(f.clients * min(f.size, f.endpoints))
	if err := r.changes(f, before, all, part, least/float64(f.endpoints)); err != nil {
		return err
	}
	other, err := f.choose(all, f.clients+1)
	if err != nil {
		return err
	}
	r.client += part * float64(opened(before, other))
	restart, err := f.restart(before)
	if err != nil {
		return err
	}
	r.restart += part * float64(restart) / (2 * least)
	return r.grow(f, before, part)
}

func numbersTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (r *subsetsRow) balance(f *subsetsFleet, v views, all []int, part float64) error {
	count := make([]int, len(all))
	total := 0
	for _, own := range v {
		r.small, r.large = min(r.small, len(own)), max(r.large, len(own))
		for _, e := range own {
			count[e]++
			total++
		}
	}
	load, err := f.loads(v, all)
	if err != nil {
		return err
	}
	r.least, r.most = min(r.least, slices.Min(count)), max(r.most, slices.Max(count))
	r.clients += part * float64(slices.Max(count)*len(all)) / float64(total)
	r.load += part * slices.Max(load) * float64(len(all)) / float64(f.clients)
	return nil
}

func (r *subsetsRow) changes(f *subsetsFleet, before views, all []int, part, least float64) error {
	random := rand.New(rand.NewPCG(uint64(f.seed), 1))
	part /= subsetsChanges * least
	for range subsetsChanges {
		i := random.IntN(len(all))
		after, err := f.choose(slices.Delete(slices.Clone(all), i, i+1), f.clients)
		if err != nil {
			return err
		}
		r.removal += part * float64(opened(before, after))
		added := len(all)
		if !f.scheme.ordinals { // which have no holes where somebody numbers them
			added += random.IntN(1000)
		}
		if after, err = f.choose(append(slices.Clone(all), added), f.clients); err != nil {
			return err
		}
		r.addition += part * float64(opened(before, after))
	}
	return nil
}

// restart replaces all endpoints and returns the connections that are opened. With
// ordinals, a new endpoint has that of the one that it replaces.
func (f *subsetsFleet) restart(before views) (total int, err error) {
	n := f.endpoints
	list := numbersTo(n)
	for batch := range restartBatches {
		from, to := n*batch/restartBatches, n*(batch+1)/restartBatches
		if from == to {
			continue
		}
		kept := slices.Clone(list[to-from:])
		replaced := slices.Clone(kept)
		fresh := from + n
		if f.scheme.ordinals {
			fresh = from
		}
		for e := range to - from {
			replaced = append(replaced, fresh+e)
		}
		for _, list = range [][]int{kept, replaced} {
			after, err := f.choose(list, f.clients)
			if err != nil {
				return 0, err
			}
			total += opened(before, after)
			before = after
		}
	}
	return total, nil
}

func (r *subsetsRow) grow(f *subsetsFleet, before views, part float64) error {
	total, least := 0, 0.0
	f.lot = subset.LotSize(f.endpoints, f.size, 0)
	for step := range growthSteps {
		from, to := f.endpoints+f.endpoints*step/(2*growthSteps), f.endpoints+f.endpoints*(step+1)/(2*growthSteps)
		after, err := f.choose(numbersTo(to), f.clients)
		if err != nil {
			return err
		}
		total += opened(before, after)
		for n := from + 1; n <= to; n++ {
			least += float64(f.clients*min(f.size, n)) / float64(n)
		}
		before = after
	}
	if least > 0 {
		r.growth += part * float64(total) / least
	}
	return nil
}

func (r *subsetsRow) cells(s scheme) []string {
	return []string{
		s.name, fmt.Sprintf("%d..%d", r.least, r.most), ratio(r.clients), ratio(r.load), fmt.Sprintf("%d..%d", r.small, r.large),
		ratio(r.removal), ratio(r.addition), whole(int(r.client + 0.5)), ratio(r.restart), ratio(r.growth),
	}
}
