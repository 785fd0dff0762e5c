package subset

import (
	"math/bits"
	"slices"
)

// lotOfTen is how many endpoints, and how many clients, make a lot of [Rocksteadier]. A
// larger one gives clients more different subsets and less balance.
const lotOfTen = 10

// Rocksteadier returns the indices of the client's endpoints, in ascending order, as Google
// has it since 2022 (Ward, Wankadia and Guliani, "Reinventing Backend Subsetting at
// Google", ACM Queue 20(5)). Endpoints and clients are in lots of ten by their index. All
// clients of a lot shuffle each lot of endpoints alike, and each client has one place in
// it. It goes through the lots of endpoints in the order of bit-reversed numbers ("Ringsteady"),
// from the place of its own lot on, until it has size endpoints; places that are empty
// are passed over, and after a whole turn it goes on with the next place.
//
// It needs the client's Index, the Seed of the deployment, and stable indices of the endpoints,
// Members.Ordinals. Without them the place in the order of names counts, and then more
// than half of all connections move when one endpoint comes or goes.
//
// O(n log n) in time.
func Rocksteadier(c Client, m Members, size int) ([]int, error) {
	k, err := check(c, m, size)
	if err != nil {
		return nil, err
	}
	lots := m.tens()
	own, place := uint64(c.Index/lotOfTen), c.Index%lotOfTen
	first, _ := slices.BinarySearchFunc(lots, reversed(uint64(c.Index/lotOfTen)), func(l ten, at uint32) int {
		return compareUint32(reversed(l.number), at)
	})
	places := everybody(lotOfTen)
	got := make([]int, 0, k)
	for turn := 0; len(got) < k; turn++ {
		for i := 0; i < len(lots) && len(got) < k; i++ {
			l := lots[(first+i)%len(lots)]
			for p := range places {
				places[p] = p
			}
			d := draws(mix3(c.Seed, own, l.number))
			shuffle(places, d.below)
			if at := l.at[places[(place+turn)%lotOfTen]]; at > 0 {
				got = append(got, at-1)
			}
		}
	}
	return ascendingInts(got), nil
}

// ten is a lot of endpoints: the index in the list plus 1 of each place, 0 if it is empty.
type ten struct {
	number uint64
	at     [lotOfTen]int
}

// tens returns the lots that have endpoints, in the order of Ringsteady.
func (m Members) tens() []ten {
	ordinals := m.Ordinals
	if ordinals == nil {
		ordinals = make([]int, len(m.IDs))
		for place, i := range m.byName() {
			ordinals[i] = place
		}
	}
	index := map[int]int{}
	var lots []ten
	for i, o := range ordinals {
		k, ok := index[o/lotOfTen]
		if !ok {
			k = len(lots)
			index[o/lotOfTen] = k
			lots = append(lots, ten{number: uint64(o / lotOfTen)})
		}
		lots[k].at[o%lotOfTen] = i + 1
	}
	slices.SortFunc(lots, func(a, b ten) int { return compareUint32(reversed(a.number), reversed(b.number)) })
	return lots
}

// reversed is the place of a number on a ring of 2^32 such that each next number falls into
// the largest gap that the earlier ones have left (van der Corput's sequence in base 2).
func reversed(number uint64) uint32 { return bits.Reverse32(uint32(number)) }

func compareUint32(a, b uint32) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
