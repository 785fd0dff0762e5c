package subset

import (
	"fmt"
	"testing"
)

// What one update costs a client, whatever of the list has changed.
func BenchmarkUpdate(b *testing.B) {
	for a := UseRendezvous; a <= UseDeterministic; a++ {
		for _, n := range []int{1000, 10_000} {
			for _, weights := range []bool{false, true} {
				if weights && a != UseDeal {
					continue
				}
				name := fmt.Sprintf("algorithm=%v/n=%d", a, n)
				c := Config{Algorithm: a, Size: 20, ClientIndex: IndexOf(17), ClientCount: 1000, Seed: 1}
				if a == UseDeal && !weights {
					c.ClientCount = 0
				}
				if weights {
					name = fmt.Sprintf("algorithm=%v/load_weights/clients=1000/n=%d", a, n)
				}
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					s := newSelector(b, c)
					lists := [2]Members{listOf(everybody(n)), listOf(everybody(n + 1)[1:])}
					i := 0
					for b.Loop() {
						if _, err := s.Update(lists[i%2]); err != nil {
							b.Fatal(err)
						}
						i++
					}
				})
			}
		}
	}
}

func BenchmarkDeal(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			m := listOf(everybody(n))
			for b.Loop() {
				if _, err := Deal(Client{Index: 17}, m, 20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
