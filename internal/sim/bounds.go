package sim

import "math"

// ShortestQueue is the omniscient bound of policies that go by requests in flight: the
// least true load of all servers that work, ties at random (JSQ). Zero value: ready.
type ShortestQueue struct{}

// Choose implements Chooser.
func (ShortestQueue) Choose(v *View) int {
	return leastOf(v, func(i int) float64 { return float64(v.Load(i)) })
}

// ShortestDelay is the omniscient bound of policies that also know how fast servers are:
// the least (load + 1) × mean service time, ties at random (JSED). It is no strict
// bound: who knows how long each request takes does better. Zero value: ready.
type ShortestDelay struct{}

// Choose implements Chooser.
func (ShortestDelay) Choose(v *View) int {
	return leastOf(v, func(i int) float64 { return float64(v.Load(i)+1) * v.MeanService(i) })
}

// leastOf returns an available server of least cost, ties at random; one that is broken
// only if all are.
func leastOf(v *View, cost func(i int) float64) int {
	best, least, ties := -1, math.Inf(1), uint64(0)
	broken := true
	for i := range v.Len() {
		if !v.Available(i) {
			continue
		}
		b := v.Broken(i)
		c := cost(i)
		switch {
		case best < 0, broken && !b, broken == b && c < least:
			best, least, broken, ties = i, c, b, 1
		case broken == b && c == least:
			// The n-th tie replaces the choice with probability 1/n.
			if ties++; v.Uint64()%ties == 0 {
				best = i
			}
		}
	}
	return best
}
