package sim

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel"
)

// Thirds are three numbers for the three thirds of a fleet.
type Thirds [3]int

// Told is n servers at 70 % load whose thirds have different weights, speeds or numbers of
// workers: what clients are told of their capacities may be right or wrong. n is a multiple of
// 3.
func Told(name string, n, balancers int, weights, speeds, workers Thirds) Scenario {
	s := Scenario{
		Name: fmt.Sprintf("told/%s/n=%d/B=%d", name, n, balancers), Service: exponential(10 * time.Millisecond),
		Balancers: balancers, Delay: time.Millisecond / 2, Length: time.Minute, WarmUp: 10 * second,
	}
	capacity := 0
	for i := range n {
		k := i * 3 / n
		s.Servers = append(s.Servers, Server{
			Workers: workers[k], Speed: float64(speeds[k]), Weight: evenkeel.WeightOf(float64(weights[k])),
		})
		capacity += workers[k] * speeds[k]
	}
	s.Arrivals.Rate = 0.7 * float64(capacity) * 100
	return s
}

// toldCases are the cases of weights, right and wrong.
func toldCases() (out []Case) {
	up, down, same := Thirds{1, 2, 4}, Thirds{4, 2, 1}, Thirds{1, 1, 1}
	for _, n := range []int{6, 15} {
		for _, b := range []int{1, 50} {
			for _, v := range []struct {
				name                     string
				weights, speeds, workers Thirds
			}{
				{"right_speeds", up, up, same}, {"no_speeds", same, up, same}, {"reversed_speeds", down, up, same},
				{"right_workers", up, same, up}, {"no_workers", same, same, up}, {"reversed_workers", down, same, up},
				{"nothing_behind", up, same, same},
			} {
				c := againstBound(Told(v.name, n, b, v.weights, v.speeds, v.workers))
				c.Figures = append(c.Figures, shareOf("first third's share", "", 0, n/3), shareOf("last third's share", "", n-n/3, n))
				out = append(out, c)
			}
		}
	}
	return out
}
