package sim

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// equalFleet is fleet A without a slow server, at the given load.
func equalFleet(name string, balancers int, load float64) Scenario {
	f := FleetA(balancers)
	f.Slow, f.Load = 0, load
	return f.Scenario(name)
}

// failing answers part of the requests with a failure after a millisecond.
func failing(from, until time.Duration, part float64) Phase {
	return Phase{From: from, Until: until, Fail: picker.Failure, FailAfter: time.Millisecond, FailShare: part}
}

// PartialErrors is eight equal servers at 70 % load, the last of which fails a part of what
// it gets.
func PartialErrors(part float64, balancers int) Scenario {
	s := equalFleet(fmt.Sprintf("partial_errors/%g%%/B=%d", 100*part, balancers), balancers, 0.7)
	s.Servers[7].Phases = []Phase{failing(0, s.Length, part)}
	return s
}

// RareErrors is ten servers of any concurrency under one busy client, the last of which
// fails a part of what it gets. With thousands of requests a second, rare errors are
// still several a second.
func RareErrors(part, rate float64) Scenario {
	s := tenAt2000(fmt.Sprintf("rare_errors/%g%%/%g", 100*part, rate), 30*second)
	s.Arrivals.Rate, s.WarmUp = rate, 10*second
	s.Servers[9].Phases = []Phase{failing(0, s.Length, part)}
	return s
}

// ErrorsEverywhere is fleet A in which every server fails a part of the requests.
func ErrorsEverywhere(part float64, balancers int) Scenario {
	s := FleetA(balancers).Scenario(fmt.Sprintf("errors_everywhere/%g%%/B=%d", 100*part, balancers))
	for i := range s.Servers {
		s.Servers[i].Phases = []Phase{failing(0, s.Length, part)}
	}
	return s
}

// HalfFailing is eight equal servers at 35 % load, half of which fail everything from 20 to
// 40 s: the others can carry the load.
func HalfFailing(balancers int) Scenario {
	s := equalFleet(fmt.Sprintf("half_failing/B=%d", balancers), balancers, 0.35)
	s.WarmUp = 0
	s.Windows = []Span{{"failing", 20 * second, 40 * second}, {"after", 50 * second, 60 * second}}
	for i := 4; i < 8; i++ {
		s.Servers[i].Phases = []Phase{failing(20*second, 40*second, 1)}
	}
	return s
}

// MostFailing is eight equal servers at 20 % load, of which the first failed ones fail
// everything from 20 to 40 s. Six can, and the other two carry the load then; with seven, one
// would have to carry one and a half times what it can. Clients wait a second.
func MostFailing(failed, balancers int) Scenario {
	s := equalFleet(fmt.Sprintf("most_failing/%d/B=%d", failed, balancers), balancers, 0.2)
	s.WarmUp, s.Length, s.Timeout = 0, 50*second, second
	s.Windows = []Span{{"failing", 22 * second, 40 * second}}
	for i := range failed {
		s.Servers[i].Phases = []Phase{failing(20*second, 40*second, 1)}
	}
	return s
}

// AllFailing is eight equal servers at 70 % load, all of which fail everything from 20 to
// 40 s.
func AllFailing(balancers int) Scenario {
	s := equalFleet(fmt.Sprintf("all_failing/B=%d", balancers), balancers, 0.7)
	s.WarmUp = 0
	s.Windows = []Span{{"after", 40 * second, 60 * second}}
	for i := range s.Servers {
		s.Servers[i].Phases = []Phase{failing(20*second, 40*second, 1)}
	}
	return s
}

// OneAfterTheOther is AllFailing in which one server comes back every two seconds from 30 s
// on, and clients wait a second for an answer. Whoever is back first can go down under what all
// could carry.
func OneAfterTheOther(balancers int) Scenario {
	s := equalFleet(fmt.Sprintf("one_after_the_other/B=%d", balancers), balancers, 0.7)
	s.WarmUp, s.Timeout = 0, second
	s.Windows = []Span{{"coming back", 30 * second, 44 * second}, {"after", 44 * second, 60 * second}}
	for i := range s.Servers {
		s.Servers[i].Phases = []Phase{failing(20*second, 30*second+2*second*time.Duration(i), 1)}
	}
	return s
}

// outageCases are the cases of servers that fail in part, in numbers, or all at once.
func outageCases() (out []Case) {
	good := Figure{Name: "p99 of successes", Unit: "ms", Of: func(r *Result) float64 { return ms(r.Total.Good.Quantile(0.99)) }}
	for _, part := range []float64{0.01, 0.03, 0.1, 0.3} {
		for _, b := range []int{1, 50} {
			out = append(out, against(PartialErrors(part, b), success, shareOf("failing one's share", "", 7, 8), relative(good)))
		}
	}
	for _, part := range []float64{0.001, 0.01} {
		for _, rate := range []float64{200, 2000, 20_000} {
			out = append(out, against(RareErrors(part, rate), shareOf("failing one's share", "", 9, 10), evenness(0, 9)))
		}
	}
	for _, b := range []int{1, 50, 500} {
		after := quantileIn("p99 after", "after", 0.99)
		out = append(out,
			against(ErrorsEverywhere(0.1, b), relative(good)),
			against(HalfFailing(b), successIn("failing"), shareOf("their share after", "after", 4, 8)),
			against(AllFailing(b), relative(after)),
			against(OneAfterTheOther(b), successIn("coming back"), successIn("after"), after))
	}
	for _, failed := range []int{4, 5, 6, 7} {
		for _, b := range []int{1, 50} {
			out = append(out, against(MostFailing(failed, b), successIn("failing"), quantileIn("p99 failing", "failing", 0.99)))
		}
	}
	return out
}
