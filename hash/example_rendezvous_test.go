package hash_test

import (
	"fmt"

	"github.com/evenkeel/evenkeel/hash"
)

// Who is next for a key now gets it when its owner is removed.
func ExampleRendezvous() {
	nodes := []hash.Endpoint{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}, {ID: "c", Weight: 2}}
	table, err := hash.NewRendezvous(nodes, hash.RendezvousConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := hash.Sum("user:3")
	for i := range table.Candidates(key) {
		fmt.Print(nodes[i].ID, " ")
	}
	fewer := nodes[:2]
	without, err := table.Update(fewer)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("- without c:", fewer[without.Lookup(key)].ID)
	// Output:
	// c b a - without c: b
}

// A key that everybody asks for fills its owner up to 1.25 times its share, and then its next
// candidates.
func ExampleBound() {
	nodes := []hash.Endpoint{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}, {ID: "c", Weight: 1}}
	table, err := hash.NewRendezvous(nodes, hash.RendezvousConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	bound, err := hash.NewBound(hash.BoundConfig{Factor: 1.25, MinCapacity: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	var load [3]int64
	total := int64(0)
	place := func(key uint64) int {
		search := bound.Search(total, 3)
		for i := range table.Candidates(key) {
			if search.Offer(i, load[i], 1) {
				return i
			}
		}
		return search.Least()
	}
	for range 60 {
		load[place(hash.Sum("popular"))]++
		total++
	}
	fmt.Println(load)
	// Output:
	// [10 25 25]
}

// Twenty partitions on disk; a twenty-first takes a twenty-first of the keys.
func ExampleJump() {
	moved := 0
	for key := range uint64(1000) {
		if hash.Jump(hash.Sum(fmt.Sprint(key)), 20) != hash.Jump(hash.Sum(fmt.Sprint(key)), 21) {
			moved++
		}
	}
	fmt.Println(moved, "of 1000 keys moved")
	// Output:
	// 41 of 1000 keys moved
}
