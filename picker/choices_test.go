package picker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

var comparing = []struct {
	name   string
	policy picker.Policy
}{
	{"p2c_in_flight", picker.P2C{Signal: picker.InFlight}},
	{"p2c_latency", picker.P2C{}},
	{"p2c_peak_hold", picker.P2C{Signal: picker.PeakHold}},
	{"p2c_log_mean", picker.P2C{Signal: picker.LogMean}},
	{"p3c_in_flight", picker.P2C{Signal: picker.InFlight, Choices: 3}},
	{"p5c_latency", picker.P2C{Choices: 5}},
	{"p10c_latency", picker.P2C{Choices: 10}},
	{"p2c_finagle", picker.P2C{Signal: picker.PeakEWMA{}}},
	{"p2c_linkerd", picker.P2C{Signal: picker.PeakEWMA{Form: ewma.LinkerdForm}}},
	{"p2c_alpha", picker.P2C{Signal: picker.PeakEWMA{Form: ewma.AlphaForm, Tau: time.Second, Alpha: 0.3}}},
	{"least_in_flight", picker.Least{}},
	{"least_latency", picker.Least{Signal: picker.Latency}},
	{"least_time", picker.Least{Signal: picker.LeastTime{}}},
	{"least_table", picker.Least{Signal: &picker.LoadTable{}}},
	{"adaptive", picker.Adaptive{}},
}

func weighted(weights ...float64) []picker.Endpoint {
	list := endpoints(len(weights))
	for i, w := range weights {
		list[i].Weight = picker.WeightOf(w)
	}
	return list
}

// While nothing is in flight, shares are the weights: the first drawn keeps a tie.
func TestChoicesFollowWeightsWhenIdle(t *testing.T) {
	for _, tc := range comparing {
		if strings.HasPrefix(tc.name, "least") {
			continue // a full scan takes the weight for a speed and prefers the fast
		}
		for _, weights := range [][]float64{{1, 1}, {3, 1}, {5, 1, 1}, {10_000, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 10_000}} {
			if slices.Max(weights) > 10 && !strings.HasSuffix(tc.name, "in_flight") &&
				!strings.HasSuffix(tc.name, "latency") && !strings.HasSuffix(tc.name, "log_mean") && tc.name != "adaptive" {
				continue // an estimate that fades to zero draws requests to whoever gets few
			}
			_, s := build(t, tc.policy, weighted(weights...), rand.New(rand.NewPCG(41, 42)).Uint64)
			const total = 20_000
			counts, now := make([]int, len(weights)), int64(0)
			for range total {
				now += ms
				p, i, err := s.Pick(picker.Request{}, now)
				if err != nil {
					t.Fatal(err)
				}
				counts[i]++
				p.Done(now+ms/10, picker.Result{Outcome: picker.Success})
			}
			sum := 0.0
			for _, w := range weights {
				sum += w
			}
			for i, w := range weights {
				q := w / sum
				if d := math.Abs(float64(counts[i]) - q*total); d > 5*math.Sqrt(q*(1-q)*total)+1 {
					t.Errorf("%s, weights %v: endpoint %d got %d of %d, want %.0f", tc.name, weights, i, counts[i], total, q*total)
				}
			}
		}
	}
}

// Under load, requests in flight settle in proportion to weight: the lesser k/w of two wins, so that
// no two that have been compared are further apart than one of them was when it won. By counts
// alone that is one request of the lightest, and two for chains of pairs that were never
// compared. By latency it is a tie in k/w + 1 too, a tenth of a doubling or 7.2 %.
func TestChoicesFollowWeightsUnderLoad(t *testing.T) {
	const tie = 0.0718 // 2^0.1 - 1
	for _, tc := range []struct {
		policy picker.Policy
		band   float64
	}{
		{picker.P2C{Signal: picker.InFlight}, 0},
		{picker.P2C{Signal: picker.InFlight, Choices: 4}, 0},
		{picker.Least{}, 0},
		{picker.P2C{}, tie},
		{picker.P2C{Choices: 4}, tie},
		{picker.Least{Signal: picker.Latency}, tie},
		{picker.Adaptive{}, tie},
	} {
		for _, weights := range [][]float64{{1, 2, 3, 4, 10}, {1, 2, 3, 4, 10, 1, 2, 3, 4, 10}} {
			const each = 100.0 // per weight
			_, s := build(t, tc.policy, weighted(weights...), rand.New(rand.NewPCG(43, 44)).Uint64)
			total := 0.0
			for _, w := range weights {
				total += each * w
			}
			for range int(total) { // all stay open
				if _, _, err := s.Pick(picker.Request{Kind: picker.Stream}, 0); err != nil {
					t.Fatal(err)
				}
			}
			bound := tc.band*(each+1) + 2
			for i, w := range weights {
				if got := float64(s.Record(i).InFlight()) / w; math.Abs(got-each) > bound {
					t.Errorf("%#v, n = %d: endpoint %d of weight %v has %.1f per weight in flight, want %v ± %.1f",
						tc.policy, len(weights), i, w, got, each, bound)
				}
			}
		}
	}
}

// d distinct draws leave the d-1 worst of n without a pick, and give the best d/n.
func TestChoicesAreDistinctAndUniform(t *testing.T) {
	for _, d := range []int{2, 3, 5, 10} {
		for _, n := range []int{d + 1, 12, 50} {
			if n <= d {
				continue
			}
			_, s := build(t, picker.P2C{Signal: picker.InFlight, Choices: d}, endpoints(n), rand.New(rand.NewPCG(45, uint64(n))).Uint64)
			for i := range n {
				for range i {
					hold(t, s, i)
				}
			}
			const total = 40_000
			counts := make([]int, n)
			for range total {
				p, i, _ := s.Pick(picker.Request{}, 0)
				counts[i]++
				p.Done(0, picker.Result{})
			}
			// Rank i wins if it is drawn and the other d-1 are among the n-1-i worse.
			for i := range n {
				want := float64(d) / float64(n)
				for k := range d - 1 {
					want *= float64(n-1-i-k) / float64(n-1-k)
				}
				want = max(want, 0)
				if diff := math.Abs(float64(counts[i])/total - want); diff > 5*math.Sqrt(want*(1-want)/total) {
					t.Errorf("d = %d, n = %d, rank %d: share %.4f, want %.4f", d, n, i, float64(counts[i])/total, want)
				}
			}
		}
	}
}

// Ties of a full scan are at random, however they are spread over the list.
func TestLeastDrawsAmongTies(t *testing.T) {
	_, s := build(t, picker.Least{}, endpoints(10), rand.New(rand.NewPCG(47, 48)).Uint64)
	tied := []int{0, 1, 7}
	for i := range 10 {
		if i != 0 && i != 1 && i != 7 {
			hold(t, s, i)
		}
	}
	counts := make([]int, 10)
	for range 30_000 {
		p, i, _ := s.Pick(picker.Request{}, 0)
		counts[i]++
		p.Done(0, picker.Result{})
	}
	for _, i := range tied {
		if math.Abs(float64(counts[i]-10_000)) > 5*math.Sqrt(30_000*2.0/9) {
			t.Errorf("endpoint %d got %d of 30,000, want 10,000: %v", i, counts[i], counts)
		}
	}
}

// A naive oracle: after each random step, the full scan's choice has the least
// (in flight + 1)/weight.
func TestLeastIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(49, 50))
	list := weighted(1, 3, 2.5, 10_000, 0.001, 7, 7, 7)
	_, s := build(t, picker.Least{}, list, r.Uint64)
	var open []picker.Pick
	for range 20_000 {
		if len(open) > 0 && r.IntN(5) < 2 {
			k := r.IntN(len(open))
			open[k].Done(0, picker.Result{})
			open[k] = open[len(open)-1]
			open = open[:len(open)-1]
			continue
		}
		least := math.Inf(1)
		for i := range s.Len() {
			least = min(least, float64(s.Record(i).InFlight()+1)/s.Members().Weight(i))
		}
		_, i, err := s.Pick(picker.Request{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := float64(s.Record(i).InFlight()) / s.Members().Weight(i) // it has just been counted
		if got > least*1.0001 {
			t.Fatalf("took (k+1)/w = %v, the least is %v", got, least)
		}
		p := hold(t, s, i)
		p.Done(0, picker.Result{})
	}
}

func TestP2CRefusesChoicesOutOfRange(t *testing.T) {
	for _, c := range []int{-1, 1, 11, math.MinInt} {
		err := picker.P2C{Choices: c, Signal: picker.BuiltinSignal(77)}.Validate()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("P2C.Choices is %d, want 2 to 10", c)) ||
			!strings.Contains(err.Error(), "P2C.Signal is 77") {
			t.Errorf("choices %d: %v", c, err)
		}
	}
	for _, c := range []int{0, 2, 10} {
		if err := (picker.P2C{Choices: c}).Validate(); err != nil {
			t.Errorf("choices %d: %v", c, err)
		}
	}
	if err := (picker.Least{Signal: picker.PeakEWMA{Form: 9, Tau: -1, Alpha: math.NaN()}}).Validate(); err == nil ||
		strings.Count(err.Error(), "PeakEWMA.") != 3 {
		t.Errorf("three problems give %v", err)
	}
}

func TestComparingPoliciesDoNotAllocate(t *testing.T) {
	for _, tc := range comparing {
		for _, list := range [][]picker.Endpoint{endpoints(30), weighted(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)} {
			g, s := build(t, tc.policy, list, nil)
			now := int64(0)
			warm(t, g, s, &now)
			if n := testing.AllocsPerRun(200, func() {
				now += ms
				p, _, err := s.Pick(picker.Request{}, now)
				if err != nil {
					t.Fatal(err)
				}
				p.Done(now+ms, picker.Result{Outcome: picker.Success})
			}); n != 0 {
				t.Errorf("%s: %v allocations", tc.name, n)
			}
		}
	}
}

func TestComparingPoliciesAvoidASlowAndAFailingEndpoint(t *testing.T) {
	for _, tc := range comparing {
		if tc.name == "least_table" || strings.HasSuffix(tc.name, "in_flight") || tc.name == "least_time" {
			continue // blind to one or both
		}
		g, s := build(t, tc.policy, endpoints(10), rand.New(rand.NewPCG(51, 52)).Uint64)
		counts := make([]int, 10)
		for k := range int64(20_000) {
			now := k * ms
			if k%1000 == 0 {
				g.Sweep(now)
			}
			p, i, err := s.Pick(picker.Request{}, now)
			if err != nil {
				t.Fatal(err)
			}
			if k > 2000 {
				counts[i]++
			}
			switch i {
			case 0:
				p.Done(now+100*ms, picker.Result{Outcome: picker.Success})
			case 1:
				p.Done(now+1, picker.Result{Outcome: picker.Failure})
			default:
				p.Done(now+10*ms, picker.Result{Outcome: picker.Success})
			}
		}
		if counts[0] > 400 || counts[1] > 400 {
			t.Errorf("%s: the slow one got %d, the failing one %d of 18,000", tc.name, counts[0], counts[1])
		}
	}
}

func TestAllAvoidedMeansLeastRemaining(t *testing.T) {
	for _, policy := range []picker.Policy{picker.P2C{}, picker.P2C{Choices: 4}, picker.Least{Signal: picker.Latency}} {
		_, s := build(t, policy, endpoints(3), nil)
		for i, hint := range []time.Duration{20 * time.Second, 5 * time.Second, 10 * time.Second} {
			p := hold(t, s, i)
			p.Done(0, picker.Result{Outcome: picker.Overload, RetryAfter: hint})
		}
		for range 200 {
			p, i, err := s.Pick(picker.Request{}, ms)
			if err != nil || i != 1 {
				t.Fatalf("%#v: picked %d, %v; want the one that comes back first", policy, i, err)
			}
			p.Done(ms, picker.Result{})
		}
	}
}

func TestOneFreeEndpointAmongAvoidedOnesIsFound(t *testing.T) {
	for _, policy := range []picker.Policy{picker.P2C{}, picker.P2C{Choices: 3}} {
		_, s := build(t, policy, endpoints(60), nil)
		for i := range 59 {
			p := hold(t, s, i)
			p.Done(0, picker.Result{Outcome: picker.Overload, RetryAfter: 20 * time.Second})
		}
		for range 200 {
			p, i, err := s.Pick(picker.Request{}, ms)
			if err != nil || i != 59 {
				t.Fatalf("%#v: picked %d, %v; want 59, the only one that did not ask to be left alone", policy, i, err)
			}
			p.Done(ms, picker.Result{})
		}
	}
}
