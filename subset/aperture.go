package subset

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Aperture returns the indices of the client's endpoints, in ascending order, and which part
// of each is its own, above 0 and up to 1: the endpoint's weight times that part is the weight
// it has for this client. It is the deterministic aperture of Finagle: endpoints lie on a
// ring, each as long as its weight; client i of Count starts at i/Count of the ring, and
// takes as much of it as is worth size endpoints, rounded up to a multiple of 1/Count.
// So every point of the ring belongs to the same number of clients, and what is cut off
// at the ends counts in part: the load is exactly even.
//
// The number of endpoints is size plus up to two for those that are cut off, more if that
// many clients are needed to reach everybody, or if weights differ. It needs the client's Index and
// the Count, and every client whose place moves reconnects when the Count changes. Neighbours on
// the ring have neighbouring clients: what one client does hits a part of the fleet.
//
// The order on the ring is that of hashes with the Seed of the deployment. Endpoints of
// weight 0 have no place on it, unless all have that weight. O(n log n) in time.
func Aperture(c Client, m Members, size int) (indices []int, parts []float64, err error) {
	k, err := check(c, m, size)
	if c.Count == 0 {
		err = errors.Join(err, fmt.Errorf("subset: Client.Count is 0, want the number of clients for Aperture"))
	}
	if err != nil || k == 0 {
		return nil, nil, err
	}
	ring := m.ring(c.Seed)
	// In units of clients: the ring is Count long, and this client starts at its Index.
	width := math.Ceil(float64(k) * float64(c.Count) / float64(len(m.IDs)))
	scale := float64(c.Count) / ring[len(ring)-1].end
	start, end := float64(c.Index), float64(c.Index)+width
	var own []piece
	for i, a := range ring {
		from := 0.0
		if i > 0 {
			from = ring[i-1].end * scale
		}
		to := a.end * scale
		covered := overlap(from, to, start, end) + overlap(from, to, start-float64(c.Count), end-float64(c.Count))
		// Rounding must not make an endpoint of nothing.
		if part := covered / (to - from); part > 1e-9 {
			own = append(own, piece{a.at, min(part, 1)})
		}
	}
	slices.SortFunc(own, func(a, b piece) int { return a.at - b.at })
	indices, parts = make([]int, len(own)), make([]float64, len(own))
	for i, a := range own {
		indices[i], parts[i] = a.at, a.part
	}
	return indices, parts, nil
}

// arc is an endpoint's place on the ring, which begins where the one before ends.
type arc struct {
	at  int
	end float64
}

// piece is how much of an endpoint a client has.
type piece struct {
	at   int
	part float64
}

// ring returns the endpoints that have a place, with at least one if there is any endpoint.
func (m Members) ring(seed uint64) []arc {
	list := m.candidates(seed)
	for i := range list {
		list[i].key = list[i].hash
	}
	slices.SortFunc(list, candidate.compare)
	heaviest := 0.0
	for _, w := range m.Weights {
		heaviest = max(heaviest, w)
	}
	var ring []arc
	sum := 0.0
	for _, c := range list {
		w := 1.0
		if heaviest > 0 {
			w = m.Weights[c.at] / heaviest // sums of huge weights stay finite
		}
		if w > 0 {
			sum += w
			ring = append(ring, arc{at: int(c.at), end: sum})
		}
	}
	return ring
}

// overlap returns how much of a to b is within c to d.
func overlap(a, b, c, d float64) float64 { return max(min(b, d)-max(a, c), 0) }
