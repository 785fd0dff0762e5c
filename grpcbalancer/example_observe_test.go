package grpcbalancer_test

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/grpcbalancer"
	"github.com/evenkeel/evenkeel/picker"
)

func ExampleServiceConfig() {
	text, err := grpcbalancer.ServiceConfig(evenkeel.Config{
		Policy:  picker.WeightedRoundRobin{},
		Reports: &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights, OutOfBand: 10 * time.Second},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(text)
	// Output: {"loadBalancingConfig":[{"evenkeel":{"policy":{"weighted_round_robin":{}},"reports":{"out_of_band":"10s","weights":"reported"}}}]}
}

// What an operator wants to know of the channels of a process, for a debug page, say.
func ExampleStats() {
	for _, c := range grpcbalancer.Stats() {
		fmt.Printf("%s: %v, %d of %d connections ready\n", c.Target, c.State, c.Ready, len(c.Connections))
		for _, e := range c.Pool.Endpoints {
			fmt.Println(e.ID, e.InFlight, e.Latency, e.Reasons())
		}
	}
	// Output:
}
