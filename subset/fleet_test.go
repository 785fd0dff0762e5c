package subset

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// fleet is a number of clients with indices from 0 and the algorithm by which they choose.
type fleet struct {
	algorithm Algorithm
	clients   int
	size      int
	seed      uint64
	lot       int // of UseDeal; 0 goes by the size
	exact     int // cuts of UseDeal
}

func (f fleet) String() string {
	return fmt.Sprintf("%v, %d clients, size %d, seed %d", f.algorithm, f.clients, f.size, f.seed)
}

// connected says who is connected to whom: for each client, a set of endpoints by their
// numbers, as bits.
type connected struct {
	words int
	rows  [][]uint64
}

func newConnected(clients, endpoints int) *connected {
	c := &connected{words: (endpoints + 63) / 64, rows: make([][]uint64, clients)}
	all := make([]uint64, clients*c.words)
	for i := range c.rows {
		c.rows[i] = all[i*c.words : (i+1)*c.words]
	}
	return c
}

func (c *connected) add(client, endpoint int) {
	c.rows[client][endpoint/64] |= 1 << (endpoint % 64)
}

// each calls f with the endpoints of a client.
func (c *connected) each(client int, f func(endpoint int)) {
	for w, word := range c.rows[client] {
		for ; word != 0; word &= word - 1 {
			f(64*w + bits.TrailingZeros64(word))
		}
	}
}

func (c *connected) count(client int) int {
	n := 0
	for _, word := range c.rows[client] {
		n += bits.OnesCount64(word)
	}
	return n
}

// opens counts the connections of after that were not there before.
func opens(before, after *connected) int {
	n := 0
	for i, row := range after.rows {
		for w, word := range row {
			if w < before.words {
				word &^= before.rows[i][w]
			}
			n += bits.OnesCount64(word)
		}
	}
	return n
}

// endpointNames are the IDs of endpoints by number.
var endpointNames = func() []string {
	names := make([]string, 12_000)
	for i := range names {
		names[i] = fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255)
	}
	return names
}()

// listOf returns the list of endpoints with these numbers, which are their ordinals too.
func listOf(endpoints []int) Members {
	m := Members{IDs: make([]string, len(endpoints)), Ordinals: slices.Clone(endpoints)}
	for i, e := range endpoints {
		m.IDs[i] = endpointNames[e]
	}
	return m
}

// choose returns who is connected to whom for a list of endpoints by number.
func (f fleet) choose(t testing.TB, endpoints []int) *connected {
	t.Helper()
	m := listOf(endpoints)
	c := newConnected(f.clients, slices.Max(endpoints)+1)
	if f.algorithm == UseDeal {
		f.deal(m, endpoints, c)
		return c
	}
	for i := range f.clients {
		got, err := f.one(i, m)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range got {
			c.add(i, endpoints[k])
		}
	}
	return c
}

func (f fleet) one(i int, m Members) (got []int, err error) {
	switch f.algorithm {
	case UseRendezvous:
		return Rendezvous(Client{Seed: mix2(f.seed, uint64(i))}, m, f.size)
	case UseDeterministic:
		return Deterministic(Client{Index: i, Seed: f.seed}, m, f.size)
	case UseRocksteadier:
		return Rocksteadier(Client{Index: i, Seed: f.seed}, m, f.size)
	case UseAperture:
		got, _, err = Aperture(Client{Index: i, Count: f.clients, Seed: f.seed}, m, f.size)
		return got, err
	}
	return DealLot(Client{Index: i, Seed: f.seed}, m, f.lotFor(len(m.IDs)))
}

func (f fleet) lotFor(n int) Lot {
	lot := Lot{f.lot, f.exact}
	if lot.Clients == 0 {
		lot.Clients = LotSize(n, f.size, 0)
	}
	return lot
}

// deal is what DealLot gives to each client, whole lots at a time:
// TestWholeLotsAreDealtAsEachClientIs compares them.
func (f fleet) deal(m Members, endpoints []int, c *connected) {
	lot := f.lotFor(len(endpoints))
	hashed := m.candidates(f.seed)
	list := make([]candidate, len(hashed))
	for l := 0; l*lot.Clients < f.clients; l++ {
		copy(list, hashed)
		lot.dealAll(list, l, func(client int, got []candidate) {
			i := l*lot.Clients + client
			if i >= f.clients {
				return
			}
			for _, g := range got {
				c.add(i, endpoints[g.at])
			}
			if len(got) == 0 {
				c.add(i, endpoints[order(Client{Index: i, Seed: f.seed}.own(), m)[0]])
			}
		})
	}
}

// evenness is what matters of who is connected to whom.
type evenness struct {
	least, most   int // clients of an endpoint
	clients       float64
	load          float64 // of the busiest, to the mean
	small, large  int     // subsets
	unused        int     // endpoints without a client
	smallestAlive int     // subset without the endpoints that are dead
}

// measure looks at the endpoints of a list. Every client has the same load and spreads it
// evenly, or by factors, if there are any. Clients that are not there, and endpoints that are dead, have nothing.
func (c *connected) measure(endpoints []int, factors []float64, absent, dead func(int) bool) evenness {
	e := evenness{least: 1 << 30, small: 1 << 30, smallestAlive: 1 << 30}
	factor := map[int]float64{}
	for k, i := range endpoints {
		factor[i] = 1
		if factors != nil {
			factor[i] = factors[k]
		}
	}
	count, load := map[int]int{}, map[int]float64{}
	present := 0
	for i := range c.rows {
		if absent != nil && absent(i) {
			continue
		}
		present++
		n, sum := c.count(i), 0.0
		e.small, e.large = min(e.small, n), max(e.large, n)
		alive := 0
		c.each(i, func(k int) {
			if dead == nil || !dead(k) {
				alive++
				sum += factor[k]
			}
		})
		e.smallestAlive = min(e.smallestAlive, alive)
		c.each(i, func(k int) {
			count[k]++
			if dead == nil || !dead(k) {
				load[k] += factor[k] / sum
			}
		})
	}
	total, alive := 0, 0
	for _, k := range endpoints {
		e.least, e.most = min(e.least, count[k]), max(e.most, count[k])
		total += count[k]
		if count[k] == 0 {
			e.unused++
		}
		e.load = max(e.load, load[k])
		if dead == nil || !dead(k) {
			alive++
		}
	}
	e.clients = float64(e.most) * float64(len(endpoints)) / float64(total)
	e.load *= float64(alive) / float64(present)
	return e
}

// changes returns the mean number of connections that are opened when one of the endpoints is
// removed, and when one is added, over some of each.
func (f fleet) changes(t testing.TB, endpoints []int, each int) (removal, addition float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(f.seed, 77))
	before := f.choose(t, endpoints)
	for range each {
		i := r.IntN(len(endpoints))
		removal += float64(opens(before, f.choose(t, slices.Delete(slices.Clone(endpoints), i, i+1))))
		added := len(endpoints)
		if f.algorithm != UseRocksteadier { // whose ordinals are to stay without holes
			added += r.IntN(1000)
		}
		addition += float64(opens(before, f.choose(t, append(slices.Clone(endpoints), added))))
	}
	return removal / float64(each), addition / float64(each)
}

// least is how many connections one change has to open, if everybody keeps their size.
func (f fleet) least(n int) float64 { return float64(f.clients*f.size) / float64(n) }

// goalFleets are the fleets of the goals: clients, endpoints, size.
var goalFleets = [][3]int{{300, 300, 10}, {1000, 1000, 20}, {5000, 200, 20}}

const hashSeeds = 20
