package picker

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func sticky(kind HashTable, keys int, ttl time.Duration) Hash {
	return Hash{Table: kind, Fallback: Random{}, StickyKeys: keys, StickyTTL: ttl}
}

// A key stays where it is while that is available: endpoints come and go, the order of the list
// changes, others are down, load is high. Only the keys of an endpoint that is gone move, and
// those of one that is down for a second are back afterwards.
func TestHashStickyKeysStayThroughUpdates(t *testing.T) {
	for _, kind := range hashKinds {
		r := rand.New(rand.NewPCG(31, uint64(kind)))
		c := newHashClient(t, sticky(kind, 2000, 0), hashList(20, false))
		all := hashList(60, true)
		at := map[uint64]string{}
		out := map[string]bool{}
		for range 60 {
			here := map[string]bool{}
			for i := range c.m.Len() {
				here[c.m.Endpoint(i).ID] = true
			}
			for k := range 300 {
				key := hashKey(k)
				got := c.owner(key)
				was, ok := at[key]
				switch {
				case !ok || !here[was]:
					at[key] = got
				case got != was && !out[was]:
					t.Fatalf("%v: key %d moved from %s, which is available, to %s", kind, k, was, got)
				}
			}
			list := slices.Clone(all)
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			c.update(list[:20+r.IntN(40)])
			clear(out)
			if r.IntN(2) == 0 {
				i := r.IntN(c.m.Len())
				out[c.m.Endpoint(i).ID] = true
				c.without(i)
			}
			c.now += int64(time.Second)
			c.sweep()
		}
	}
}

// A key that found its owner full stays where it went, and one whose endpoint fills up stays.
func TestHashStickyKeysStayUnderLoad(t *testing.T) {
	c := newHashClient(t, sticky(Rendezvous, 100, 0), hashList(10, false))
	_, first := c.pick(keyed(5))
	for k := range 300 {
		if _, i := c.pick(keyed(5)); i != first {
			t.Fatalf("request %d of the key went to %d, want %d", k, i, first)
		}
	}
	// Another key of the same owner is new, and goes elsewhere.
	for k := uint64(6); ; k++ {
		if c.p.(*hashed).table.lookup(k) == first {
			p, there := c.pick(keyed(k))
			if there == first {
				t.Errorf("a new key went to a full endpoint")
			}
			p.Done(c.now, Result{Outcome: Success})
			if _, i := c.pick(keyed(k)); i != there {
				t.Errorf("it went to %d, and then to %d", there, i)
			}
			return
		}
	}
}

// A retry elsewhere does not move the key.
func TestHashStickyKeysSurviveRetries(t *testing.T) {
	list := hashList(10, false)
	c := newHashClient(t, sticky(Maglev, 100, 0), list)
	order := candidates(t, Hash{}, list, 5)
	p, first := c.pick(keyed(5))
	r := keyed(5)
	r.Avoid = []*Record{p.Record()}
	if _, i := c.pick(r); first != order[0] || i != order[1] {
		t.Errorf("the request went to %d, the retry to %d, want %d and %d", first, i, order[0], order[1])
	}
	if _, i := c.pick(keyed(5)); i != first {
		t.Errorf("after a retry the key goes to %d, want %d", i, first)
	}
}

// An endpoint that is down for a moment has its keys back, and so has one whose keys nobody
// asked for meanwhile. After a thirty-second of the TTL they belong to where they went.
func TestHashStickyKeysWaitForAnEndpointThatBlinks(t *testing.T) {
	const ttl = 64 * time.Second // a tick is a second
	for _, c := range []struct {
		name string
		uses []time.Duration // after the endpoint went; below 0 they are retries
		back time.Duration
		home bool
	}{
		{"a blink", []time.Duration{0, 500 * time.Millisecond}, 900 * time.Millisecond, true},
		{"nobody asked", nil, 50 * time.Second, true},
		{"one asked, long ago", []time.Duration{time.Second}, 50 * time.Second, true},
		{"an outage", []time.Duration{0, 2500 * time.Millisecond}, 3 * time.Second, false},
		{"an outage that retries saw", []time.Duration{0, -2500 * time.Millisecond}, 3 * time.Second, true},
	} {
		list := hashList(10, false)
		client := newHashClient(t, sticky(Rendezvous, 100, ttl), list)
		key := hashKey(3)
		order := candidates(t, Hash{Table: Rendezvous}, list, key)
		home, next := list[order[0]].ID, list[order[1]].ID
		if got := client.owner(key); got != home {
			t.Fatalf("the key goes to %s, want %s", got, home)
		}
		client.now += int64(20 * time.Second) // it is no rule about the time since the last use
		gone := client.now
		client.without(order[0])
		for _, at := range c.uses {
			client.now = gone + int64(max(at, -at))
			r := keyed(key)
			if at < 0 {
				r.Avoid = []*Record{client.m.Record(order[5])}
			}
			p, i := client.pick(r)
			p.Done(client.now, Result{Outcome: Success})
			if got := list[i].ID; got != next {
				t.Errorf("%s: meanwhile the key goes to %s, want %s", c.name, got, next)
			}
		}
		client.now = gone + int64(c.back)
		client.available(nil)
		for range 5 {
			want := home
			if !c.home {
				want = next
			}
			if got := client.owner(key); got != want {
				t.Errorf("%s: afterwards the key goes to %s, want %s", c.name, got, want)
			}
			client.now += int64(40 * time.Second)
			// One blink says nothing about the next.
			client.without(order[0])
			client.owner(key)
			client.available(nil)
		}
	}
}

// A key that is not used for the TTL goes home; one that is used now and then stays.
func TestHashStickyKeysExpireWhenUnused(t *testing.T) {
	ttl := time.Minute
	list := hashList(10, false)
	c := newHashClient(t, sticky(Rendezvous, 100, ttl), list)
	key := hashKey(3)
	home := c.p.(*hashed).table.lookup(key)
	away := func() (id string) { // the key, bound to its second candidate
		c.without(home)
		for range 2 {
			id = c.owner(key)
			c.now += int64(ttl) / 30
		}
		c.available(nil)
		return id
	}
	id := away()
	for range 10 {
		c.now += int64(ttl) * 9 / 10
		if got := c.owner(key); got != id {
			t.Fatalf("a key in use went from %s to %s", id, got)
		}
	}
	c.now += int64(ttl) * 21 / 20
	if got := c.owner(key); got != list[home].ID {
		t.Errorf("a forgotten key went to %s, want %s", got, list[home].ID)
	}
	// Without an instant, the sweep's counts.
	away()
	if c.policy.Needs()&^needTotal != 0 {
		t.Fatal("the policy learns")
	}
	c.now += int64(ttl) * 2
	c.sweep()
	p, i, err := c.s.Pick(keyed(key), 0)
	if err != nil || i != home {
		t.Errorf("without an instant it went to %d, %v, want %d", i, err, home)
	}
	p.Done(0, Result{})
	// A clock that steps back forgets nothing.
	id = away()
	c.now -= int64(ttl) * 2
	if got := c.owner(key); got != id {
		t.Errorf("the clock stepped back, and the key went from %s to %s", id, got)
	}
}

// As many keys as were asked for are remembered, nearly all of them; ten times as many take
// no more memory, and the last ones are there.
func TestHashStickyKeysAreBounded(t *testing.T) {
	for _, keys := range []int{1, 7, 100, 1000, 5000} {
		k := newStickyKeys(Hash{StickyKeys: keys})
		places := len(k.sets) * stickyWays
		if places < 2*keys || places > max(4*keys, stickyWays) {
			t.Errorf("%d keys have %d places", keys, places)
		}
		r := rand.New(rand.NewPCG(1, uint64(keys)))
		all := make([]uint64, 10*keys)
		for i := range all {
			all[i] = r.Uint64()
			k.bind(all[i], uint32(i+1), uint32(i*stickyTicks/len(all)))
		}
		found := 0
		for i := len(all) - keys; i < len(all); i++ {
			switch got := k.find(all[i], stickyTicks).serial(); got {
			case uint32(i + 1):
				found++
			case 0:
			default:
				t.Fatalf("key %d has the endpoint of another: %d", i, got)
			}
		}
		if float64(found) < 0.97*float64(keys) {
			t.Errorf("%d of the last %d keys are remembered", found, keys)
		}
		if len(k.sets)*stickyWays != places {
			t.Error("it has grown")
		}
	}
}

// A naive map says the same as long as nothing has to give way.
func TestStickyKeysAgreeWithAMap(t *testing.T) {
	type entry struct{ serial, tick uint32 }
	r := rand.New(rand.NewPCG(4, 9))
	k := newStickyKeys(Hash{StickyKeys: 1000})
	naive := map[uint64]entry{}
	tick := uint32(math.MaxUint32 - 500) // the width is passed on the way
	for step := range 50_000 {
		key := r.Uint64N(60) * 0x9e3779b97f4a7c15
		switch r.IntN(20) {
		case 0:
			tick += r.Uint32N(30)
		case 1, 2, 3:
			e := entry{1 + r.Uint32N(1000), tick}
			k.bind(key, e.serial, e.tick)
			naive[key] = e
		default:
			e, ok := naive[key]
			if ok && int32(tick-e.tick) > stickyTicks {
				delete(naive, key)
				ok = false
			}
			want := uint32(0)
			if ok {
				want = e.serial
				naive[key] = entry{e.serial, tick}
			}
			b := k.find(key, tick)
			if got := b.serial(); got != want {
				t.Fatalf("step %d: key %#x has endpoint %d, want %d", step, key, got, want)
			}
			if want != 0 {
				b.used(tick)
			}
		}
	}
}

// A place that somebody is about to write counts for nobody, and is nobody else's to take.
func TestStickyKeysLeaveClaimedPlacesAlone(t *testing.T) {
	k := newStickyKeys(Hash{StickyKeys: 1})
	set := &k.sets[0]
	for w := range set {
		set[w].key.Store(uint64(w))
		set[w].data.Store(stickyClaimed)
	}
	k.bind(3, 9, 1)
	if got := k.find(3, 1).serial(); got != 0 || set[3].data.Load() != stickyClaimed {
		t.Errorf("a claimed place was written: %d, %#x", got, set[3].data.Load())
	}
	set[5].data.Store(0)
	k.bind(3, 9, 1)
	if got := k.find(3, 1).serial(); got != 9 || set[5].key.Load() != 3 {
		t.Errorf("a free place was not used: %d, %d", got, set[5].key.Load())
	}
}

// Many goroutines bind and find few keys in few places: no key is ever seen with an endpoint
// that it was not bound to.
func TestStickyKeysNeverMixUpKeys(t *testing.T) {
	k := newStickyKeys(Hash{StickyKeys: 4})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for step := range uint32(400_000) {
				key := 1 + r.Uint64N(200)
				if step%3 == 0 {
					k.bind(key, uint32(key)<<8|r.Uint32N(256), step/10_000)
					continue
				}
				b := k.find(key, step/10_000)
				if got := b.serial(); got != 0 && got>>8 != uint32(key) {
					t.Errorf("key %d has the endpoint of key %d", key, got>>8)
					return
				}
				switch {
				case b.serial() == 0:
				case step%3 == 1:
					b.used(step / 10_000)
				default:
					b.missed(step / 10_000)
				}
			}
		})
	}
	wg.Wait()
	for s := range k.sets {
		for w := range k.sets[s] {
			if k.sets[s][w].data.Load() == stickyClaimed {
				t.Error("a place is still claimed")
			}
		}
	}
}

func TestSerialTableFindsEverybodyAndNobodyElse(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, n := range []int{0, 1, 2, 3, 64, 1000} {
		records := make([]*Record, n)
		for i := range records {
			records[i] = &Record{serial: uint32(i*3 + 1)}
		}
		r.Shuffle(n, func(i, j int) { records[i], records[j] = records[j], records[i] })
		table := newSerialTable(records)
		for i, rec := range records {
			if got := table.index(rec.serial); got != i {
				t.Fatalf("n=%d: serial %d is at %d, want %d", n, rec.serial, got, i)
			}
			if got := table.index(rec.serial + 1); got != -1 {
				t.Fatalf("n=%d: serial %d is at %d, and nobody has it", n, rec.serial+1, got)
			}
		}
	}
}

// What is remembered outlives another policy setting, and not another size.
func TestHashStickyKeysAreKeptWithTheirSettings(t *testing.T) {
	h := sticky(Maglev, 100, 0)
	c := newHashClient(t, h, hashList(5, false))
	k := c.p.(*hashed).sticky
	h.LoadFactor, h.Table = 2, Ring
	c.use(h)
	if c.p.(*hashed).sticky != k {
		t.Error("another LoadFactor and Table forgot the keys")
	}
	h.StickyTTL = time.Hour
	c.use(h)
	if c.p.(*hashed).sticky == k {
		t.Error("another TTL kept the ticks of the old one")
	}
	h.StickyKeys, h.StickyTTL = 0, 0
	c.use(h)
	if c.p.(*hashed).sticky != nil {
		t.Error("stickiness cannot be switched off")
	}
}
