package hash

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// weightUnit is 1 in the fixed point of weights. Whole weights are exact in it, so that
// 1:2 and 10:20 are the same ratio, and MinWeight is off by less than 0.03 %.
const weightUnit = 1 << 30

// list is a validated list of endpoints in the one order that every table is built in: by
// the bytes of the ID, whatever order the caller's was. Drained endpoints are left out. The
// slices run in parallel. It is immutable.
type list struct {
	ids     []string
	index   []int32  // position in the caller's slice; of merged ones the first
	weights []uint64 // in weightUnit, at least 1
	points  []uint64 // 64 bits from the ID, in a domain apart from keys
	keySeed uint64   // what keys are mixed with, see spread
}

// newList validates endpoints and returns them in order. It reports every problem of the
// list, joined, or ErrEmpty. The slice is neither changed nor kept, the strings are.
func newList(endpoints []Endpoint, seed uint64, mergeDuplicates bool) (*list, error) {
	var wrong problems
	if len(endpoints) > MaxEndpoints {
		wrong.add("the list has %d endpoints, want at most %d", len(endpoints), MaxEndpoints)
		return nil, wrong.err()
	}
	order := make([]int32, len(endpoints))
	for i, e := range endpoints {
		order[i] = int32(i)
		if e.ID == "" {
			wrong.add("endpoint %d: ID is empty, want a name", i)
		}
		// Written so that NaN is refused.
		if w := e.Weight; w != 0 && !(w >= MinWeight && w <= MaxWeight) {
			wrong.add("endpoint %d (%q): Weight is %v, want 0 or %v to %v",
				i, clip(e.ID), w, MinWeight, float64(MaxWeight))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		if c := strings.Compare(endpoints[a].ID, endpoints[b].ID); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
	l := &list{keySeed: mix64(seed)}
	l.fill(endpoints, order, mergeDuplicates, &wrong)
	if err := wrong.err(); err != nil {
		return nil, err
	}
	if len(l.ids) == 0 {
		return nil, ErrEmpty
	}
	l.points = make([]uint64, len(l.ids))
	for i, id := range l.ids {
		l.points[i] = xxh64(id, l.keySeed^idDomain)
	}
	return l, nil
}

// fill takes the endpoints over in the given order, duplicates next to each other.
func (l *list) fill(endpoints []Endpoint, order []int32, merge bool, wrong *problems) {
	l.ids = make([]string, 0, len(order))
	l.index = make([]int32, 0, len(order))
	l.weights = make([]uint64, 0, len(order))
	for at := 0; at < len(order); {
		first := order[at]
		id := endpoints[first].ID
		sum := uint64(0)
		for ; at < len(order) && endpoints[order[at]].ID == id; at++ {
			if i := order[at]; i != first && !merge && id != "" {
				wrong.add("endpoint %d: ID %q is that of endpoint %d, want a unique one or MergeDuplicates",
					i, clip(id), first)
			}
			// Saturating is enough: a sum so large is refused below.
			sum = min(sum+fixedWeight(endpoints[order[at]].Weight), 2*MaxWeight*weightUnit-1)
		}
		if merge && sum > MaxWeight*weightUnit {
			wrong.add("endpoint %d (%q): the merged Weight is above %v", first, clip(id), float64(MaxWeight))
		}
		if sum > 0 {
			l.ids = append(l.ids, id)
			l.index = append(l.index, first)
			l.weights = append(l.weights, sum)
		}
	}
}

// fixedWeight returns a weight in weightUnit, 0 for those out of range. The product is by a
// power of two and so exact; halves are rounded to even, alike on every machine.
func fixedWeight(w float64) uint64 {
	if !(w >= MinWeight && w <= MaxWeight) {
		return 0
	}
	return uint64(math.RoundToEven(w * weightUnit))
}

// equal reports whether both lists, under one config, give the same tables and the same
// indices.
func (l *list) equal(o *list) bool {
	return slices.Equal(l.ids, o.ids) && slices.Equal(l.index, o.index) && slices.Equal(l.weights, o.weights)
}

// equalWeights reports whether all weights are the same.
func (l *list) equalWeights() bool { return allEqual(l.weights) }

// allEqual reports whether all weights are the same.
func allEqual(weights []uint64) bool {
	for _, w := range weights {
		if w != weights[0] {
			return false
		}
	}
	return true
}

// fingerprint hashes all that a table follows from: the algorithm with its version, its
// settings, and the IDs with their weights.
func (l *list) fingerprint(algorithm string, settings ...uint64) uint64 {
	var d xxhash.Digest
	d.Reset()
	var word [8]byte
	number := func(n uint64) {
		binary.LittleEndian.PutUint64(word[:], n)
		_, _ = d.Write(word[:]) // never fails
	}
	text := func(s string) {
		number(uint64(len(s)))
		_, _ = d.WriteString(s)
	}
	text(algorithm)
	for _, n := range settings {
		number(n)
	}
	number(l.keySeed)
	for i, id := range l.ids {
		text(id)
		number(l.weights[i])
	}
	return d.Sum64()
}

// bytes returns the memory that the list holds, the text of the IDs aside.
func (l *list) bytes() int { return len(l.ids) * (16 + 4 + 8 + 8) }
