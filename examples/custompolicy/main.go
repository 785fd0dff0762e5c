// Command custompolicy shows a policy and a signal written outside Evenkeel, with its
// public API alone.
package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run sends requests through both, in a time of its own so that it always prints the
// same, and prints who got them.
func run(out io.Writer) error {
	even, err := shares(LeastRecent{Draws: 8}, 3000)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "least recent: near %.0f %%, far %.0f %%, remote %.0f %%\n", 100*even["near"], 100*even["far"], 100*even["remote"])

	priced := picker.P2C{Signal: Priced{Prices: &map[string]float64{"remote": 100}}, Choices: 3}
	cheap, err := shares(priced, 3000)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "priced: remote gets %.1f %%\n", 100*cheap["remote"])
	return nil
}

// shares returns which part of n requests each of three endpoints gets.
func shares(policy evenkeel.Policy, n int) (map[string]float64, error) {
	now := time.Unix(0, 0)
	state := uint64(1)
	random := func() uint64 { // xorshift: always the same numbers
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		return state
	}
	pool, err := evenkeel.NewPool[string](evenkeel.Config{Policy: policy}, evenkeel.Options{Start: now, Rand: random})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	var list []evenkeel.Member[string]
	for _, id := range []string{"near", "far", "remote"} {
		list = append(list, evenkeel.Member[string]{Endpoint: evenkeel.Endpoint{ID: id}, Handle: id})
	}
	if err := pool.UpdateAt(now, list); err != nil {
		return nil, err
	}
	got := map[string]float64{}
	for range n {
		now = now.Add(time.Millisecond)
		pick, err := pool.PickAt(now, evenkeel.Request{})
		if err != nil {
			return nil, err
		}
		got[pick.Handle()] += 1 / float64(n)
		pick.DoneAt(now.Add(10*time.Millisecond), evenkeel.Result{Outcome: evenkeel.Success})
	}
	return got, nil
}

// log2 is the logarithm in the fixed point of costs.
func log2(f float64) int64 { return int64(math.Log2(f) * 65536) }
