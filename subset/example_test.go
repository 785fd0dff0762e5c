package subset_test

import (
	"fmt"
	"strings"

	"github.com/evenkeel/evenkeel/subset"
)

// Client 7 of a deployment takes its part of a hundred backends. Then one that it does not
// have is removed, and nothing moves.
func Example() {
	var backends []string
	for i := range 100 {
		backends = append(backends, fmt.Sprintf("backend-%d", i))
	}
	selector, err := subset.NewSelector(subset.Config{Size: 12, ClientIndex: subset.IndexOf(7)})
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func(list []string) {
		got, err := selector.Update(subset.Members{IDs: list})
		if err != nil {
			fmt.Println(err)
			return
		}
		var names []string
		for _, i := range got {
			names = append(names, list[i])
		}
		fmt.Println(strings.Join(names, " "))
	}
	show(backends)
	show(backends[1:])
	// Output:
	// backend-7 backend-28 backend-29 backend-37 backend-46 backend-54 backend-55 backend-59 backend-68
	// backend-7 backend-28 backend-29 backend-37 backend-46 backend-54 backend-55 backend-59 backend-68
}

// A random part for a client without an index, the same one after a restart.
func ExampleRendezvous() {
	members := subset.Members{IDs: []string{"a", "b", "c", "d", "e", "f"}}
	got, err := subset.Rendezvous(subset.Client{Seed: subset.Identity("checkout-5f7d")}, members, 3)
	fmt.Println(got, err)
	// Output: [3 4 5] <nil>
}

// The number of a StatefulSet's pod is an index.
func ExampleOrdinal() {
	fmt.Println(subset.Ordinal("web-12.web.default.svc.cluster.local"))
	_, err := subset.Ordinal("web")
	fmt.Println(err)
	// Output:
	// 12 <nil>
	// subset: the name is "web", want one that ends in an ordinal from 0 to 16777215, such as web-12
}
