package subset

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// naiveCut sorts where cut selects.
func naiveCut(l Lot, list []candidate, level int, node uint64) (left, right []candidate) {
	m := 0
	list = slices.Clone(list)
	for i := range list {
		list[i].key = mix3(uint64(level)+1, node, list[i].hash)
		if list[i].key < 1<<63 {
			m++
		}
	}
	slices.SortFunc(list, candidate.compare)
	n, odd := len(list), int(node%2)
	most := (n + odd) / 2
	least := most
	if level > l.Exact {
		off := 0
		for off*off < n {
			off++
		}
		least, most = least-off, most+off
	}
	m = max(min(m, most, n), least, 0)
	return list[:m], list[m:]
}

func naiveDeal(l Lot, list []candidate, index int) []int {
	for level := int(math.Log2(float64(l.Clients))); level > 0; level-- {
		left, right := naiveCut(l, list, level, uint64(index/(1<<level)))
		if list = left; index/(1<<(level-1))%2 == 1 {
			list = right
		}
	}
	return ascending(list)
}

func TestDealAgreesWithSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := r.IntN(200)
		hashes := make([]candidate, n)
		for i := range hashes {
			hashes[i] = candidate{hash: r.Uint64(), at: int32(i)}
		}
		lot := Lot{1 << r.IntN(7), r.IntN(4)}
		index := r.IntN(1000)
		want := naiveDeal(lot, hashes, index)
		if got := ascending(lot.dealTo(slices.Clone(hashes), index)); !slices.Equal(got, want) {
			t.Fatalf("%d endpoints, lot %v, client %d: %v, want %v", n, lot, index, got, want)
		}
	}
}

func TestSelectionAgreesWithSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		list := make([]candidate, 1+r.IntN(60))
		for i := range list {
			// Few values, so that many keys and hashes are equal.
			list[i] = candidate{key: r.Uint64N(6), hash: r.Uint64N(3), at: int32(i)}
		}
		want := slices.Clone(list)
		slices.SortFunc(want, candidate.compare)
		k := r.IntN(len(list) + 1)
		lowestFirst(list, k)
		got := slices.Clone(list[:k])
		slices.SortFunc(got, candidate.compare)
		if !slices.Equal(got, want[:k]) {
			t.Fatalf("the %d lowest are %v, want %v", k, got, want[:k])
		}
	}
}

// One deal gives each endpoint to exactly one client of the lot.
func TestLotDealsEveryEndpointOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		m := some(r, 1+r.IntN(100))
		lot := Lot{1 << r.IntN(5), r.IntN(4)}
		number := r.IntN(20)
		times := make([]int, len(m.IDs))
		least, most := lot.Band(len(m.IDs))
		lonely := 0 // clients that would have had none
		for i := range lot.Clients {
			c := Client{Index: number*lot.Clients + i, Seed: 9}
			got, err := DealLot(c, m, lot)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) < least || len(got) > most {
				t.Errorf("lot %v deals %d of %d, want %d to %d", lot, len(got), len(m.IDs), least, most)
			}
			if lot.Clients > 1 && len(lot.dealTo(m.candidates(9), c.Index)) == 0 {
				lonely++
				continue
			}
			for _, at := range got {
				times[at]++
			}
		}
		for at, n := range times {
			if n != 1 {
				t.Errorf("lot %v of %d endpoints deals number %d to %d clients (%d clients have none)", lot, len(m.IDs), at, n, lonely)
			}
		}
	}
}

// The fleets of the tests are dealt whole lots at a time, which is what clients do one by one.
func TestWholeLotsAreDealtAsEachClientIs(t *testing.T) {
	endpoints := everybody(300)
	f := fleet{algorithm: UseDeal, clients: 75, size: 10, seed: 4, exact: 1}
	whole := f.choose(t, endpoints)
	for i := range f.clients {
		got, err := f.one(i, listOf(endpoints))
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		whole.each(i, func(e int) { want = append(want, e) })
		if !slices.Equal(got, want) {
			t.Errorf("client %d has %v, in whole lots %v", i, got, want)
		}
	}
}

// No exact cut and no correction: an endpoint that goes opens nothing, as nobody's cut
// depends on it. Corrections are rare.
func TestDealWithoutExactCutsHardlyMoves(t *testing.T) {
	f := fleet{algorithm: UseDeal, clients: 300, size: 10, seed: 1}
	removal, addition := f.changes(t, everybody(300), 30)
	if removal > 2 || addition > 12 {
		t.Errorf("a removal opens %.1f and an addition %.1f connections, want at most 2 and 12", removal, addition)
	}
}

// A lot that doubles leaves each client with half of what it has. With an exact cut some are
// exchanged.
func TestDoubledLotsAreNested(t *testing.T) {
	endpoints := everybody(300)
	for exact, most := range []int{60, 250} {
		f := fleet{algorithm: UseDeal, clients: 300, size: 10, seed: 2, lot: 32, exact: exact}
		before := f.choose(t, endpoints)
		f.lot = 64
		if n := opens(before, f.choose(t, endpoints)); n > most {
			t.Errorf("with %d exact cuts, doubling opens %d of 3,000 connections, want at most %d", exact, n, most)
		}
	}
}

func TestBandHoldsForAnyHashes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		n := 1 + r.IntN(120)
		lot := Lot{1 << r.IntN(6), r.IntN(3)}
		// Hashes of a few values make cuts as uneven as they can be.
		list := make([]candidate, n)
		values := 1 + r.IntN(8)
		for i := range list {
			list[i] = candidate{hash: r.Uint64N(uint64(values)), at: int32(i)}
		}
		least, most := lot.Band(n)
		lot.dealAll(list, r.IntN(9), func(_ int, got []candidate) {
			if k := max(len(got), 1); k < least || k > most {
				t.Fatalf("lot %v deals %d of %d, want %d to %d", lot, k, n, least, most)
			}
		})
	}
}

func TestLotIsHeldAroundADoubling(t *testing.T) {
	lot := LotSize(1000, 20, 0)
	for _, n := range []int{900, 1000, 905, 1100, 850, 780} {
		if got := LotSize(n, 20, lot); got != lot {
			t.Errorf("with %d endpoints the lot is %d, want %d as before", n, got, lot)
		}
	}
	for n, want := range map[int]int{760: 32, 1930: 128} {
		if got := LotSize(n, 20, lot); got != want {
			t.Errorf("with %d endpoints the lot is %d, want %d", n, got, want)
		}
	}
	for _, held := range []int{-1, 3, 1 << 30} {
		if got := LotSize(1000, 20, held); got != lot {
			t.Errorf("holding %d, which is no lot, gives %d, want %d", held, got, lot)
		}
	}
	for _, v := range [][3]int{{0, 0, 1}, {-5, 3, 1}, {1 << 30, 1, MaxMembers}, {5, 1 << 30, 1}} {
		if got := LotSize(v[0], v[1], 0); got != v[2] {
			t.Errorf("LotSize(%d, %d, 0) is %d, want %d", v[0], v[1], got, v[2])
		}
	}
}

func TestWrongLotsAreTold(t *testing.T) {
	for _, lot := range []Lot{{}, {3, 1}, {-4, 1}, {1 << 25, 0}, {4, -1}, {4, 25}} {
		if _, err := DealLot(Client{}, listOf(everybody(5)), lot); err == nil {
			t.Errorf("lot %v is accepted", lot)
		}
		if a, b := lot.Band(10); a != 0 || b != 0 {
			t.Errorf("lot %v has the band %d to %d", lot, a, b)
		}
	}
}
