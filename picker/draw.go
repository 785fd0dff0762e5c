package picker

import "sort"

// weightedDraw draws members in proportion to weight.
type weightedDraw struct{ sums []float64 }

func newWeightedDraw(m *Members) *weightedDraw { return drawByWeight(m.weights) }

func drawByWeight(weights []float64) *weightedDraw {
	w := &weightedDraw{sums: make([]float64, len(weights))}
	sum := 0.0
	for i := range w.sums {
		sum += weights[i]
		w.sums[i] = sum
	}
	return w
}

func (w *weightedDraw) Watch(*Snapshot) {}

func (w *weightedDraw) at(r uint64) int {
	u := float64(r>>11) / (1 << 53) * w.sums[len(w.sums)-1]
	return sort.Search(len(w.sums)-1, func(k int) bool { return w.sums[k] > u })
}

func (w *weightedDraw) draw(s *Snapshot) int {
	for range 8 {
		if i := w.at(s.Uint64()); s.Available(i) {
			return i
		}
	}
	return s.At(uniform(uint32(s.Uint64()>>32), s.n))
}
