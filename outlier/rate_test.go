package outlier

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive says the rule once more, one sample at a time and without sorting.
func naive(samples []sample, i int) bool {
	mid := func(v []float64) float64 { // the value that as many are below as above
		below := func(x float64) (lo, eq int) {
			for _, y := range v {
				if y < x {
					lo++
				} else if y == x {
					eq++
				}
			}
			return lo, eq
		}
		at := func(k int) float64 {
			for _, x := range v {
				if lo, eq := below(x); lo <= k && k < lo+eq {
					return x
				}
			}
			return math.NaN()
		}
		return (at((len(v)-1)/2) + at(len(v)/2)) / 2
	}
	var rates, off []float64
	var good, bad float64
	for _, s := range samples {
		rates = append(rates, s.rate)
		good, bad = good+float64(s.good), bad+float64(s.bad)
	}
	m := mid(rates)
	for _, x := range rates {
		off = append(off, math.Abs(x-m))
	}
	s := samples[i]
	if !s.full || s.bad < 5 {
		return false
	}
	if s.rate < 0.5 && m >= 0.9 {
		return true
	}
	p := bad / (good + bad)
	for _, margin := range []float64{0.1, 3 * 1.4826 * mid(off), 4 * math.Sqrt(p*(1-p)/float64(s.good+s.bad))} {
		if s.rate >= m-margin {
			return false
		}
	}
	return true
}

func TestUnusualFollowsTheNaiveRule(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	found := 0
	for range 5000 {
		samples := make([]sample, 1+r.IntN(12))
		worst := r.Float64()
		for i := range samples {
			s := &samples[i]
			s.id = fmt.Sprint(i)
			p := r.Float64() * 0.1
			if r.IntN(3) == 0 {
				p = worst
			}
			for range r.IntN(60) {
				if r.Float64() < p {
					s.bad++
				} else {
					s.good++
				}
			}
			s.full = s.good+s.bad >= 20
			s.rate = 0.9
			if s.full {
				s.rate = float64(s.good) / float64(s.good+s.bad)
			}
		}
		var want []int
		for i := range samples {
			if naive(samples, i) {
				want = append(want, i)
			}
		}
		got := unusual(samples)
		found += len(got)
		for k := 1; k < len(got); k++ {
			if samples[got[k]].rate < samples[got[k-1]].rate {
				t.Fatalf("%v is not the worst first", got)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: %v, want %v", samples, got, want)
		}
	}
	if found < 250 {
		t.Errorf("only %d found", found)
	}
}

// Up to just below half of the pool may be out of order, and is found; who is well never is.
func TestMedianStandsUpToHalf(t *testing.T) {
	for n := 3; n <= 21; n++ {
		for bad := 1; 2*bad < n; bad++ {
			samples := make([]sample, n)
			for i := range samples {
				samples[i] = sample{id: fmt.Sprintf("%03d", i), good: 100, rate: 1, full: true}
				if i < bad {
					samples[i] = sample{id: fmt.Sprintf("%03d", i), bad: 100, full: true}
				}
			}
			got := unusual(samples)
			slices.Sort(got)
			if len(got) != bad || got[bad-1] != bad-1 {
				t.Errorf("%d of %d fail: found %v", bad, n, got)
			}
		}
	}
}

// Endpoints that are all alike, at any failure rate: of a thousand looks at one, chance ejects in one at most.
func TestChanceEjectsHardlyAnybody(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, p := range []float64{0.001, 0.01, 0.05, 0.2, 0.5} {
		for _, volume := range []int{20, 50, 200} {
			found, looked := 0, 0
			for range 1000 {
				samples := make([]sample, 10)
				for i := range samples {
					for range volume {
						if r.Float64() < p {
							samples[i].bad++
						} else {
							samples[i].good++
						}
					}
					samples[i].rate, samples[i].full = float64(samples[i].good)/float64(volume), true
				}
				found += len(unusual(samples))
				looked += len(samples)
			}
			if share := float64(found) / float64(looked); share > 0.001 {
				t.Errorf("failure rate %v, %d requests: %.4f of all are ejected", p, volume, share)
			}
		}
	}
}
