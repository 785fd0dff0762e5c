package hash

import (
	"fmt"
	"testing"
)

var sink int

func BenchmarkMaglevLookup(b *testing.B) {
	keys := someKeys(1, 1<<12)
	for _, n := range []int{10, 100, 1000} {
		m := newTestMaglev(b, fleet(n), MaglevConfig{})
		plain := newPlainMaglev(m.list.points, m.size)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				sink += m.Lookup(keys[i&(len(keys)-1)])
			}
		})
		b.Run(fmt.Sprintf("n=%d/form=plain", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				sink += plain.lookup(keys[i&(len(keys)-1)])
			}
		})
	}
}

func BenchmarkMaglevBuild(b *testing.B) {
	for _, c := range []struct {
		name string
		list []Endpoint
	}{
		{"n=100", fleet(100)},
		{"n=1000", fleet(1000)},
		{"n=1000/weights=1:1000", append(fleet(999), Endpoint{ID: "heavy", Weight: 1000})},
		{"n=1000/weights=1..10", weighted(1000, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newTestMaglev(b, c.list, MaglevConfig{})
			}
		})
	}
	l, err := newList(fleet(1000), 0, false)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("n=1000/form=plain", func(b *testing.B) {
		for b.Loop() {
			newPlainMaglev(l.points, DefaultMaglevSize)
		}
	})
}

func BenchmarkRingLookup(b *testing.B) {
	for _, points := range []int{10_000, 100_000, 1_000_000} {
		r := newTestRing(b, fleet(1000), RingConfig{Points: points / 1000})
		plain := newPointerRing(r)
		keys := someKeys(2, 1<<16)
		b.Run(fmt.Sprintf("points=%d", points), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				sink += r.Lookup(keys[i&(len(keys)-1)])
			}
		})
		b.Run(fmt.Sprintf("points=%d/form=pointers", points), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				sink += plain.lookup(keys[i&(len(keys)-1)])
			}
		})
	}
}

func BenchmarkRingBuild(b *testing.B) {
	for _, points := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("points=%d", points), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newTestRing(b, fleet(points/160), RingConfig{})
			}
		})
	}
}

func BenchmarkRingUpdate(b *testing.B) {
	for _, points := range []int{10_000, 100_000, 1_000_000} {
		for _, perUnit := range []int{160, 1000} {
			list := fleet(points / perUnit)
			r := newTestRing(b, list, RingConfig{Points: perUnit})
			less := without(list, len(list)/2)
			b.Run(fmt.Sprintf("points=%d/each=%d", points, perUnit), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := r.Update(less); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCandidates(b *testing.B) {
	keys := someKeys(3, 1<<12)
	m := newTestMaglev(b, fleet(100), MaglevConfig{})
	r := newTestRing(b, fleet(100), RingConfig{})
	for _, n := range []int{1, 2, 3} {
		b.Run(fmt.Sprintf("table=maglev/candidates=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				left := n
				for c := range m.Candidates(keys[i&(len(keys)-1)]) {
					sink += c
					if left--; left == 0 {
						break
					}
				}
			}
		})
		b.Run(fmt.Sprintf("table=ring/candidates=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				left := n
				for c := range r.Candidates(keys[i&(len(keys)-1)]) {
					sink += c
					if left--; left == 0 {
						break
					}
				}
			}
		})
		b.Run(fmt.Sprintf("table=ring/walk/candidates=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w := r.Walk(keys[i&(len(keys)-1)])
				for range n {
					c, _ := w.Next()
					sink += c
				}
			}
		})
	}
}
