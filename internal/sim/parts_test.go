package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestElementaryFunctionsAreExact(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	worst := func(got, want float64) float64 { return math.Abs(got-want) / max(math.Abs(want), 1e-300) }
	for range 100_000 {
		x := math.Exp(g.Float64()*80 - 40)
		if e := worst(ln(x), math.Log(x)); e > 1e-15 && math.Abs(ln(x)-math.Log(x)) > 1e-16 {
			t.Fatalf("ln(%v) = %v, want %v", x, ln(x), math.Log(x))
		}
		y := g.Float64()*80 - 40
		if e := worst(exp(y), math.Exp(y)); e > 1e-15 {
			t.Fatalf("exp(%v) is off by %v", y, e)
		}
		if e := worst(pow(x, 0.7), math.Pow(x, 0.7)); e > 1e-14 {
			t.Fatalf("pow(%v, 0.7) is off by %v", x, e)
		}
	}
	if ln(1) != 0 || exp(0) != 1 {
		t.Errorf("ln(1) = %v, exp(0) = %v", ln(1), exp(0))
	}
}

var laws = map[string]Law{
	"exponential": Exponential{10 * millisecond},
	"fixed":       Fixed{10 * millisecond},
	"uniform":     Uniform{5 * millisecond, 20 * millisecond},
	"lognormal":   LogNormal{10 * millisecond, 0.9},
	"bimodal":     bimodalWork,
	"pareto":      paretoWork,
	"pareto 1":    Pareto{millisecond, 1, second},
	"quantiles":   measuredLatencies,
	"steps":       Quantiles{{0, 0}, {0.5, millisecond}, {0.5, 9 * millisecond}, {1, 9 * millisecond}},
}

func TestLawsHaveTheMeansThatTheySay(t *testing.T) {
	const n = 1_000_000
	for name, l := range laws {
		if err := l.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sum, last := 0.0, 0.0
		for i := range n {
			u := (float64(i) + 0.5) / n
			x := l.At(u)
			if up := x >= last; i > 0 && name != "exponential" && name != "bimodal" && name[0] != 'p' && !up {
				t.Fatalf("%s falls at %v", name, u)
			}
			sum, last = sum+x, x
		}
		if math.Abs(sum/n/l.Mean()-1) > 1e-3 {
			t.Errorf("%s: mean %.6g, says %.6g", name, sum/n, l.Mean())
		}
		if s := l.Scale(3); math.Abs(s.Mean()/l.Mean()-3) > 1e-6 || math.Abs(s.At(0.3)/l.At(0.3)-3) > 1e-6 {
			t.Errorf("%s: three times it is %v", name, s)
		}
	}
}

// Against a sorted list, after random pushes and pops, many at the same instant.
func TestHeapPopsInOrder(t *testing.T) {
	g := rand.New(rand.NewPCG(2, 2))
	var h heap
	type pushed struct{ at, n int64 }
	var oracle []pushed
	for n := range int64(20_000) {
		if len(oracle) == 0 || g.IntN(100) < 55 {
			p := pushed{g.Int64N(50) + n/100, n}
			h.push(p.at, int(n%5), int32(n), uint32(n))
			i, _ := slices.BinarySearchFunc(oracle, p, func(a, b pushed) int {
				if a.at == b.at {
					return int(a.n - b.n)
				}
				return int(a.at - b.at)
			})
			oracle = slices.Insert(oracle, i, p)
			continue
		}
		e, want := h.pop(), oracle[0]
		oracle = oracle[1:]
		if e.at != want.at || int64(e.slot) != want.n || e.kind() != int(want.n%5) || int64(e.tag) != want.n {
			t.Fatalf("popped %+v (%d), want %v", e, e.kind(), want)
		}
	}
}

func TestRingKeepsOrder(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 3))
	var q ring[int]
	var oracle []int
	for n := range 10_000 {
		if len(oracle) == 0 || g.IntN(100) < 52 {
			q.push(n)
			oracle = append(oracle, n)
			continue
		}
		if f, p := q.first(), q.pop(); f != oracle[0] || p != oracle[0] || q.n != len(oracle)-1 {
			t.Fatalf("first %d, pop %d, %d left, want %d and %d", f, p, q.n, oracle[0], len(oracle)-1)
		}
		oracle = oracle[1:]
	}
}

// Against a plain computation that follows what is left of each request.
func TestSharingAgreesWithAPlainComputation(t *testing.T) {
	g := rand.New(rand.NewPCG(4, 4))
	s := Scenario{Servers: []Server{{Workers: 2, Sharing: true}}, Service: exponential(10 * millisecond), Arrivals: Arrivals{Kind: Recorded}}
	now := time.Duration(0)
	for range 300 {
		now += time.Duration(g.IntN(int(11 * millisecond)))
		s.Arrivals.Times = append(s.Arrivals.Times, now)
	}
	p := named1(t, "random")
	r, err := newRun(&s, &p, 1)
	if err != nil {
		t.Fatal(err)
	}
	work := r.work // a copy of the stream
	var left []float64
	var from []float64
	clock, sum := 0.0, 0.0
	run := func(until float64) {
		for len(left) > 0 {
			rate := min(1, 2/float64(len(left)))
			i := slices.Index(left, slices.Min(left))
			end := clock + left[i]/rate
			step := min(end, until)
			for k := range left {
				left[k] -= (step - clock) * rate
			}
			clock = step
			if end > until {
				break
			}
			sum += clock - from[i]
			left, from = slices.Delete(left, i, i+1), slices.Delete(from, i, i+1)
		}
		clock = until
	}
	for _, at := range s.Arrivals.Times {
		run(float64(at))
		left = append(left, s.Service.At(uniform(&work)))
		from = append(from, float64(at))
	}
	run(math.MaxInt64)
	r.loop()
	if got := r.stats.result(r, 1).Total.Good; got.n != 300 || math.Abs(got.sum-sum) > 300*10 {
		t.Errorf("%d requests took %.0f ns in all, want %.0f", got.n, got.sum, sum)
	}
}

func TestHistogramIsWithinAThousandth(t *testing.T) {
	g := rand.New(rand.NewPCG(5, 5))
	for _, coarse := range []bool{false, true} {
		h, half := &Histogram{coarse: coarse}, &Histogram{coarse: coarse}
		part := map[bool]float64{false: 0.0005, true: 0.004}[coarse]
		var exact []int64
		for i := range 50_000 {
			ns := int64(math.Exp(g.Float64() * 25))
			exact = append(exact, ns)
			if i%2 == 0 {
				h.add(ns)
			} else {
				half.add(ns)
			}
		}
		h.Merge(half)
		slices.Sort(exact)
		for _, q := range []float64{0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
			want := float64(exact[int(q*float64(len(exact)-1))])
			if got := float64(h.Quantile(q)); math.Abs(got-want) > part*want {
				t.Errorf("quantile %v: %v, want %v", q, got, want)
			}
		}
		above := len(exact) - slices.IndexFunc(exact, func(x int64) bool { return x > 1e6 })
		if got := h.Above(millisecond); math.Abs(float64(got-above)) > 20 {
			t.Errorf("%d above 1 ms, want %d", got, above)
		}
		if h.Count() != 50_000 || int64(h.Max()) != exact[len(exact)-1] || int64(h.Quantile(0)) != exact[0] {
			t.Errorf("%d counted, from %v to %v", h.Count(), h.Quantile(0), h.Max())
		}
	}
	var none Histogram
	if none.Quantile(0.5) != 0 || none.Mean() != 0 || none.Max() != 0 || none.Above(0) != 0 {
		t.Error("an empty histogram is not 0")
	}
}
