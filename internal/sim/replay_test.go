package sim

import (
	"math"
	"runtime"
	"strings"
	"testing"
)

// replayed is a figure that somebody else's simulator gave for a policy that we have too.
type replayed struct {
	figure string
	policy string
	want   float64
	part   float64 // how far off it may be, of want
}

// replay measures cases with seeds 1 to k and compares. Runs are independent of those
// that the figures come from, so part is what two means of a few runs differ by.
func replay(t *testing.T, k int, cases map[string][]replayed) {
	t.Helper()
	statistical(t)
	for name, rows := range cases {
		list, err := CasesNamed(name)
		if err != nil || len(list) != 1 {
			t.Fatal(name, err)
		}
		measured := map[string][]Measured{}
		for _, row := range rows {
			if measured[row.policy] == nil {
				m, err := list[0].Measure(named1(t, row.policy), Seeds(k), runtime.GOMAXPROCS(0))
				if err != nil {
					t.Fatal(err)
				}
				measured[row.policy] = m
			}
			found := false
			for _, m := range measured[row.policy] {
				if m.Name != row.figure {
					continue
				}
				found = true
				if !(math.Abs(m.Mean-row.want) <= row.part*row.want) {
					t.Errorf("%s %s, %s: %.4g (sd %.2g), want %.4g ± %.0f %%", name, row.policy, row.figure, m.Mean, m.SD, row.want, 100*row.part)
				} else {
					t.Logf("%s %s, %s: %.4g (sd %.2g), elsewhere %.4g", name, row.policy, row.figure, m.Mean, m.SD, row.want)
				}
			}
			if !found {
				t.Fatalf("%s has no figure %q", name, row.figure)
			}
		}
	}
}

// The figures are those of another simulator's ports of round robin, two choices by
// requests in flight, Finagle's peak EWMA and a held peak. Ours differ from the last
// two in part: failures are no samples, cold servers are on probation.
func TestScenariosReplayKnownPolicies(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const rr, p2c, finagle, peak = "round_robin", "p2c", "peak_ewma_finagle", "p2c_peak_hold"
	replay(t, 5, map[string][]replayed{
		"S1": {
			{"over 1 s", rr, 2727, 0.01}, {"over 1 s", p2c, 351, 0.02},
			{"over 1 s", finagle, 56, 0.10}, {"over 1 s", peak, 52.6, 0.10},
		},
		"S2": {
			{"most in flight", rr, 376, 0.03}, {"timeouts", rr, 3511, 0.03}, {"p99.9 while cold", rr, 2000, 0.001},
			{"most in flight", p2c, 8.6, 0.10}, {"p99.9 while cold", p2c, 555, 0.06},
			{"p99.9 while cold", finagle, 220, 0.10}, {"p99.9 while cold", peak, 204, 0.15},
		},
		"S3": {
			{"errors while failing", rr, 10, 0.001}, {"errors while failing", p2c, 19.6, 0.02},
			{"errors while failing", "least", 53, 0.01}, {"errors while failing", finagle, 19.9, 0.02},
			{"share after", rr, 10, 0.001}, {"share after", p2c, 10, 0.03}, {"share after", peak, 10.3, 0.08},
		},
		"S4": {
			{"timeouts", rr, 6006, 0.01}, {"timeouts", p2c, 234, 0.02}, {"timeouts", finagle, 35, 0.15}, {"timeouts", peak, 10, 0.25},
		},
		"S5": {
			{"slow one's share", rr, 20, 0.001}, {"slow one's share", p2c, 14.3, 0.05},
			{"slow one's share", finagle, 1.20, 0.05}, {"slow one's share", peak, 1.19, 0.05},
		},
		"S6/B=20": {
			{"mean", rr, 3511, 0.05}, {"mean", p2c, 29.9, 0.02}, {"p99", p2c, 128, 0.02},
			{"mean", finagle, 18.3, 0.02}, {"p99", finagle, 80, 0.03}, {"p99", peak, 80.3, 0.03},
		},
		"S7": {
			{"p99.9", rr, 990, 0.01}, {"wall", rr, 72.8, 0.02}, {"p99.9", p2c, 857, 0.02}, {"wall", p2c, 18.2, 0.02},
			{"p50", p2c, 5.1, 0.02}, {"p99", p2c, 98.4, 0.01}, {"p99.9", peak, 99.9, 0.01},
		},
		"S8": {
			{"slow one's share", rr, 10, 0.001}, {"slow one's share", p2c, 3.4, 0.02},
			{"slow one's share", finagle, 0.05, 0.1}, {"p99.9", peak, 22, 0.001},
		},
		"S11/n=2": {{"mean", "least", 10.566, 0.01}, {"mean", peak, 10.71, 0.02}},
		"S11/n=3": {{"mean", "least", 10.29, 0.01}, {"mean", peak, 10.43, 0.02}},
		"S13": {
			{"over 1 s", rr, 2731, 0.02}, {"over 1 s", p2c, 358, 0.03}, {"over 1 s", finagle, 57, 0.10}, {"over 1 s", peak, 52, 0.10},
		},
	})
}

// Here the figures are those of an independent simulator of the same fleet.
func TestFleetAAgreesWithAnotherSimulator(t *testing.T) {
	cases := map[string][]replayed{
		"fleet_a/B=1": {
			{"p99", "jsed", 60, 0.04}, {"p99.9", "jsed", 90, 0.06}, {"p99", "jsq", 79, 0.04}, {"p99", "p2c", 120, 0.06},
			{"p99", "p2c_table@0s", 122, 0.06}, {"p99", "peak_ewma_finagle", 83, 0.06}, {"p99", "peak_ewma_1s", 101, 0.06},
		},
		"fleet_a/B=50": {
			{"p99", "p2c", 992, 0.08}, {"p99", "least", 975, 0.08}, {"p99", "peak_ewma_1s", 374, 0.30}, {"p99.9", "p2c", 1260, 0.10},
		},
		"fleet_a/B=500":    {{"p99", "p2c", 7727, 0.15}, {"p99", "jsed", 59, 0.04}},
		"slow_pulse/B=50":  {{"p99", "jsed", 55, 0.04}, {"p99", "jsq", 61, 0.04}, {"p99", "p2c_table@0s", 82, 0.06}, {"p99", "p2c", 729, 0.25}},
		"fail_pulse/B=50":  {{"p99 of successes", "jsed", 55, 0.04}, {"success", "p2c", 95.766, 0.003}, {"success", "least", 95.615, 0.003}},
		"fail_pulse/B=500": {{"success", "p2c", 95.887, 0.003}, {"success", "random", 95.915, 0.003}},
		"load90/B=50":      {{"p99", "jsed", 99, 0.08}, {"p99", "jsq", 126, 0.08}, {"p99", "p2c", 1315, 0.10}},
		"bimodal/B=1":      {{"p99", "jsed", 834, 0.10}, {"p99", "jsq", 865, 0.60}},
		"pareto/B=1":       {{"p99", "jsed", 144, 0.20}, {"p99", "jsq", 160, 0.20}},
		"bimodal_sharing/B=1": {
			{"p99", "jsed", 7, 0.15}, {"p99", "jsq", 13, 0.20}, {"p99", "p2c_table@0s", 24, 0.20},
		},
		"sixty_four/B=400": {{"p99", "jsed", 48, 0.04}, {"p99", "jsq", 61, 0.04}},
	}
	if testing.Short() {
		for name := range cases {
			if !strings.HasPrefix(name, "fleet_a") {
				delete(cases, name)
			}
		}
	}
	replay(t, 8, cases)
}
