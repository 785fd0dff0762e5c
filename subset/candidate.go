package subset

import "slices"

// candidate is an endpoint while something is chosen by hash.
type candidate struct {
	key  uint64 // what it is chosen by, lower first
	hash uint64 // the endpoint's own, which breaks ties alike at all clients
	at   int32  // index in the list
}

func (a candidate) less(b candidate) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	if a.hash != b.hash {
		return a.hash < b.hash
	}
	return a.at < b.at // two different IDs with one 64-bit hash: not worth the comparison of names
}

func (a candidate) compare(b candidate) int {
	if a.less(b) {
		return -1
	}
	return 1 // never equal
}

// candidates returns the list with the hash of each endpoint.
func (m Members) candidates(seed uint64) []candidate {
	list := make([]candidate, len(m.IDs))
	for i, id := range m.IDs {
		list[i] = candidate{hash: endpointHash(seed, id), at: int32(i)}
	}
	return list
}

// lowestFirst moves the k lowest to the front, in any order (Hoare's selection). Its pivot
// is the middle of three, and keys are hashes: the expected cost is linear.
func lowestFirst(list []candidate, k int) {
	low, high := 0, len(list)-1
	for low < high {
		pivot := middleOf(list[low], list[low+(high-low)/2], list[high])
		i, j := low, high
		for i <= j {
			for list[i].less(pivot) {
				i++
			}
			for pivot.less(list[j]) {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i++
				j--
			}
		}
		switch {
		case k-1 <= j:
			high = j
		case k-1 >= i:
			low = i
		default:
			return
		}
	}
}

func middleOf(a, b, c candidate) candidate {
	if b.less(a) {
		a, b = b, a
	}
	if c.less(b) {
		b = c
		if b.less(a) {
			b = a
		}
	}
	return b
}

// ascending returns the indices of the candidates in ascending order.
func ascending(list []candidate) []int {
	out := make([]int, len(list))
	for i, c := range list {
		out[i] = int(c.at)
	}
	slices.Sort(out)
	return out
}

// ascendingInts sorts in place.
func ascendingInts(list []int) []int {
	slices.Sort(list)
	return list
}
