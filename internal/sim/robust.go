package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// RobustCases returns what the fleets with one slow or broken server leave out: failures in
// part and everywhere, clients that pause, lists that change, weights, long requests,
// heavy tails, and clients that send next to nothing.
func RobustCases() []Case {
	return slices.Concat(outageCases(), pauseCases(), listCases(), toldCases(), longRequestCases(), tailCases(), thinCases(), badDeployCases())
}

// against returns the case of s with the given figures, measured against the bound.
func against(s Scenario, figures ...Figure) Case {
	return Case{Name: s.Name, Scenario: s, Figures: figures, Against: Policy{Name: "jsed", Bound: ShortestDelay{}}}
}

// windowOf returns a window by its name, "" for the whole run.
func windowOf(r *Result, name string) *Window {
	if name == "" {
		return &r.Total
	}
	return r.Window(name)
}

// quantileIn is the figure of a window at quantile q of all latencies.
func quantileIn(name, window string, q float64) Figure {
	return Figure{Name: name, Unit: "ms", Of: func(r *Result) float64 { return ms(windowOf(r, window).Latency().Quantile(q)) }}
}

// successIn is the success in a window.
func successIn(window string) Figure {
	return Figure{Name: "success " + window, Unit: "%", Of: func(r *Result) float64 { return 100 * windowOf(r, window).Success() }}
}

// shareOf is the share, in a window, of the servers from until before until, all together.
func shareOf(name, window string, from, until int) Figure {
	return Figure{Name: name, Unit: "%", Of: func(r *Result) float64 {
		sum := 0.0
		for i := from; i < until; i++ {
			sum += 100 * windowOf(r, window).Share(i)
		}
		return sum
	}}
}

// LongBesideShort is n servers of any concurrency, the last of which takes ten times as
// long, under requests of which one in ten takes seconds. short and long are the kinds that
// the client gives them.
func LongBesideShort(n int, variant string, short, long picker.Kind) Scenario {
	s := S9(variant, short, long)
	s.Name = fmt.Sprintf("long_beside_short/%s/n=%d", variant, n)
	s.Servers = equal(n, Server{})
	s.Servers[n-1].Speed = 0.1
	s.Arrivals.Rate = 50 * float64(n)
	s.Classes[1].Service = Uniform{2 * second, 4 * second}
	return s
}

func longRequestCases() (out []Case) {
	for _, n := range []int{10, 30} {
		for _, v := range []struct {
			name        string
			short, long picker.Kind
		}{
			{"marked", picker.Unary, picker.Stream},
			{"unknown", picker.UnknownKind, picker.UnknownKind},
			{"unary", picker.Unary, picker.Unary},
		} {
			short := func(r *Result) []int { return r.Window("steady").ClassPicks[0] }
			out = append(out, against(LongBesideShort(n, v.name, v.short, v.long),
				Figure{Name: "short max/mean", Of: func(r *Result) float64 { return MaxOverMean(short(r)[:n-1]) }},
				Figure{Name: "slow one's share of short", Unit: "%", Of: func(r *Result) float64 {
					all := 0
					for _, c := range short(r) {
						all += c
					}
					return 100 * float64(short(r)[n-1]) / float64(all)
				}}))
		}
	}
	return out
}

// tailCases are fleets of ten and thirty, a tenth of them slow, whose work has a heavy tail.
func tailCases() (out []Case) {
	for _, n := range []int{10, 30} {
		for _, b := range []int{1, 6 * n} {
			f := FleetA(b)
			f.Servers, f.Slow = n, n/10
			rate := f.Scenario("").Arrivals.Rate // what the cap cuts off does not come back as traffic
			f.Service = paretoWork
			pareto := f.Scenario(fmt.Sprintf("pareto_tail/n=%d/B=%d", n, b))
			pareto.Arrivals.Rate = rate
			f.Service = bimodalWork
			bimodal := f.Scenario(fmt.Sprintf("bimodal_tail/n=%d/B=%d", n, b))
			out = append(out, againstBound(pareto), againstBound(bimodal))
		}
	}
	return out
}

// thinCases are 64 servers under clients that send three, two and one request a second: with
// eight slow ones, and with none but one that fails everything from 10 s on.
func thinCases() (out []Case) {
	for _, b := range []int{1369, 2053, 4107} {
		f := FleetA(b)
		f.Servers, f.Slow, f.Length = 64, 8, 40*time.Second
		out = append(out, againstBound(f.Scenario(fmt.Sprintf("a_few_a_second/B=%d", b))))
		f.Slow, f.Length, f.WarmUp = 0, 30*time.Second, 0
		s := f.Scenario(fmt.Sprintf("a_few_a_second_failing/B=%d", b))
		s.Servers[63].Phases = []Phase{failing(10*second, 30*second, 1)}
		out = append(out, against(s, success, shareOf("failing one's share", "", 63, 64)))
	}
	return out
}
