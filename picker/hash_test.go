package picker

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/hash"
)

// Random picks, ends, failures and lists, each pick compared with the definition.
func TestHashAgreesWithTheDefinition(t *testing.T) {
	for _, kind := range hashKinds {
		for _, weighted := range []bool{false, true} {
			h := Hash{Table: kind, Size: 251, Points: 40, Seed: 5, MinCapacity: 2, Fallback: Random{}}
			r := rand.New(rand.NewPCG(uint64(kind), 7))
			all := hashList(24, weighted)
			o := &hashModel{h: h, list: all[:12], out: map[string]bool{}, loads: map[string]int{}, walks: map[uint64][]int{}}
			c := newHashClient(t, h, o.list)
			var open []Pick
			var at []string
			spilled := 0
			for step := range 4000 {
				switch x := r.IntN(100); {
				case x < 2:
					list := slices.Clone(all)
					r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
					o.list, o.walks = list[:4+r.IntN(20)], map[uint64][]int{}
					c.update(o.list)
					fallthrough
				case x < 6:
					clear(o.out)
					var out []int
					for i, e := range o.list {
						if r.IntN(4) == 0 && len(out) < len(o.list)-1 {
							o.out[e.ID] = true
							out = append(out, i)
						}
					}
					c.without(out...)
				case x < 60-min(len(open), 30):
					key := hashKey(r.IntN(30))
					want := o.choose(t, key, c.p.(*hashed).totals.recent.Load())
					if want == "" {
						t.Fatal("the model has no answer")
					}
					p, i := c.pick(keyed(key))
					if got := c.m.Endpoint(i).ID; got != want {
						t.Fatalf("%v, step %d: key %#x went to %s, want %s", kind, step, key, got, want)
					}
					if first := o.list[o.walks[key][0]]; first.ID != want && !o.out[first.ID] {
						spilled++
					}
					o.loads[want]++
					open, at = append(open, p), append(at, want)
				case len(open) > 0:
					k := r.IntN(len(open))
					open[k].Done(c.now, Result{Outcome: Success})
					o.loads[at[k]]--
					open, at = slices.Delete(open, k, k+1), slices.Delete(at, k, k+1)
				}
			}
			if spilled == 0 {
				t.Errorf("%v: nothing was ever full", kind)
			}
		}
	}
}

// Twenty clients that learn of the endpoints in twenty orders send each key the same way, with
// everybody up and with some down.
func TestHashClientsAgreeWhateverTheOrder(t *testing.T) {
	for _, kind := range hashKinds {
		r := rand.New(rand.NewPCG(3, 4))
		list := hashList(60, true)
		down := map[string]bool{list[3].ID: true, list[40].ID: true, list[41].ID: true}
		want := map[uint64]string{}
		var print uint64
		for client := range 20 {
			mine := slices.Clone(list)
			r.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			c := newHashClient(t, Hash{Table: kind, Fallback: Random{}}, mine)
			// Some have come to the list in steps.
			if client%2 == 1 {
				c.update(mine[:30])
				c.update(mine)
			}
			stats, ok := c.s.HashStats()
			if !ok || client > 0 && stats.Fingerprint != print {
				t.Fatalf("%v: client %d has another fingerprint: %v", kind, client, stats)
			}
			print = stats.Fingerprint
			for state := range uint64(2) {
				if state == 1 {
					var out []int
					for i, e := range mine {
						if down[e.ID] {
							out = append(out, i)
						}
					}
					c.without(out...)
				}
				for k := range 500 {
					got := c.owner(hashKey(k))
					id := uint64(k)<<1 | state
					if client == 0 {
						want[id] = got
					} else if want[id] != got {
						t.Fatalf("%v: client %d sends key %d to %s, the first one to %s", kind, client, k, got, want[id])
					}
				}
			}
		}
	}
}

// Fingerprint is that of a table of one's own, so that a client without a Snapshot can be compared
// too. Equal ones agree on every key; those that agree need not be equal.
func TestHashFingerprintIsThatOfATable(t *testing.T) {
	list := hashList(30, true)
	var own, twice []hash.Endpoint
	for _, e := range list {
		own = append(own, hash.Endpoint{ID: e.ID, Weight: e.Weight.Value()})
		twice = append(twice, hash.Endpoint{ID: e.ID, Weight: 2 * e.Weight.Value()})
	}
	table, err := hash.NewMaglev(own, hash.MaglevConfig{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	stats, _ := newHashClient(t, Hash{Seed: 5}, list).s.HashStats()
	if stats.Fingerprint != table.Fingerprint() || stats.Stats != table.Stats() {
		t.Errorf("it is %v, want that of the table, %#x, %+v", stats, table.Fingerprint(), table.Stats())
	}
	scaled, err := hash.NewMaglev(twice, hash.MaglevConfig{Seed: 5})
	if err != nil || scaled.Fingerprint() == table.Fingerprint() {
		t.Errorf("%v, and twice the weights have the same fingerprint", err)
	}
	for k := range 1000 {
		if a, b := table.Lookup(hashKey(k)), scaled.Lookup(hashKey(k)); a != b {
			t.Fatalf("key %d is on %d, with twice the weights on %d", k, a, b)
		}
	}
}

// An endpoint that is down loses its keys to several others, nobody else's move, and it gets
// all of them back. No table is built for that.
func TestHashKeysOfAnUnavailableEndpointComeBack(t *testing.T) {
	for _, kind := range hashKinds {
		c := newHashClient(t, Hash{Table: kind, Fallback: Random{}}, hashList(30, false))
		before := make([]string, 3000)
		for k := range before {
			before[k] = c.owner(hashKey(k))
		}
		table := c.p.(*hashed).table
		gone := c.m.Endpoint(11).ID
		c.without(11)
		took := map[string]int{}
		for k, was := range before {
			got := c.owner(hashKey(k))
			switch {
			case was == gone && got == gone:
				t.Fatalf("%v: key %d went to an endpoint that is down", kind, k)
			case was == gone:
				took[got]++
			case was != got:
				t.Fatalf("%v: key %d moved from %s to %s", kind, k, was, got)
			}
		}
		if len(took) < 15 {
			t.Errorf("%v: the keys of one endpoint went to %d others", kind, len(took))
		}
		c.available(nil)
		for k, was := range before {
			if got := c.owner(hashKey(k)); got != was {
				t.Fatalf("%v: key %d is back at %s, want %s", kind, k, got, was)
			}
		}
		if c.p.(*hashed).table != table {
			t.Errorf("%v: the table was rebuilt", kind)
		}
	}
}

// Drained members are not on the table; when all are drained all are on it.
func TestHashDrainedMembersGetNothing(t *testing.T) {
	for _, kind := range hashKinds {
		list := hashList(6, false)
		list[2].Weight = WeightOf(0)
		c := newHashClient(t, Hash{Table: kind, Fallback: Random{}}, list)
		for k := range 500 {
			if got := c.owner(hashKey(k)); got == list[2].ID {
				t.Fatalf("%v: key %d went to a drained endpoint", kind, k)
			}
		}
		for i := range list {
			list[i].Weight = WeightOf(0)
		}
		c.update(list)
		used := map[string]bool{}
		for k := range 500 {
			used[c.owner(hashKey(k))] = true
		}
		if len(used) != len(list) {
			t.Errorf("%v: of %d endpoints that are all drained %d are used", kind, len(list), len(used))
		}
	}
}

// An equal list keeps the table, and so does an update of something else; other settings do
// not.
func TestHashKeepsTheTableOfAnEqualList(t *testing.T) {
	for _, kind := range hashKinds {
		h := Hash{Table: kind, Fallback: Random{}}
		list := hashList(40, true)
		c := newHashClient(t, h, list)
		table := c.p.(*hashed).table
		c.update(slices.Clone(list))
		if c.p.(*hashed).table != table {
			t.Errorf("%v: an equal list was built anew", kind)
		}
		h.LoadFactor = 2
		c.use(h)
		if c.p.(*hashed).table != table {
			t.Errorf("%v: another LoadFactor built the table anew", kind)
		}
		for _, other := range []Hash{{Table: kind, Seed: 1}, {Table: kind, Size: 251}, {Table: kind, Points: 20}, {Table: (kind + 1) % 3}} {
			c.use(h)
			table = c.p.(*hashed).table
			c.use(other)
			if c.p.(*hashed).table == table {
				t.Errorf("%+v kept the table of %+v", other, h)
			}
		}
	}
}

// A list that does not fit is served all the same, on a table that all clients agree on, and
// counted. The next one that fits is served as it was.
func TestHashListsThatDoNotFitGoByRendezvous(t *testing.T) {
	heavy := hashList(6, false)
	heavy[5].Weight = WeightOf(1e6)
	for _, tc := range []struct {
		h   Hash
		big []Endpoint
	}{
		{Hash{Table: Maglev, Size: 251}, hashList(252, false)},
		{Hash{Table: Ring}, heavy},
	} {
		tc.h.Fallback = Random{}
		c := newHashClient(t, tc.h, tc.big[:5])
		small, _ := c.s.HashStats()
		var before []string
		for k := range 300 {
			before = append(before, c.owner(hashKey(k)))
		}
		c.update(tc.big)
		stats, ok := c.s.HashStats()
		if !ok || stats.Table != Rendezvous || stats.Misfits != 1 || stats.Endpoints != len(tc.big) {
			t.Errorf("%v: a list that does not fit gives %v, %v", tc.h.Table, stats, ok)
		}
		for k := range 300 {
			want := tc.big[candidates(t, Hash{Table: Rendezvous}, tc.big, hashKey(k))[0]].ID
			if got := c.owner(hashKey(k)); got != want {
				t.Fatalf("%v: key %d went to %s, want %s", tc.h.Table, k, got, want)
			}
		}
		c.update(tc.big[:5])
		stats, _ = c.s.HashStats()
		if stats.Table != tc.h.Table || stats.Misfits != 1 || stats.Fingerprint != small.Fingerprint {
			t.Errorf("%v: afterwards there is %v", tc.h.Table, stats)
		}
		for k, was := range before {
			if got := c.owner(hashKey(k)); got != was {
				t.Fatalf("%v: key %d is now at %s, was at %s", tc.h.Table, k, got, was)
			}
		}
	}
}

func TestHashValidateNamesAllProblems(t *testing.T) {
	var none *P2C
	err := Hash{Table: 9, Size: 1000, Points: -1, LoadFactor: 1, MinCapacity: -1, StickyKeys: -1,
		StickyTTL: time.Millisecond, Fallback: none, Unbounded: true}.Validate()
	for _, want := range []string{
		"Table is 9", "Size is 1000, want a prime of 251 to 5000011", "Points is -1, want 1 to 1048576",
		"LoadFactor is 1, want above 1 to 10", "MinCapacity is -1, want 1 to 1048576", "LoadFactor is 1, want 0 with Unbounded",
		"MinCapacity is -1, want 0 with Unbounded", "StickyKeys is -1, want 0 to 16777216",
		"StickyTTL is 1ms, want 1s to 168h0m0s", "Fallback is a nil *picker.P2C",
	} {
		if err == nil || !strings.Contains(err.Error(), "picker: Hash."+want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	for _, h := range []Hash{
		{}, {Unbounded: true}, {Table: Ring, Points: 1}, {Table: Rendezvous, LoadFactor: 10, MinCapacity: 1, Seed: math.MaxUint64},
		{Size: 251, StickyKeys: 1, StickyTTL: time.Second, Fallback: P2C{}},
	} {
		if err := h.Validate(); err != nil {
			t.Errorf("%+v: %v", h, err)
		}
		if !h.UsesKey() {
			t.Errorf("%+v does not use keys", h)
		}
	}
	for _, h := range []Hash{
		{LoadFactor: math.NaN()}, {LoadFactor: math.Inf(1)}, {LoadFactor: 10.01}, {Size: 4}, {StickyTTL: 200 * time.Hour},
		{StickyKeys: 1<<24 + 1}, {Fallback: Hash{}}, {Fallback: &Hash{}}, {Fallback: P2C{Choices: 99}},
	} {
		var joined interface{ Unwrap() []error }
		if err := h.Validate(); !errors.As(err, &joined) || len(joined.Unwrap()) != 1 {
			t.Errorf("%+v: %v, want one problem", h, err)
		}
	}
	if a, b := Policy(Hash{Fallback: Random{}}), Policy(Hash{Fallback: Random{}}); a != b {
		t.Error("equal policies differ")
	}
	if HashTable(9).String() != "invalid" || Maglev.String() != "maglev" || Ring.String() != "ring" || Rendezvous.String() != "rendezvous" {
		t.Error("a table has the wrong name")
	}
}

func TestHashOfNobodyAndOne(t *testing.T) {
	c := newHashClient(t, Hash{StickyKeys: 10}, nil)
	if _, _, err := c.s.Pick(keyed(1), 1); !errors.Is(err, ErrEmpty) {
		t.Errorf("an empty list: %v", err)
	}
	if stats, ok := c.s.HashStats(); ok {
		t.Errorf("an empty list has %v", stats)
	}
	c.update(hashList(1, false))
	for k := range 20 {
		if got := c.owner(hashKey(k)); got != c.m.Endpoint(0).ID {
			t.Errorf("key %d went to %s", k, got)
		}
	}
	c.available([]int32{})
	if _, _, err := c.s.Pick(keyed(1), 1); !errors.Is(err, ErrNoneReady) {
		t.Errorf("nobody available: %v", err)
	}
	c.use(Random{})
	if _, ok := c.s.HashStats(); ok {
		t.Error("another policy has HashStats")
	}
}
