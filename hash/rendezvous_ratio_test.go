package hash

import (
	"fmt"
	"testing"
)

func TestRendezvousLookupTakesLessThanThePlainForms(t *testing.T) {
	skipTiming(t)
	keys := make([]string, 1<<10)
	for i := range keys {
		keys[i] = fmt.Sprintf("user-%011d", i)
	}
	run := func(lookup func(key string) int) func() {
		return func() {
			for range 10 {
				for _, key := range keys {
					rvSink += lookup(key)
				}
			}
		}
	}
	equal := mustRendezvous(t, rvList(100, nil), RendezvousConfig{})
	lookup := run(func(key string) int { return equal.Lookup(Sum(key)) })
	checkRatio(t, "equal weights, n=100, over scores of the key's hash", 0.75, lookup,
		run(func(key string) int { return stringRendezvous(equal.points, key) }))
	t.Logf("the same over a hash of the ID for each key: %.3f", cpuRatio(t, lookup,
		run(func(key string) int { return hashedStringRendezvous(equal.list.ids, key) })))
	for _, w := range rvWeights[1:] {
		table := mustRendezvous(t, rvList(100, w.weight), RendezvousConfig{})
		floats := make([]float64, len(table.list.weights))
		for i, v := range table.list.weights {
			floats[i] = float64(v)
		}
		checkRatio(t, w.name+" weights, n=100, over a logarithm each", 0.3,
			run(func(key string) int { return table.Lookup(Sum(key)) }),
			run(func(key string) int { return logRendezvous(table.mixKey(Sum(key)), table.list.points, floats) }))
	}
}
