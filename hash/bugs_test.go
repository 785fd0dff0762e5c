package hash

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Bug 14 (tigera/operator#4749, l7mp/stunner#229): addresses cut at the wrong colon. Here an ID
// is bytes and never parsed: whatever the spelling, it is whole, and one endpoint.
func TestBug14IDsAreNeverCut(t *testing.T) {
	var list []Endpoint
	for _, id := range []string{"[fd00::1]:443", "fd00::1", "fe80::1%eth0", "[::1]", "::1:8080", "::1", "a:1", "a", "\x00", "a\x00"} {
		list = append(list, Endpoint{ID: id, Weight: 1})
	}
	eachTable(t, list, func(t *testing.T, name string, table keyTable) {
		counts := make([]int, len(list))
		for _, key := range someKeys(1, 20_000) {
			counts[table.Lookup(key)]++
		}
		for i, n := range counts {
			if n < 1000 {
				t.Errorf("%s: %q gets %d of 20000 keys, want about a tenth", name, list[i].ID, n)
			}
		}
	})
}

// Bug 16 (opentelemetry-collector-contrib#49585; also envoy#20703, cilium#13461): the table depends
// on the order in which endpoints are listed.
func TestBug16TheOrderOfTheListDoesNotMatter(t *testing.T) {
	r := fixedRand(16)
	keys := someKeys(16, 2000)
	for _, list := range [][]Endpoint{fleet(2), fleet(30), weighted(50, 1, 0, 2.5, 7)} {
		owners := map[string][]string{}
		prints := map[string]uint64{}
		for order := range 100 {
			eachTable(t, list, func(t *testing.T, name string, table keyTable) {
				ids := make([]string, 0, 3*len(keys))
				for _, key := range keys {
					for _, i := range table.AppendN(nil, key, 3) {
						ids = append(ids, list[i].ID)
					}
				}
				if order == 0 {
					owners[name], prints[name] = ids, table.Fingerprint()
				}
				if !slices.Equal(ids, owners[name]) || table.Fingerprint() != prints[name] {
					t.Fatalf("%s: order %d gives other candidates or another fingerprint", name, order)
				}
			})
			list = shuffled(r, list)
		}
	}
}

// Bug 17 (cloudflare/pingora#1006): weight 0 panics in ring building, and the next update is lost.
func TestBug17WeightZeroGetsNothingAndTheNextUpdateIsApplied(t *testing.T) {
	first := []Endpoint{{"A", 1}, {"B", 0}}
	next := []Endpoint{{"A", 1}, {"C", 1}}
	m, r := newTestMaglev(t, first, MaglevConfig{}), newTestRing(t, first, RingConfig{})
	for _, key := range someKeys(17, 1000) {
		if got := [2]int{m.Lookup(key), r.Lookup(key)}; got != [2]int{} {
			t.Fatalf("key %d goes to %v, want A", key, got)
		}
	}
	m, err := m.Update(next)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = r.Update(next); err != nil {
		t.Fatal(err)
	}
	counts := [2]int{}
	for _, key := range someKeys(17, 1000) {
		counts[0] += m.Lookup(key)
		counts[1] += r.Lookup(key)
	}
	if counts[0] < 400 || counts[1] < 300 {
		t.Errorf("after the update C gets %v of 1000 keys, want about half", counts)
	}
}

// Bug 18 (volcano-sh/kthena#727): all weights are 0, and the request path panics.
func TestBug18AllWeightsZeroIsAnErrorOfBuilding(t *testing.T) {
	list := []Endpoint{{"A", 0}, {"B", 0}}
	_, maglevErr := NewMaglev(list, MaglevConfig{})
	_, ringErr := NewRing(list, RingConfig{})
	if !errors.Is(maglevErr, ErrEmpty) || !errors.Is(ringErr, ErrEmpty) {
		t.Errorf("%v and %v, want ErrEmpty", maglevErr, ringErr)
	}
}

// Bug 20 (traefik/traefik#13749): a negative weight makes the choice loop for ever.
func TestBug20NegativeWeightsAreRefused(t *testing.T) {
	for _, w := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1), -MinWeight, math.SmallestNonzeroFloat64} {
		list := []Endpoint{{"A", 1}, {"B", w}}
		_, maglevErr := NewMaglev(list, MaglevConfig{})
		_, ringErr := NewRing(list, RingConfig{})
		for _, err := range []error{maglevErr, ringErr} {
			if err == nil || !strings.Contains(err.Error(), `endpoint 1 ("B"): Weight is`) {
				t.Errorf("weight %v: %v, want it refused by name", w, err)
			}
		}
	}
}

// Bug 23 (facebookincubator/katran#35, envoyproxy/envoy#6035): weights are ignored or flattened.
func TestBug23WeightsOneToTenAreOneToTen(t *testing.T) {
	list := []Endpoint{{"light", 1}, {"heavy", 10}}
	m := newTestMaglev(t, list, MaglevConfig{})
	for i, want := range []float64{10.0 / 11, 1.0 / 11} { // in the order of the IDs
		if got := float64(m.quotas[i]) / DefaultMaglevSize; math.Abs(got-want) > 0.001 {
			t.Errorf("%s has %.4f of the slots, want %.4f to a tenth of a point", m.list.ids[i], got, want)
		}
	}
	for _, light := range []float64{1, 0.001, MinWeight} {
		list := append(weighted(50, light), Endpoint{ID: "heavy", Weight: 1_000_000})
		for i, q := range newTestMaglev(t, list, MaglevConfig{}).quotas {
			if q < 1 {
				t.Errorf("weight %v against a million: endpoint %d has no slot", light, i)
			}
		}
	}
}

// nginx/nginx#191, apache/apisix#7042: a weight of a million is a hundred and sixty million points.
func TestAWeightOfAMillionTakesNoGigabytes(t *testing.T) {
	list := []Endpoint{{"A", 1_000_000}, {"B", 1}}
	if _, err := NewRing(list, RingConfig{}); err == nil || !strings.Contains(err.Error(), "160000160 points") {
		t.Errorf("a ring: %v, want it refused with the number of points", err)
	}
	if s := newTestMaglev(t, list, MaglevConfig{}).Stats(); s.Bytes > 70_000 {
		t.Errorf("a table has %d bytes, want no more than for other weights", s.Bytes)
	}
}

// envoy#22558, istio#41814: the number of points of one endpoint depends on how many there are.
func TestPointsDoNotDependOnTheNumberOfEndpoints(t *testing.T) {
	for _, n := range []int{1, 2, 7, 100, 1000} {
		for i, points := range newTestRing(t, fleet(n), RingConfig{}).counts {
			if points != DefaultRingPoints {
				t.Fatalf("of %d endpoints number %d has %d points, want %d", n, i, points, DefaultRingPoints)
			}
		}
	}
}

// kitex#920, buraksezer/consistent#17: "node1" + "1" and "node" + "11" are one virtual node.
func TestNumberedIDsShareNoPoints(t *testing.T) {
	var list []Endpoint
	for _, id := range []string{"node", "node1", "node11", "node111", "node-1", "node-11"} {
		list = append(list, Endpoint{ID: id, Weight: 1})
	}
	for _, c := range []RingConfig{{}, {Ketama: true}} {
		ring := newTestRing(t, list, c)
		places := map[uint64]string{}
		for _, p := range ring.circle.points[:ring.circle.count()] {
			id := ring.list.ids[p&ownerMask]
			if other, taken := places[p>>ownerBits]; taken && other != id {
				t.Errorf("%+v: %s and %s share a point", c, id, other)
			}
			places[p>>ownerBits] = id
		}
	}
}

func TestNothingPanicsWithFewEndpoints(t *testing.T) {
	for n := range 4 {
		for _, weight := range []float64{0, MinWeight, 1, 1000} {
			list := weighted(n, weight)
			name := fmt.Sprintf("%d endpoints of weight %v", n, weight)
			m, maglevErr := NewMaglev(list, MaglevConfig{Size: 251})
			r, ringErr := NewRing(list, RingConfig{Points: 1})
			if n == 0 || weight == 0 {
				if !errors.Is(maglevErr, ErrEmpty) || !errors.Is(ringErr, ErrEmpty) {
					t.Errorf("%s: %v and %v, want ErrEmpty", name, maglevErr, ringErr)
				}
				continue
			}
			for _, key := range []uint64{0, 1, math.MaxUint64} {
				if got := m.Lookup(key); got < 0 || got >= n {
					t.Errorf("%s: the table gives %d", name, got)
				}
				if got := r.Lookup(key); got < 0 || got >= n {
					t.Errorf("%s: the ring gives %d", name, got)
				}
			}
			if a, b := m.Stats(), r.Stats(); a.Endpoints != n || b.Endpoints != n || b.Slots != n*max(int(weight), 1) {
				t.Errorf("%s: stats are %+v and %+v", name, a, b)
			}
		}
	}
}
