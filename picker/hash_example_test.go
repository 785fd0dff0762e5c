package picker_test

import (
	"fmt"
	"slices"

	"github.com/evenkeel/evenkeel/hash"
	"github.com/evenkeel/evenkeel/picker"
)

// Requests of one user go to one endpoint, and come back to it after it was down. In a pool, the
// adapters make the keys and the rest.
func ExampleHash() {
	policy := picker.Hash{}
	registry := picker.NewRegistry(nil)
	registry.Learn(policy.Needs())
	members, err := registry.Members([]picker.Endpoint{{ID: "a"}, {ID: "b"}, {ID: "c"}}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := policy.Build(members, nil)
	send := func(available []int32) int {
		s := picker.NewSnapshot(members, available, policy, p)
		pick, i, err := s.Pick(picker.Request{Key: hash.Sum("user-7"), HasKey: true}, 1)
		if err != nil {
			fmt.Println(err)
		}
		pick.Done(2, picker.Result{Outcome: picker.Success})
		return i
	}
	first, again := send(nil), send(nil)
	others := slices.DeleteFunc([]int32{0, 1, 2}, func(i int32) bool { return int(i) == first })
	elsewhere := send(others)
	fmt.Println("the same again:", again == first)
	fmt.Println("another while it is down:", elsewhere != first)
	fmt.Println("back afterwards:", send(nil) == first)
	// Output:
	// the same again: true
	// another while it is down: true
	// back afterwards: true
}
