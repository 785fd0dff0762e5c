package hash

import (
	"fmt"
	"math"
	"testing"
)

// stringRendezvous is the plain form: the endpoints' hashes beside their names, xorshift
// multiplied, over the hash of the key's text.
func stringRendezvous(points []uint64, key string) int {
	h := Sum(key)
	best, at := uint64(0), 0
	for i, p := range points {
		s := h ^ p
		s ^= s >> 12
		s ^= s << 25
		s ^= s >> 27
		if s *= 2685821657736338717; s > best {
			best, at = s, i
		}
	}
	return at
}

// hashedStringRendezvous hashes the endpoint's name with the key's for every endpoint.
func hashedStringRendezvous(ids []string, key string) int {
	best, at := uint64(0), 0
	h := Sum(key)
	for i, id := range ids {
		if s := SumSeed(id, h|1); s > best {
			best, at = s, i
		}
	}
	return at
}

// logRendezvous is the textbook form: a logarithm and a division each.
func logRendezvous(h uint64, points []uint64, weights []float64) int {
	best, at := math.Inf(1), 0
	for i, p := range points {
		u := 1 - float64(score(h, p)>>11)/(1<<53)
		if c := -math.Log(u) / weights[i]; c < best {
			best, at = c, i
		}
	}
	return at
}

var rvSink int

func BenchmarkRendezvous(b *testing.B) {
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = fmt.Sprintf("user-%011d", i)
	}
	for _, n := range []int{10, 100, 1000} {
		equal := mustRendezvous(b, rvList(n, nil), RendezvousConfig{})
		b.Run(fmt.Sprintf("form=string/n=%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				rvSink += stringRendezvous(equal.points, keys[i&1023])
			}
		})
		b.Run(fmt.Sprintf("form=hashed_string/n=%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				rvSink += hashedStringRendezvous(equal.list.ids, keys[i&1023])
			}
		})
		b.Run(fmt.Sprintf("form=equal/n=%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				rvSink += equal.Lookup(Sum(keys[i&1023]))
			}
		})
		for _, w := range rvWeights[1:] {
			if w.name == "drained" {
				continue
			}
			table := mustRendezvous(b, rvList(n, w.weight), RendezvousConfig{})
			floats := make([]float64, len(table.list.weights))
			for i, v := range table.list.weights {
				floats[i] = float64(v)
			}
			b.Run(fmt.Sprintf("form=log_%s/n=%d", w.name, n), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					rvSink += logRendezvous(table.mixKey(Sum(keys[i&1023])), table.list.points, floats)
				}
			})
			b.Run(fmt.Sprintf("form=%s/n=%d", w.name, n), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					rvSink += table.Lookup(Sum(keys[i&1023]))
				}
			})
		}
		b.Run(fmt.Sprintf("form=equal_candidates_9/n=%d", n), func(b *testing.B) {
			var dst [9]int
			for i := 0; b.Loop(); i++ {
				rvSink += len(equal.AppendN(dst[:0], Sum(keys[i&1023]), 9))
			}
		})
	}
}
