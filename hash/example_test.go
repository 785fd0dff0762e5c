package hash_test

import (
	"fmt"

	"github.com/evenkeel/evenkeel/hash"
)

// A cache of three nodes, one of them with twice the memory. The node of a key stays the same
// when another one goes.
func Example() {
	nodes := []hash.Endpoint{{ID: "cache-a", Weight: 1}, {ID: "cache-b", Weight: 1}, {ID: "cache-c", Weight: 2}}
	ring, err := hash.NewRing(nodes, hash.RingConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fewer := nodes[1:]
	without, err := ring.Update(fewer)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"user:1", "user:2", "user:8", "user:21"} {
		h := hash.Sum(key)
		fmt.Println(key, nodes[ring.Lookup(h)].ID, fewer[without.Lookup(h)].ID)
	}
	// Output:
	// user:1 cache-c cache-c
	// user:2 cache-b cache-b
	// user:8 cache-a cache-c
	// user:21 cache-b cache-b
}

// Who is down is passed over, and nothing is built.
func ExampleMaglev_Candidates() {
	nodes := []hash.Endpoint{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}, {ID: "c", Weight: 1}}
	down := map[string]bool{}
	table, err := hash.NewMaglev(nodes, hash.MaglevConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pick := func(key string) string {
		for i := range table.Candidates(hash.Sum(key)) {
			if !down[nodes[i].ID] {
				return nodes[i].ID
			}
		}
		return "nobody"
	}
	fmt.Println(pick("session-1"))
	down[pick("session-1")] = true
	fmt.Println(pick("session-1"))
	clear(down)
	fmt.Println(pick("session-1"))
	// Output:
	// a
	// c
	// a
}

// What weights are in slots.
func ExampleMaglev_Stats() {
	table, err := hash.NewMaglev([]hash.Endpoint{{ID: "a", Weight: 1}, {ID: "b", Weight: 2}}, hash.MaglevConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := table.Stats()
	fmt.Printf("%d slots, shares %.4f to %.4f of what the weights say\n", s.Slots, s.MinShare, s.MaxShare)
	// Output:
	// 65537 slots, shares 1.0000 to 1.0000 of what the weights say
}

// Errors name every problem, and a table is never built for nobody.
func ExampleNewMaglev() {
	_, err := hash.NewMaglev([]hash.Endpoint{{ID: "a", Weight: 1}, {ID: "a", Weight: -1}}, hash.MaglevConfig{Size: 1000})
	fmt.Println(err)
	_, err = hash.NewMaglev([]hash.Endpoint{{ID: "a"}, {ID: "b"}}, hash.MaglevConfig{})
	fmt.Println(err)
	// Output:
	// hash: MaglevConfig.Size is 1000, want a prime such as 997 or 1009
	// hash: endpoint 1 ("a"): Weight is -1, want 0 or 1e-06 to 4.294967296e+09
	// hash: endpoint 1: ID "a" is that of endpoint 0, want a unique one or MergeDuplicates
	// hash: no endpoint has a weight above 0
}

// Without an allocation, behind an interface of the caller's own.
func ExampleWalk() {
	var table interface{ Walk(key uint64) hash.Walk }
	table, err := hash.NewRing([]hash.Endpoint{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}, {ID: "c", Weight: 1}}, hash.RingConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	w := table.Walk(hash.Sum("user:7"))
	for i, ok := w.Next(); ok; i, ok = w.Next() {
		fmt.Println(i)
	}
	// Output:
	// 0
	// 2
	// 1
}

// A client that shares a memcached cache with clients of libketama.
func ExampleKetamaSum() {
	nodes := []hash.Endpoint{{ID: "10.0.1.1:11211", Weight: 1}, {ID: "10.0.1.2:11211", Weight: 1}}
	ring, err := hash.NewRing(nodes, hash.RingConfig{Ketama: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(nodes[ring.Lookup(hash.KetamaSum("user:1"))].ID)
	// Output:
	// 10.0.1.1:11211
}
