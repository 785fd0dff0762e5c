package subset

import (
	"math"
	"slices"
)

// Rendezvous returns the indices of the size endpoints that score highest by a hash of
// the client and the endpoint, in ascending order (rendezvous hashing; Thaler and
// Ravishankar, 1998). With weights, they are drawn in proportion to these, as if one
// after the other without replacement. Endpoints of weight 0 come last. Send to those chosen
// evenly then: a weight that counts for who is chosen must not count again.
//
// Client.Seed is the client's identity. Nothing else is needed, and an endpoint that comes or
// goes moves only itself. The price is balance: the clients of an endpoint are
// distributed like coin flips.
//
// O(n) in time on average, and in memory.
func Rendezvous(c Client, m Members, size int) ([]int, error) {
	k, err := check(c, m, size)
	if err != nil {
		return nil, err
	}
	list := m.scored(c.Seed)
	lowestFirst(list, k)
	return ascending(list[:k]), nil
}

// Order returns the indices of all endpoints in the order in which [Rendezvous] takes
// them: its subset of any size is the beginning of it.
func Order(c Client, m Members) ([]int, error) {
	if _, err := check(c, m, 0); err != nil {
		return nil, err
	}
	return order(c.Seed, m), nil
}

func order(identity uint64, m Members) []int {
	list := m.scored(identity)
	slices.SortFunc(list, candidate.compare)
	out := make([]int, len(list))
	for i, c := range list {
		out[i] = int(c.at)
	}
	return out
}

// own is an identity of a client that has an index, for what it does by rendezvous beside an
// algorithm that goes by the index.
func (c Client) own() uint64 { return mix3(0x6f776e, c.Seed, uint64(c.Index)) }

// scored returns the list with the score of each endpoint, lower being better.
func (m Members) scored(identity uint64) []candidate {
	list := m.candidates(0)
	alike := m.alike()
	for i := range list {
		score := mix2(identity, list[i].hash)
		if list[i].key = ^score; !alike {
			list[i].key = weightedKey(score, m.Weights[i])
		}
	}
	return list
}

// weightedKey makes the lowest key belong to an endpoint with a probability proportional to
// its weight: exponential variables with that rate (Efraimidis and Spirakis, 2006). The
// bits of positive floats are ordered as the floats are.
func weightedKey(score uint64, weight float64) uint64 {
	u := (float64(score>>11) + 0.5) / (1 << 53)
	return math.Float64bits(-math.Log(u) / weight)
}

// alike reports whether weights make no difference.
func (m Members) alike() bool {
	for _, w := range m.Weights {
		if w != m.Weights[0] {
			return false
		}
	}
	return true
}
