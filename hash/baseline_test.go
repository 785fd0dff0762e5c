package hash

import (
	"sort"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// What the tables are measured against, in the same run: plain forms that anybody would
// write first, or that others ship.

// plainMaglev is a table as the paper describes it: eight bytes a slot, found by a division.
type plainMaglev struct{ slots []int }

// newPlainMaglev fills a table in rounds: everybody computes the next slots of its order
// until one is free.
func newPlainMaglev(points []uint64, size uint64) *plainMaglev {
	type order struct{ offset, skip, next uint64 }
	orders := make([]order, len(points))
	for i, p := range points {
		orders[i] = order{offset: p % size, skip: mix64(p)%(size-1) + 1}
	}
	slots := make([]int, size)
	for s := range slots {
		slots[s] = -1
	}
	for filled := 0; filled < len(slots); {
		for i := range orders {
			o := &orders[i]
			slot := (o.offset + o.next*o.skip) % size
			for slots[slot] >= 0 {
				o.next++
				slot = (o.offset + o.next*o.skip) % size
			}
			slots[slot] = i
			o.next++
			if filled++; filled == len(slots) {
				break
			}
		}
	}
	return &plainMaglev{slots}
}

func (m *plainMaglev) lookup(key uint64) int { return m.slots[key%uint64(len(m.slots))] }

// pointerRing is a ring as gRPC has it: sorted pointers to points, and a binary search.
type pointerRing struct{ points []*pointerRingPoint }

type pointerRingPoint struct {
	place  uint64
	index  int
	name   string
	weight uint32
}

// newPointerRing takes the points of another ring, so that both answer alike.
func newPointerRing(r *Ring) *pointerRing {
	p := &pointerRing{}
	for i, word := range r.circle.points[:r.circle.count()] {
		owner := word & ownerMask
		p.points = append(p.points, &pointerRingPoint{
			place: word &^ ownerMask, index: int(r.list.index[owner]), name: r.list.ids[owner], weight: uint32(i),
		})
	}
	return p
}

func (r *pointerRing) lookup(place uint64) int {
	i := sort.Search(len(r.points), func(i int) bool { return r.points[i].place >= place })
	if i == len(r.points) {
		i = 0
	}
	return r.points[i].index
}

// rebuildPointerRing makes a pointer ring from a list, as after each change.
func rebuildPointerRing(list []Endpoint, perUnit int) *pointerRing {
	r := &pointerRing{}
	for i, e := range list {
		for k := range int(e.Weight * float64(perUnit)) {
			place := xxhash.Sum64String(e.ID + "_" + strconv.Itoa(k))
			r.points = append(r.points, &pointerRingPoint{place: place, index: i, name: e.ID})
		}
	}
	sort.Slice(r.points, func(i, j int) bool { return r.points[i].place < r.points[j].place })
	return r
}
