package httpclient

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/evenkeel/evenkeel"
)

func TestMinBackendsMakesSeveralEndpointsOfAnAddress(t *testing.T) {
	weighted := func(list []Address, weights ...float64) []Address {
		for i, w := range weights {
			list[i].Weight = evenkeel.WeightOf(w)
		}
		return list
	}
	for _, c := range []struct {
		n    int
		list []Address
		want string
	}{
		{1, addrs("10.0.0.1"), "10.0.0.1"},
		{3, addrs("10.0.0.1:80"), "10.0.0.1:80#2=0.3333 10.0.0.1:80#3=0.3333 10.0.0.1:80=0.3333"},
		{3, addrs("a:1", "b:1"), "a:1#2=0.5 a:1=0.5 b:1#2=0.5 b:1=0.5"},
		{3, addrs("a:1", "b:1", "c:1"), "a:1 b:1 c:1"},
		{2, addrs("fd00::1"), "fd00::1#2=0.5 fd00::1=0.5"},
		{4, weighted(addrs("a:1", "b:1"), 1, 3), "a:1#2=0.5 a:1=0.5 b:1#2=1.5 b:1=1.5"},
		{4, weighted(addrs("a:1", "b:1", "c:1"), 0, 2, 2), "a:1=0 b:1#2=1 b:1=1 c:1#2=1 c:1=1"},
		{2, weighted(addrs("a:1"), 0), "a:1#2=0 a:1=0"}, // somebody has to serve
		{3, addrs("a:1", "a:1#2", "b:1"), "a:1 a:1#2 b:1"},
		{5, addrs("a:1#7"), "a:1#7"},
		{9, nil, ""},
	} {
		before := slices.Clone(c.list)
		if got := listed(multiplied(c.list, c.n)); got != c.want {
			t.Errorf("%d of %v: %s, want %s", c.n, c.list, got, c.want)
		}
		if !slices.Equal(c.list, before) {
			t.Errorf("the argument is now %v", c.list)
		}
	}
}

func TestMinBackendsKeepsSharesBoundsAndProblems(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + rnd.IntN(maxNumber)
		var list []Address
		used := 0
		for i := range 1 + rnd.IntN(40) {
			a := Address{Addr: fmt.Sprintf("h%d:1", i)}
			if rnd.IntN(3) > 0 {
				a.Weight = evenkeel.WeightOf(float64(rnd.IntN(4)))
			}
			if a.Weight != drained {
				used++
			}
			list = append(list, a)
		}
		if used == 0 {
			continue
		}
		longer := multiplied(list, n)
		if _, err := locate(longer, 80); err != nil {
			t.Fatal(err)
		}
		sums, serving := map[string]float64{}, 0
		for _, a := range longer {
			addr, _ := cutNumber(a.Addr)
			sums[addr] += a.Weight.Value()
			if a.Weight != drained {
				serving++
			}
		}
		if serving < n || serving >= max(n+used, used+1) {
			t.Fatalf("%d serve, of %d that did, want %d or a little more", serving, used, n)
		}
		for _, a := range list {
			if got := sums[a.Addr]; math.Abs(got-a.Weight.Value()) > 1e-9 {
				t.Fatalf("%s has %v together, want %v", a.Addr, got, a.Weight.Value())
			}
		}
	}
	for _, w := range []float64{-1, math.NaN(), math.Inf(1), 1e-7} { // divided, or raised, it might pass
		list := []Address{{Addr: "a:1", Weight: evenkeel.WeightOf(w)}}
		if _, err := locate(multiplied(list, 4), 80); err == nil {
			t.Errorf("weight %v is not refused any more", w)
		}
	}
}

func TestNumberedAddressIsAnEndpointOfItsOwn(t *testing.T) {
	for addr, id := range map[string]string{
		"10.0.0.1#2":           "10.0.0.1:80#2",
		"10.0.0.1:8080#1024":   "10.0.0.1:8080#1024",
		"fd00::1#3":            "[fd00::1]:80#3",
		"[fd00::1]#3":          "[fd00::1]:80#3",
		"[fe80::1%a#2]:1":      "[fe80::1%a#2]:1",
		"[fe80::1%a#2]:1#2":    "[fe80::1%a#2]:1#2",
		"fe80::1%a#2":          "[fe80::1%a]:80#2",
		"Orders.internal:80#2": "orders.internal:80#2",
	} {
		got, err := locate(addrs(addr), 80)
		if err != nil || got[0].String() != id {
			t.Errorf("%q is %v, %v, want %s", addr, got, err, id)
		}
	}
	for _, addr := range []string{"a:1#", "a:1#0", "a:1#1", "a:1#02", "a:1#+2", "a:1#1025", "a:1#x", "a:1#2#3", "a:1 #2", "#2", "a:1#99999999999999999999"} {
		if _, err := locate(addrs(addr), 80); err == nil {
			t.Errorf("%q is an address", addr)
		}
	}
	_, err := locate(addrs("a:80#2", "a#2"), 80)
	if err == nil || !strings.Contains(err.Error(), "the same as address 0") {
		t.Errorf("%v", err)
	}
}

func TestMinBackendsPassesOnWhatItsResolverSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(nil, "10.0.0.1")
		watching(t, &MinBackends{Resolver: &DNS{Lookup: z.lookup}, N: 2}, "svc.test", func(n *noted) {
			if got, err := n.text(); got != "10.0.0.1:80#2=0.5 10.0.0.1:80=0.5" || err != nil {
				t.Errorf("%s, %v", got, err)
			}
		})
		watching(t, &MinBackends{N: 2}, "10.0.0.1", func(n *noted) { // by DNS, which needs no lookup
			if got, err := n.text(); got != "10.0.0.1:80#2=0.5 10.0.0.1:80=0.5" || err != nil {
				t.Errorf("%s, %v", got, err)
			}
		})
	})
	err := (&MinBackends{Resolver: Static{}, N: 1025}).Validate()
	if err == nil || !strings.Contains(err.Error(), "MinBackends.N is 1025, want 1 to 1024") || !strings.Contains(err.Error(), "Static has 0 addresses") {
		t.Error(err)
	}
	if err := (*MinBackends)(nil).Validate(); err == nil {
		t.Error("nil is no MinBackends")
	}
}
