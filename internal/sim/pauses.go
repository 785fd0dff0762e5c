package sim

import (
	"fmt"
	"time"
)

// OnAndOff is fleet A under bursts of a second every ten, in which it is loaded to 70 %.
func OnAndOff(balancers int) Scenario {
	s := FleetA(balancers).Scenario(fmt.Sprintf("on_and_off/B=%d", balancers))
	s.Arrivals.Kind, s.Arrivals.Period, s.Arrivals.On = Bursts, 10*second, second
	s.Arrivals.Rate /= 10
	s.Length, s.WarmUp = 3*time.Minute, 0
	return s
}

// IdleThenBusy is fleet A with a minute of traffic, nothing for five, and a minute of
// traffic again.
func IdleThenBusy(balancers int) Scenario {
	s := FleetA(balancers).Scenario(fmt.Sprintf("idle_then_busy/B=%d", balancers))
	s.Arrivals.Kind, s.Arrivals.Period, s.Arrivals.On = Bursts, 6*time.Minute, time.Minute
	s.Arrivals.Rate /= 6
	s.Length, s.WarmUp = 7*time.Minute, 0
	s.Windows = []Span{
		{"cold second", 0, second}, {"cold minute", 0, time.Minute},
		{"second after", 6 * time.Minute, 6*time.Minute + second}, {"minute after", 6 * time.Minute, 7 * time.Minute},
	}
	return s
}

// SlowMajority is five servers of which three take ten times as long for the first two
// minutes, and are as good as the others from then on.
func SlowMajority(rate float64) Scenario {
	s := Scenario{
		Name: fmt.Sprintf("slow_majority/%g", rate), Servers: equal(5, Server{}), Service: millis(16, 24),
		Arrivals: Arrivals{Rate: rate}, Length: 30 * time.Minute,
		Windows: []Span{{"soon", 2 * time.Minute, 10 * time.Minute}, {"later", 10 * time.Minute, 30 * time.Minute}},
	}
	for i := 2; i < 5; i++ {
		s.Servers[i].Phases = []Phase{{Until: 2 * time.Minute, Slow: 10}}
	}
	return s
}

// pauseCases are the cases of clients that send nothing to somebody, or to anybody, for a
// while.
func pauseCases() (out []Case) {
	for _, b := range []int{1, 50} {
		out = append(out, againstBound(OnAndOff(b)), against(IdleThenBusy(b),
			quantileIn("p99 cold second", "cold second", 0.99), quantileIn("p99 second after", "second after", 0.99),
			quantileIn("p99 cold minute", "cold minute", 0.99), quantileIn("p99 minute after", "minute after", 0.99)))
	}
	for _, rate := range []float64{1, 5, 100} {
		out = append(out, against(SlowMajority(rate), shareOf("their share soon", "soon", 2, 5), shareOf("their share later", "later", 2, 5)))
	}
	return out
}
