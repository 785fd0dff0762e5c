package hash

import (
	"fmt"
	"strings"
	"testing"
)

// What keys map to is a promise: a change of these values moves every user's keys, and makes
// clients of two versions disagree. They hold on every GOARCH.
var rendezvousGolden = map[string]struct {
	owners string // of user-0 to user-4
	digest uint64 // of the first three candidates of a thousand keys
}{
	"equal":     {"10.0.0.27:8080 10.0.0.4:8080 10.0.0.32:8080 10.0.0.8:8080 10.0.0.2:8080", 0xa3ad5f2f89a09075},
	"three":     {"10.0.0.27:8080 10.0.0.4:8080 10.0.0.32:8080 10.0.0.8:8080 10.0.0.2:8080", 0xf820554b397650c6},
	"many":      {"10.0.0.27:8080 10.0.0.4:8080 10.0.0.37:8080 10.0.0.8:8080 10.0.0.36:8080", 0xc88fab55c201a0c1},
	"skewed":    {"10.0.0.17:8080 10.0.0.4:8080 10.0.0.8:8080 10.0.0.8:8080 10.0.0.17:8080", 0x99e2e673dbf0e8e6},
	"drained":   {"10.0.0.27:8080 10.0.0.13:8080 10.0.0.37:8080 10.0.0.30:8080 10.0.0.11:8080", 0xce5097a49e92fc86},
	"fractions": {"10.0.0.27:8080 10.0.0.4:8080 10.0.0.37:8080 10.0.0.8:8080 10.0.0.36:8080", 0x9fa02a4a832d70a9},
}

func TestRendezvousGoldenValues(t *testing.T) {
	for _, w := range rvWeights {
		list := rvList(40, w.weight)
		table := mustRendezvous(t, list, RendezvousConfig{Seed: 42})
		var owners []string
		var all strings.Builder
		for k := range 1000 {
			key := Sum(fmt.Sprintf("user-%d", k))
			if k < 5 {
				owners = append(owners, list[table.Lookup(key)].ID)
			}
			for _, i := range table.AppendN(nil, key, 3) {
				fmt.Fprintln(&all, list[i].ID)
			}
		}
		got, want := rendezvousGolden[w.name], rendezvousGolden[w.name]
		got.owners, got.digest = strings.Join(owners, " "), Sum(all.String())
		if got != want {
			t.Errorf("%q: {%q, %#x},\nwant {%q, %#x}", w.name, got.owners, got.digest, want.owners, want.digest)
		}
	}
}

// TestNegLogGoldenValues holds the logarithm to the last bit.
func TestNegLogGoldenValues(t *testing.T) {
	var all strings.Builder
	for _, y := range trickyScores() {
		fmt.Fprintln(&all, negLog(y))
	}
	if got, want := Sum(all.String()), uint64(0xc9b6e67480580f1e); got != want {
		t.Errorf("the digest is %#x, want %#x", got, want)
	}
	if got, want := negLog(1<<63), uint64(199786072581291498); got != want {
		t.Errorf("negLog(1/2) is %d, want %d", got, want)
	}
}
