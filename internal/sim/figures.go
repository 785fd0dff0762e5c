package sim

import "time"

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// whole is the figure of the whole run at quantile q of all latencies.
func quantile(name string, q float64) Figure {
	return Figure{Name: name, Unit: "ms", Of: func(r *Result) float64 { return ms(r.Total.Latency().Quantile(q)) }}
}

var (
	p99  = quantile("p99", 0.99)
	p999 = quantile("p99.9", 0.999)
	mean = Figure{Name: "mean", Unit: "ms", Of: func(r *Result) float64 { return ms(r.Total.Latency().Mean()) }}

	success  = Figure{Name: "success", Unit: "%", Of: func(r *Result) float64 { return 100 * r.Total.Success() }}
	timeouts = Figure{Name: "timeouts", Of: func(r *Result) float64 { return float64(r.Total.TimedOut) }}
	slow     = Figure{Name: "over 1 s", Of: func(r *Result) float64 { return float64(r.Total.Latency().Above(time.Second)) }}
)

// relative returns f as a multiple of the bound's.
func relative(f Figure) Figure {
	f.Relative = true
	f.Name += " / " + "bound"
	f.Unit = "×"
	return f
}

// share is server i's part of the requests of a window, in percent.
func share(name, window string, i int) Figure {
	return Figure{Name: name, Unit: "%", Of: func(r *Result) float64 { return 100 * r.Window(window).Share(i) }}
}

// evenness is the most requests that one of the servers from until before until got in
// the whole run, over their mean.
func evenness(from, until int) Figure {
	return Figure{Name: "equal ones max/mean", Of: func(r *Result) float64 {
		return MaxOverMean(r.Total.Picks[from:until])
	}}
}
