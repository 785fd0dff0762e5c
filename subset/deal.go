package subset

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Lot says how endpoints are dealt.
type Lot struct {
	// Clients is how many clients share one deal of all endpoints: a power of two up to
	// 2^24; see [LotSize]. Clients 0 to Clients-1 are the first lot, and so on.
	Clients int
	// Exact is how many of the last cuts halve exactly, 0 to 24. Each makes the subsets
	// more even, and lets more move when the list changes.
	Exact int
}

// DefaultExact is the number of exact cuts of [Deal].
const DefaultExact = 1

// maxLotLevel is log2 of the largest lot.
const maxLotLevel = 24

func (l Lot) validate() error {
	var problems []error
	if l.Clients < 1 || l.Clients > 1<<maxLotLevel || l.Clients&(l.Clients-1) != 0 {
		problems = append(problems, fmt.Errorf("subset: Lot.Clients is %d, want a power of two from 1 to %d", l.Clients, 1<<maxLotLevel))
	}
	if l.Exact < 0 || l.Exact > maxLotLevel {
		problems = append(problems, fmt.Errorf("subset: Lot.Exact is %d, want 0 to %d", l.Exact, maxLotLevel))
	}
	return errors.Join(problems...)
}

// levels is the number of cuts between all endpoints and one client's.
func (l Lot) levels() int { return bits.Len(uint(l.Clients)) - 1 }

// Deal returns the indices of the client's endpoints, in ascending order. Clients are in
// lots by their index, and every lot deals each endpoint to exactly one of its clients, so that
// all endpoints have the same number of clients but for the last, incomplete lot. A
// client that comes or goes moves nothing at others; an endpoint that comes or goes
// moves little beyond itself.
//
// A lot has [LotSize](n, size, 0) clients, so that a subset has 0.71 to 1.41 times the size
// on average over the clients, and in each case what [Lot.Band] says. As long as the
// list changes, hold the lot's size with [DealLot], as a [Selector] does.
//
// It needs the client's Index, and the Seed of the deployment. O(n) in time and memory.
func Deal(c Client, m Members, size int) ([]int, error) {
	k, err := check(c, m, size)
	if err != nil {
		return nil, err
	}
	return deal(c, m, Lot{LotSize(len(m.IDs), k, 0), DefaultExact}), nil
}

// DealLot is [Deal] with lots that somebody else has chosen.
func DealLot(c Client, m Members, lot Lot) ([]int, error) {
	if err := errors.Join(c.validate(), m.Validate(), lot.validate()); err != nil {
		return nil, err
	}
	return deal(c, m, lot), nil
}

func deal(c Client, m Members, lot Lot) []int {
	if lot.Clients == 1 {
		return everybody(len(m.IDs))
	}
	got := lot.dealTo(m.candidates(c.Seed), c.Index)
	if len(got) == 0 && len(m.IDs) > 0 {
		// More clients in a lot than there are endpoints for: nobody is to be left with none.
		return order(c.own(), Members{IDs: m.IDs})[:1]
	}
	return ascending(got)
}

// dealTo returns what of the list one client gets. It changes the order of the list.
func (l Lot) dealTo(list []candidate, index int) []candidate {
	for level := l.levels(); level > 0; level-- {
		left, right := l.cut(list, level, uint64(index)>>level)
		if list = left; index>>(level-1)&1 == 1 {
			list = right
		}
	}
	return list
}

// dealAll calls f with each client of a lot, its index within the lot, and what it gets.
func (l Lot) dealAll(list []candidate, lot int, f func(client int, got []candidate)) {
	l.dealNode(list, l.levels(), uint64(lot), func(node uint64, got []candidate) {
		f(int(node)-lot*l.Clients, got)
	})
}

func (l Lot) dealNode(list []candidate, level int, node uint64, f func(node uint64, got []candidate)) {
	if level == 0 {
		f(node, list)
		return
	}
	left, right := l.cut(list, level, node)
	l.dealNode(left, level-1, 2*node, f)
	l.dealNode(right, level-1, 2*node+1, f)
}

// cut divides a node's endpoints between the two halves of its clients, the lower keys to the
// left. Nodes are numbered by level from the client up and not from the lot down: the
// cuts below are the same whatever the size of the lot, and when it doubles, each
// client keeps half of what it had.
//
// An endpoint goes by the first bit of its key, which does not depend on the others: that is
// what moves nothing. Only where the halves would differ too much, those nearest to
// the border change sides.
func (l Lot) cut(list []candidate, level int, node uint64) (left, right []candidate) {
	prefix := mix2(uint64(level)+1, node)
	m := 0
	for i := range list {
		list[i].key = mix3of(prefix, list[i].hash)
		if list[i].key>>63 == 0 {
			list[i], list[m] = list[m], list[i]
			m++
		}
	}
	low, high := l.bounds(len(list), level, node)
	if want := min(max(m, low), high); want != m {
		lowestFirst(list, want)
		m = want
	}
	return list[:m:m], list[m:]
}

// bounds returns how many of n may go to the left. The last cuts are exact; the odd one
// goes to the left at every other node, or some clients would get less time after time.
// The other cuts may be off by √n: that is two standard deviations of n fair coins, so that
// one cut in twenty is corrected, which costs little and bounds how far chance can go.
func (l Lot) bounds(n, level int, node uint64) (low, high int) {
	half := (n + int(node&1)) / 2
	off := 0
	if level > l.Exact {
		off = int(math.Ceil(math.Sqrt(float64(n))))
	}
	return max(half-off, 0), min(half+off, n)
}

// Band returns the smallest and the largest subset that a lot can deal of n endpoints,
// whatever the hashes. Nearly all are well inside. Nobody gets none of at least one.
func (l Lot) Band(n int) (least, most int) {
	if l.validate() != nil || n < 1 {
		return 0, 0
	}
	least, most = n, n
	for level := l.levels(); level > 0; level-- {
		low, _ := l.bounds(least, level, 0)
		// Where the root's next whole number begins, one more can be given one less.
		next, _ := l.bounds(min(least+1, most), level, 0)
		_, high := l.bounds(most, level, 1)
		least, most = min(low, next), high
	}
	return max(least, 1), max(most, 1)
}
