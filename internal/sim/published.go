package sim

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// The fleets below are those of published simulations, as far as their authors say what
// they were. [PublishedCases] makes cases of them.

// QueueUnit is the mean service time of [FiftyQueues], whose figures are in multiples of
// it.
const QueueUnit = 10 * time.Millisecond

// FiftyQueues is fifty servers of one worker and exponential service, the first slow of
// them three times slower, under Poisson traffic of load times the capacity that they
// would have without slow ones. There are 200,000 requests, of which the first tenth is
// left out.
func FiftyQueues(load float64, slow int) Scenario {
	s := Scenario{
		Name:    fmt.Sprintf("fifty_queues/load=%g", load),
		Servers: equal(50, Server{Workers: 1}), Service: exponential(QueueUnit),
		Arrivals: Arrivals{Rate: 50 * load / QueueUnit.Seconds()},
		Requests: 200_000, WarmUpRequests: 20_000,
	}
	for i := range min(slow, 50) {
		s.Servers[i].Speed = 1.0 / 3
	}
	if slow > 0 {
		s.Name = fmt.Sprintf("fifty_queues/slow=%d", slow)
	}
	return s
}

// EightServers is eight servers of one worker and exponential service of 10 ms, the last
// three times slower, under Poisson traffic of 70 % of their capacity for a minute. It
// is [FleetA] without network and without warm-up.
func EightServers(balancers int) Scenario {
	s := FleetA(balancers).Scenario(fmt.Sprintf("eight_servers/B=%d", balancers))
	s.Delay, s.WarmUp = 0, 0
	return s
}

// BlackHole is ten servers, the first of which answers everything with a failure after a
// millisecond, as a process does that has lost its database. The others take any number
// of requests at once and an exponential time of 50 ms. The traffic is chosen, as the
// simulation that its figures come from does not say; 80,000 requests, 1,000 a second.
func BlackHole(balancers int) Scenario {
	s := Scenario{
		Name:    fmt.Sprintf("black_hole/B=%d", balancers),
		Servers: equal(10, Server{}), Service: exponential(50 * time.Millisecond),
		Arrivals: Arrivals{Rate: 1000}, Requests: 80_000, Balancers: balancers,
	}
	s.Servers[0].Phases = []Phase{{Until: time.Hour, Fail: picker.Failure, FailAfter: time.Millisecond}}
	return s
}

// TwoGenerations is nine servers that serve 1,000 requests a second and three that serve
// 600, each of one worker and exponential service, under 9,000 requests a second: 83 % of
// their capacity. It lasts 20 s without the first four; the slow ones overflow if they
// get as much as the others, and then the length is what is measured.
func TwoGenerations(balancers int) Scenario {
	s := Scenario{
		Name:    fmt.Sprintf("two_generations/B=%d", balancers),
		Servers: equal(12, Server{Workers: 1}), Service: exponential(time.Millisecond),
		Arrivals: Arrivals{Rate: 9000}, Balancers: balancers, Length: 20 * time.Second, WarmUp: 4 * time.Second,
	}
	for i := 9; i < 12; i++ {
		s.Servers[i].Speed = 0.6
	}
	return s
}

// SlowEleventh is eleven servers whose latency is lognormal around 167 ms and does not
// depend on load, the first of which takes two seconds for everything from 15 to 45 s,
// under 1,000 requests a second for a minute. The published experiment does not give its
// law; narrow ones give its figures.
func SlowEleventh() Scenario {
	s := Scenario{
		Name: "slow_eleventh", Servers: equal(11, Server{}),
		Service:  LogNormal{Median: 167 * time.Millisecond, Sigma: 0.3},
		Arrivals: Arrivals{Rate: 1000}, Length: time.Minute,
	}
	s.Servers[0].Phases = []Phase{{From: 15 * time.Second, Until: 45 * time.Second, Service: Fixed{2 * time.Second}}}
	return s
}

// PublishedCases returns the fleets of published simulations with their figures.
func PublishedCases() []Case {
	p50 := quantile("p50", 0.5)
	shareOf := func(name string, i int) Figure {
		return Figure{Name: name, Unit: "%", Of: func(r *Result) float64 { return 100 * r.Total.Share(i) }}
	}
	var out []Case
	add := func(s Scenario, figures ...Figure) {
		out = append(out, Case{Name: s.Name, Scenario: s, Figures: figures})
	}
	add(FiftyQueues(0.7, 0), mean, p50, p99, p999)
	add(FiftyQueues(0.9, 0), mean, p50, p99, p999)
	add(FiftyQueues(0.6, 5), mean, p50, p99, p999)
	for _, b := range []int{1, 50} {
		add(EightServers(b), mean, p50, p99, p999, shareOf("slow one's share", 7))
	}
	for _, b := range []int{1, 20} {
		add(BlackHole(b), shareOf("failing one's share", 0), success)
	}
	for _, b := range []int{1, 20} {
		add(TwoGenerations(b), mean, p99, shareOf("new one's share", 0), shareOf("old one's share", 11))
	}
	add(SlowEleventh(), slow, p99, p999)
	return out
}
