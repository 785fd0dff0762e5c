package picker_test

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// A stack of one's own: a registry, a list, a policy over it, and the instants of a clock that
// the caller reads. Of three endpoints one takes a hundred times as long as the others.
func Example() {
	policy := picker.Adaptive{}
	registry := picker.NewRegistry(nil)
	registry.Learn(policy.Needs())
	members, err := registry.Members([]picker.Endpoint{{ID: "a"}, {ID: "b"}, {ID: "slow"}}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	snapshot := picker.NewSnapshot(members, nil, policy, policy.Build(members, nil))

	counts := map[string]int{}
	now := int64(0) // nanoseconds since an origin of the caller's
	for range 1000 {
		pick, _, err := snapshot.Pick(picker.Request{}, now)
		if err != nil {
			fmt.Println(err)
			return
		}
		counts[pick.Record().ID()]++
		took := 2 * time.Millisecond // for sending it there and waiting for the answer
		if pick.Record().ID() == "slow" {
			took = 200 * time.Millisecond
		}
		now += int64(took)
		pick.Done(now, picker.Result{Outcome: picker.Success})
	}
	registry.Sweep(now) // about once a second
	snapshot.Sweep(now)

	fmt.Println("half each, and hardly any:", counts["a"] > 400, counts["b"] > 400, counts["slow"] < 10)
	median, _ := members.MedianLatency()
	fmt.Println("median latency:", median.Round(time.Millisecond))
	// Output:
	// half each, and hardly any: true true true
	// median latency: 2ms
}

// An endpoint that is down stays a member and keeps its record; a snapshot without it is what
// picks see.
func ExampleNewSnapshot() {
	policy := picker.RoundRobin{}
	members, err := picker.NewRegistry(nil).Members([]picker.Endpoint{{ID: "a"}, {ID: "b"}}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	built := policy.Build(members, nil)
	up := picker.NewSnapshot(members, []int32{1}, policy, built) // only b
	for range 2 {
		pick, _, err := up.Pick(picker.Request{}, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(pick.Record().ID())
		pick.Done(0, picker.Result{Outcome: picker.Success})
	}
	// Output:
	// b
	// b
}
