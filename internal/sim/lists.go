package sim

import (
	"fmt"
	"slices"
	"time"
)

// RollingRestart is eight equal servers at 60 % load, each of which is off the list for five
// seconds in turn, and takes three times as long when it comes back, less and less so for
// five more.
func RollingRestart(balancers int) Scenario {
	s := equalFleet(fmt.Sprintf("rolling_restart/B=%d", balancers), balancers, 0.6)
	for i := range s.Servers {
		from := 10*second + time.Duration(i)*6*second
		s.Servers[i].Phases = []Phase{
			{From: from, Until: from + 5*second, Absent: true},
			{From: from + 5*second, Until: from + 10*second, Slow: 3, SlowEnd: 1},
		}
	}
	return s
}

// FlappingList is fleet A of which the first server is on the list for half of every
// second only.
func FlappingList(balancers int) Scenario {
	s := FleetA(balancers).Scenario(fmt.Sprintf("flapping_list/B=%d", balancers))
	for from := second; from < s.Length; from += second {
		s.Servers[0].Phases = append(s.Servers[0].Phases, Phase{From: from, Until: from + second/2, Absent: true})
	}
	return s
}

// ScaleOut is n equal servers at 80 % load that as many more join at 20 s.
func ScaleOut(n, balancers int) Scenario {
	f := FleetA(balancers)
	f.Servers, f.Slow, f.Load, f.Length, f.WarmUp = n, 0, 0.8, time.Minute, 0
	s := f.Scenario(fmt.Sprintf("scale_out/n=%d/B=%d", n, balancers))
	for range n {
		s.Servers = append(s.Servers, Server{Workers: 1, Phases: []Phase{{Until: 20 * second, Absent: true}}})
	}
	s.Windows = []Span{{"at first", 20 * second, 25 * second}, {"settled", 30 * second, 60 * second}, {"after", 20 * second, 60 * second}}
	return s
}

// ScaleIn is eight equal servers at 50 % load, three of which leave for good at 20 s.
func ScaleIn(balancers int) Scenario {
	s := equalFleet(fmt.Sprintf("scale_in/B=%d", balancers), balancers, 0.5)
	s.WarmUp, s.Length = 0, 40*second
	for i := range 3 {
		s.Servers[i].Phases = []Phase{{From: 20 * second, Until: s.Length, Absent: true}}
	}
	s.Windows = []Span{{"after", 20 * second, 40 * second}}
	return s
}

// BackUnderLoad is eight servers at 95 % load, to two of which something happens from 5 to 15 s
// that leaves the others with queues of seconds, and theirs empty.
func BackUnderLoad(name string, p Phase, balancers int) Scenario {
	p.From, p.Until = 5*second, 15*second
	s := Scenario{
		Name: fmt.Sprintf("back_under_load/%s/B=%d", name, balancers), Servers: equal(8, Server{Workers: 4}), Service: exponential(20 * time.Millisecond),
		Arrivals: Arrivals{Rate: 0.95 * 8 * 200}, Balancers: balancers, Delay: time.Millisecond / 2, Timeout: 3 * second,
		Length: 40 * second, Windows: []Span{{"after", 15 * second, 40 * second}},
	}
	s.Servers[0].Phases, s.Servers[1].Phases = []Phase{p}, []Phase{p}
	return s
}

// HelpUnderLoad is eleven servers that get a twentieth more than they can do, until a twelfth
// joins at 5 s.
func HelpUnderLoad(balancers int) Scenario {
	s := Scenario{
		Name: fmt.Sprintf("help_under_load/B=%d", balancers), Servers: equal(12, Server{Workers: 16}), Service: exponential(20 * time.Millisecond),
		Arrivals: Arrivals{Rate: 1.05 * 11 * 800}, Balancers: balancers, Delay: time.Millisecond / 2, Timeout: second,
		Length: 20 * second, Windows: []Span{{"after", 5 * second, 20 * second}},
	}
	s.Servers[11].Phases = []Phase{{Until: 5 * second, Absent: true}}
	return s
}

// Newcomer is S5, four servers of 20 ms and one of a second, that another fast one joins
// after ten minutes. It must not be taken for the slow one.
func Newcomer(rate float64) Scenario {
	s := S5()
	s.Name, s.Arrivals.Rate = fmt.Sprintf("newcomer/%g", rate), rate
	s.Servers = append(s.Servers, Server{Phases: []Phase{{Until: 10 * time.Minute, Absent: true}}})
	s.Windows = []Span{{"at first", 10 * time.Minute, 15 * time.Minute}, {"then", 15 * time.Minute, time.Hour}}
	return s
}

// NewcomerOfMany is 64 servers, every fourth of them ten times slower, that a fast one
// joins after ten minutes.
func NewcomerOfMany(rate float64) Scenario {
	s := Scenario{
		Name: fmt.Sprintf("newcomer_of_many/%g", rate), Servers: equal(65, Server{}), Service: millis(16, 24),
		Arrivals: Arrivals{Rate: rate}, Length: 40 * time.Minute,
		Windows: []Span{{"at first", 10 * time.Minute, 15 * time.Minute}, {"then", 15 * time.Minute, 40 * time.Minute}},
	}
	for i := 0; i < 64; i += 4 {
		s.Servers[i].Speed = 0.1
	}
	s.Servers[64].Phases = []Phase{{Until: 10 * time.Minute, Absent: true}}
	return s
}

// listCases are the cases of servers that come and go.
func listCases() (out []Case) {
	after := relative(quantileIn("p99 after", "after", 0.99))
	for _, b := range []int{1, 50, 500} {
		out = append(out, againstBound(RollingRestart(b)), againstBound(FlappingList(b)), against(ScaleIn(b), after))
	}
	for _, n := range []int{4, 6, 8, 20} {
		for _, b := range []int{1, 6 * n, 60 * n} {
			out = append(out, against(ScaleOut(n, b), after,
				shareOf("new ones' share at first", "at first", n, 2*n), shareOf("new ones' share", "settled", n, 2*n),
				Figure{Name: "most in flight on a new one", Of: func(r *Result) float64 {
					return float64(slices.Max(r.Window("after").MaxInFlight[n:]))
				}}))
		}
	}
	for _, b := range []int{1, 50} {
		over := func(i int) Figure {
			return Figure{Name: "most in flight over the others'", Unit: "×", Of: func(r *Result) float64 {
				most := r.Window("after").MaxInFlight
				return float64(most[i]) / float64(most[len(most)-2]) // one of the others in either case
			}}
		}
		figures := []Figure{successIn("after"), quantileIn("p99 after", "after", 0.99)}
		out = append(out,
			against(BackUnderLoad("left", Phase{Absent: true}, b), append(figures, over(0))...),
			against(BackUnderLoad("failing", failing(0, 0, 1), b), append(figures, over(0))...),
			against(BackUnderLoad("slow", Phase{Slow: 20}, b), append(figures, over(0))...),
			against(HelpUnderLoad(b), append(figures, over(11))...))
	}
	for _, rate := range []float64{0.5, 2, 20} {
		out = append(out, against(Newcomer(rate), shareOf("its share at first", "at first", 5, 6), shareOf("its share then", "then", 5, 6)))
	}
	for _, rate := range []float64{5, 100} {
		out = append(out, against(NewcomerOfMany(rate), shareOf("its share at first", "at first", 64, 65), shareOf("its share then", "then", 64, 65)))
	}
	return out
}
