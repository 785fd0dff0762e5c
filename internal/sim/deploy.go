package sim

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// BadDeploy is ten servers that work on one request at a time, for 10 ms on average, at the given
// load, of which the first failed ones answer everything with a failure after a
// millisecond from 20 to 40 s. Clients wait a second; work that they gave up is done all the same.
// Whoever moves the load to the others without a limit brings those down too, for good.
func BadDeploy(failed int, load float64, balancers int) Scenario {
	s := Scenario{
		Name:      fmt.Sprintf("bad_deploy/%d/load=%g/B=%d", failed, load, balancers),
		Servers:   equal(10, Server{Workers: 1}),
		Service:   exponential(10 * time.Millisecond),
		Arrivals:  Arrivals{Rate: 1000 * load},
		Balancers: balancers,
		Timeout:   second,
		Length:    100 * second,
		Windows: []Span{{"before", 10 * second, 20 * second}, {"failing", 20 * second, 40 * second},
			{"5 s after", 45 * second, 50 * second}, {"15 s after", 55 * second, 60 * second}, {"later", 60 * second, 100 * second}},
		Bucket: time.Second,
	}
	for i := range failed {
		s.Servers[i].Phases = []Phase{{From: 20 * second, Until: 40 * second, Fail: picker.Failure, FailAfter: time.Millisecond}}
	}
	return s
}

// badDeployCases are the outage that was found to outlive its cause, and ones like it.
func badDeployCases() (out []Case) {
	for _, b := range []int{1, 20, 100} {
		for _, s := range []Scenario{BadDeploy(3, 0.8, b), BadDeploy(3, 0.6, b), BadDeploy(6, 0.8, b), BadDeploy(2, 0.9, b)} {
			out = append(out, Case{Name: s.Name, Scenario: s, Figures: []Figure{
				successIn("failing"), successIn("5 s after"), successIn("15 s after"), successIn("later"), backAfter()}})
		}
	}
	return out
}

// backAfter is how long after the end of the bad deploy the last second was with less than 99 % success.
func backAfter() Figure {
	return Figure{Name: "back after", Unit: "s", Of: func(r *Result) float64 {
		last := 0
		for i, s := range r.Buckets {
			if i >= 40 && s.Outcomes.Success() < 0.99 {
				last = i - 39
			}
		}
		return float64(last)
	}}
}
