package sim

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// near fails unless got is within part of want.
func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if !(math.Abs(got-want) <= part*want) {
		t.Errorf("%s: %.5g, want %.5g ± %.1f %%", what, got, want, 100*part)
		return
	}
	t.Logf("%s: %.5g, in theory %.5g (%+.2f %%)", what, got, want, 100*(got/want-1))
}

// oneQueue is one server under Poisson traffic.
func oneQueue(law Law, load float64, v Server, requests int) Scenario {
	return Scenario{
		Servers: []Server{v}, Service: law,
		Arrivals: Arrivals{Rate: load * float64(v.Workers) * 1e9 / law.Mean()},
		Requests: requests, WarmUpRequests: requests / 20,
	}
}

// erlangC is the probability of waiting with c workers and offered load a.
func erlangC(c int, a float64) float64 {
	term, sum := 1.0, 1.0
	for k := 1; k < c; k++ {
		term *= a / float64(k)
		sum += term
	}
	term *= a / float64(c) * float64(c) / (float64(c) - a)
	return term / (sum + term)
}

// secondMoment integrates numerically.
func secondMoment(l Law) float64 {
	const n = 2_000_000
	sum := 0.0
	for i := range n {
		x := l.At((float64(i) + 0.5) / n)
		sum += x * x
	}
	return sum / n
}

func TestQueuesAgreeWithTheory(t *testing.T) {
	statistical(t)
	requests, part := 3_000_000, 0.02
	if testing.Short() {
		requests, part = 300_000, 0.06
	}
	m := 10 * time.Millisecond
	one := Server{Workers: 1}
	sharing := Server{Workers: 1, Sharing: true}
	bimodal := Bimodal{Short: 5 * time.Millisecond, Long: 55 * time.Millisecond, LongShare: 0.1}
	wide := LogNormal{Median: m, Sigma: 0.8}
	cases := []struct {
		name string
		s    Scenario
	}{
		{"M/M/1 at 0.5", oneQueue(Exponential{m}, 0.5, one, requests)},
		{"M/M/1 at 0.8", oneQueue(Exponential{m}, 0.8, one, 2*requests)},
		{"M/D/1 at 0.8", oneQueue(Fixed{m}, 0.8, one, requests)},
		{"M/G/1 at 0.7, uniform", oneQueue(Uniform{m / 2, 3 * m / 2}, 0.7, one, requests)},
		{"M/G/1 at 0.7, bimodal", oneQueue(bimodal, 0.7, one, requests)},
		{"M/G/1 at 0.7, lognormal", oneQueue(wide, 0.7, one, requests)},
		{"M/M/4 at 0.8", oneQueue(Exponential{m}, 0.8, Server{Workers: 4}, requests)},
		{"M/M/1-PS at 0.7", oneQueue(Exponential{m}, 0.7, sharing, requests)},
		{"M/G/1-PS at 0.7, fixed", oneQueue(Fixed{m}, 0.7, sharing, requests)},
		{"M/G/1-PS at 0.7, bimodal", oneQueue(bimodal, 0.7, sharing, requests)},
		{"M/G/4-PS at 0.8, lognormal", oneQueue(wide, 0.8, Server{Workers: 4, Sharing: true}, requests)},
	}
	jobs := make([]Job, len(cases))
	for i, c := range cases {
		jobs[i] = Job{c.s, Policy{Config: evenkeel.Config{Policy: picker.Random{}}}, 1}
	}
	results, err := RunAll(jobs, runtime.GOMAXPROCS(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		v, law, load := c.s.Servers[0], c.s.Service, results[i].Load
		s, n := law.Mean(), float64(v.Workers)
		// Pollaczek and Khinchine; exponential work waits as long shared as in order.
		wait := load / s * secondMoment(law) / (2 * (1 - load))
		if v.Workers > 1 || v.Sharing {
			wait = erlangC(v.Workers, load*n) * s / (n * (1 - load))
		}
		near(t, c.name+", mean sojourn", float64(results[i].Total.Latency().Mean()), s+wait, part)
		near(t, c.name+", busy", results[i].Total.Busy[0]/n, load, part)
	}
}

// In the limit of many servers the mean sojourn with two choices is Σ ρ^(2^k - 2) over k
// from 1 (Mitzenmacher; Vvedenskaya, Dobrushin and Karpelevich).
func TestTwoChoicesAgreeWithTheSupermarketLimit(t *testing.T) {
	statistical(t)
	requests, part := 3_000_000, 0.02
	if testing.Short() {
		requests, part = 400_000, 0.04
	}
	for _, load := range []float64{0.8, 0.9} {
		want := 0.0
		for k := 1; k < 12; k++ {
			want += math.Pow(load, math.Pow(2, float64(k))-2)
		}
		results := runSeeds(t, S12(load, requests), named1(t, "p2c"), 2)
		got := Over(results, func(r *Result) float64 { return float64(r.Total.Latency().Mean()) / 1e7 })
		near(t, "mean sojourn in services", got.Mean, want, part)
	}
}

// Whoever knows more waits less.
func TestBoundsAreInOrder(t *testing.T) {
	s := EightServers(1)
	s.Length = 30 * time.Second
	mean := func(name string) float64 {
		return Over(runSeeds(t, s, named1(t, name), 4), func(r *Result) float64 { return float64(r.Total.Latency().Mean()) }).Mean
	}
	jsed, jsq, p2c, random := mean("jsed"), mean("jsq"), mean("p2c"), mean("random")
	if !(jsed < jsq && jsq < p2c && p2c < random) {
		t.Errorf("mean sojourns: jsed %.3g, jsq %.3g, p2c %.3g, random %.3g, want them in this order", jsed, jsq, p2c, random)
	}
}
