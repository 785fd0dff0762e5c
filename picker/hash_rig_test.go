package picker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/hash"
)

// hashList returns n endpoints, with weights 1 to 3 if weighted.
func hashList(n int, weighted bool) []Endpoint {
	list := make([]Endpoint, n)
	for i := range list {
		list[i].ID = fmt.Sprintf("10.0.%d.%d:80", i/256, i%256)
		if weighted {
			list[i].Weight = WeightOf(float64(i%3 + 1))
		}
	}
	return list
}

// hashClient is a pool by hand.
type hashClient struct {
	t      testing.TB
	policy Policy
	g      *Registry
	m      *Members
	p      Picker
	s      *Snapshot
	now    int64
}

func newHashClient(t testing.TB, policy Policy, list []Endpoint) *hashClient {
	t.Helper()
	if err := policy.Validate(); err != nil {
		t.Fatal(err)
	}
	c := &hashClient{t: t, policy: policy, g: NewRegistry(rand.New(rand.NewPCG(1, 2)).Uint64), now: int64(time.Second)}
	c.use(policy)
	c.update(list)
	return c
}

func (c *hashClient) use(policy Policy) {
	c.policy = policy
	c.g.Learn(policy.Needs())
	if c.m != nil {
		c.p = policy.Build(c.m, c.p)
		c.available(nil)
	}
}

func (c *hashClient) update(list []Endpoint) {
	c.t.Helper()
	m, err := c.g.Members(list, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	c.m = m
	c.p = c.policy.Build(m, c.p)
	c.available(nil)
}

// available makes those available that the list says, nil means all.
func (c *hashClient) available(list []int32) {
	c.s = NewSnapshot(c.m, list, c.policy, c.p)
}

// without makes all but some available.
func (c *hashClient) without(out ...int) {
	list := []int32{}
	for i := range c.m.Len() {
		if !slices.Contains(out, i) {
			list = append(list, int32(i))
		}
	}
	c.available(list)
}

func (c *hashClient) sweep() {
	c.g.Sweep(c.now)
	c.s.Sweep(c.now)
}

func (c *hashClient) pick(r Request) (Pick, int) {
	c.t.Helper()
	p, i, err := c.s.Pick(r, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	return p, i
}

// owner picks for key, ends the request at once, and returns who it was.
func (c *hashClient) owner(key uint64) string {
	c.t.Helper()
	p, i := c.pick(keyed(key))
	p.Done(c.now, Result{Outcome: Success})
	return c.m.Endpoint(i).ID
}

func keyed(key uint64) Request { return Request{Key: key, HasKey: true} }

// hashKey is the hash of the k-th key.
func hashKey(k int) uint64 { return hash.Sum(fmt.Sprint("key", k)) }

var hashKinds = []HashTable{Maglev, Ring, Rendezvous}

// candidates returns the candidates of key by a table of its own over the list.
func candidates(t testing.TB, h Hash, list []Endpoint, key uint64) []int {
	t.Helper()
	var ends []hash.Endpoint
	for _, e := range list {
		ends = append(ends, hash.Endpoint{ID: e.ID, Weight: e.Weight.Value()})
	}
	var err error
	var walk hash.Walk
	switch h.Table {
	case Maglev:
		var m *hash.Maglev
		if m, err = hash.NewMaglev(ends, hash.MaglevConfig{Size: h.Size, Seed: h.Seed}); err == nil {
			walk = m.Walk(key)
		}
	case Ring:
		var m *hash.Ring
		if m, err = hash.NewRing(ends, hash.RingConfig{Points: h.Points, Seed: h.Seed}); err == nil {
			walk = m.Walk(key)
		}
	case Rendezvous:
		var m *hash.Rendezvous
		if m, err = hash.NewRendezvous(ends, hash.RendezvousConfig{Seed: h.Seed}); err == nil {
			walk = m.Walk(key)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	for i, ok := walk.Next(); ok; i, ok = walk.Next() {
		order = append(order, i)
	}
	return order
}

// hashModel says who must get a request, by definition: the first available candidate with
// room, in the order of a table that was built for this list alone.
type hashModel struct {
	h     Hash
	list  []Endpoint
	out   map[string]bool
	loads map[string]int
	walks map[uint64][]int
}

func (o *hashModel) choose(t testing.TB, key uint64, recent int64) string {
	if o.walks[key] == nil {
		o.walks[key] = candidates(t, o.h, o.list, key)
	}
	total, sum := 0, 0.0
	for _, e := range o.list {
		if !o.out[e.ID] {
			total += o.loads[e.ID]
			sum += e.Weight.Value()
		}
	}
	capacity := func(e Endpoint, total int64) int {
		c := 1.25 * float64(total+1) * e.Weight.Value() / sum
		return max(int(math.Ceil(c-1e-9)), max(o.h.MinCapacity, 1))
	}
	best, ratio := "", math.Inf(1)
	for k, i := range o.walks[key] {
		e := o.list[i]
		if o.out[e.ID] {
			continue
		}
		load := o.loads[e.ID]
		// The owner is taken by the total as it was a few picks ago.
		if load < capacity(e, int64(total)) || k == 0 && load < capacity(e, recent) {
			return e.ID
		}
		if x := float64(load) / float64(capacity(e, int64(total))); x < ratio {
			best, ratio = e.ID, x
		}
	}
	return best
}
