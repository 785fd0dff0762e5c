package sim

import "github.com/evenkeel/evenkeel/picker"

// SCases returns the scenarios S1 to S13 with their figures.
func SCases() []Case {
	window := func(name string, of func(*Window) float64) func(*Result) float64 {
		return func(r *Result) float64 { return of(r.Window(name)) }
	}
	coldQuantile := func(name string, q float64) Figure {
		return Figure{Name: name, Unit: "ms", Of: window("cold", func(w *Window) float64 { return ms(w.Latency().Quantile(q)) })}
	}
	shortEven := Figure{Name: "short max/mean", Of: window("steady", func(w *Window) float64 { return MaxOverMean(w.ClassPicks[0]) })}
	slowShare := func(i int) Figure {
		return Figure{Name: "slow one's share", Unit: "%", Of: func(r *Result) float64 { return 100 * r.Total.Share(i) }}
	}
	s2 := []Figure{
		coldQuantile("p99 while cold", 0.99), coldQuantile("p99.9 while cold", 0.999), timeouts,
		{Name: "most in flight", Of: func(r *Result) float64 { return float64(r.Total.MaxInFlight[10]) }},
	}
	s3 := []Figure{
		{Name: "errors while failing", Unit: "%", Of: window("failing", func(w *Window) float64 { return 100 * (1 - w.Success()) })},
		share("share after", "after", 0),
	}
	s7 := []Figure{p999, quantile("p50", 0.5), p99, {Name: "wall", Unit: "s", Of: func(r *Result) float64 { return r.End.Seconds() }}}
	s10 := []Figure{
		share("share in 1st second", "second 1", 0), share("in 5th", "second 5", 0), share("in 20th", "second 20", 0),
		{Name: "most in flight after", Of: window("after", func(w *Window) float64 { return float64(w.MaxInFlight[0]) })},
	}
	cases := []Case{
		{Scenario: S1(), Figures: []Figure{slow}},
		{Scenario: S2(), Figures: s2},
		{Scenario: S3(), Figures: s3},
		{Scenario: S4(), Figures: []Figure{timeouts}},
		{Scenario: S5(), Figures: []Figure{slowShare(4), evenness(0, 4)}},
		{Scenario: S6(1), Figures: []Figure{mean, p99}},
		{Scenario: S6(20), Figures: []Figure{mean, p99}},
		{Scenario: S7(), Figures: s7},
		{Scenario: S8(), Figures: []Figure{p999, slowShare(9), evenness(0, 9)}},
		{Scenario: S9("marked", picker.Unary, picker.Stream), Figures: []Figure{shortEven}},
		{Scenario: S9("unknown", picker.UnknownKind, picker.UnknownKind), Figures: []Figure{shortEven}},
		{Scenario: S9("unary", picker.Unary, picker.Unary), Figures: []Figure{shortEven}},
		{Scenario: S10(), Figures: s10},
		{Scenario: S11(2), Figures: []Figure{mean, relative(mean)}, Against: leastInFlight},
		{Scenario: S11(3), Figures: []Figure{mean, relative(mean)}, Against: leastInFlight},
		{Scenario: S12(0.8, 1_000_000), Figures: []Figure{mean}},
		{Scenario: S12(0.9, 1_000_000), Figures: []Figure{mean}},
		{Scenario: S13(), Figures: []Figure{slow}},
	}
	for i := range cases {
		cases[i].Name = cases[i].Scenario.Name
	}
	return cases
}
