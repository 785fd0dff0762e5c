package picker

import "sort"

// weightedDraw draws available members in proportion to weight.
type weightedDraw struct{ sums []float64 }

func newWeightedDraw(m *Members) *weightedDraw {
	w := &weightedDraw{sums: make([]float64, m.Len())}
	sum := 0.0
	for i := range w.sums {
		sum += m.Weight(i)
		w.sums[i] = sum
	}
	return w
}

func (w *weightedDraw) Watch(*Snapshot) {}

func (w *weightedDraw) draw(s *Snapshot) int {
	for range 8 {
		u := float64(s.Uint64()>>11) / (1 << 53) * w.sums[len(w.sums)-1]
		i := sort.Search(len(w.sums)-1, func(k int) bool { return w.sums[k] > u })
		if s.Available(i) {
			return i
		}
	}
	return s.At(uniform(uint32(s.Uint64()>>32), s.n))
}
