package sim

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// goal is a figure that a policy has to reach in a case, as a mean over seeds.
type goal struct {
	row       string // what it shows
	at        string // the case
	figure    string
	least     float64
	most      float64
	seeds     int
	prototype string // what the policy's prototype, or theory, gave
	policy    string // "": the default
}

// key names a goal among those that are missed.
func (g goal) key() string { return g.at + ", " + g.figure }

// goals are the bars of the default on the work that it was made for.
var goals = []goal{
	{"fleet A", "fleet_a/B=1", "p99 / bound", 1, 1.15, 5, "1.07", ""},
	{"fleet A", "fleet_a/B=50", "p99 / bound", 1, 1.9, 5, "1.85", ""},
	{"fleet A", "fleet_a/B=500", "p99 / bound", 1, 2.8, 5, "2.46", ""},
	{"one fails fast", "fail_pulse/B=1", "success", 99.9, 100, 8, "99.98", ""},
	{"one fails fast", "fail_pulse/B=50", "success", 99.8, 100, 8, "99.81", ""},
	{"one fails fast", "fail_pulse/B=500", "success", 99, 100, 8, "99.24", ""},
	{"thin clients", "fleet_a/B=2000", "p99 / bound", 1, 4, 5, "3.3", ""},
	{"thin clients, wide fleet", "thirty/B=1900", "p99 / bound", 1, 4, 5, "3.0", ""},
	{"thin clients, wide fleet", "sixty_four/B=4000", "p99 / bound", 1, 4, 5, "3.4", ""},
	{"load 50 %", "load50/B=500", "p99 / bound", 1, 2.3, 5, "1.95", ""},
	{"load 90 %", "load90/B=500", "p99 / bound", 1, 3.5, 5, "3.17", ""},
	{"load 95 %", "load95/B=500", "p99 / bound", 1, 2.8, 5, "2.46", ""},
	{"few servers", "two/B=1", "p99 / bound", 1, 1.3, 5, "1.18", ""},
	{"few servers", "three/B=1", "p99 / bound", 1, 1.3, 5, "1.10", ""},
	{"slow motion × 100", "fleet_a/B=1*100", "p99 / bound", 1, 1.15, 5, "1.10", ""},
	{"slow motion × 100", "fleet_a/B=50*100", "p99 / bound", 1, 1.9, 8, "1.90", ""},
	{"slow motion × 100", "fleet_a/B=500*100", "p99 / bound", 1, 2.8, 5, "2.50", ""},
	{"slow motion × 100", "fail_pulse/B=50*100", "success", 99.7, 100, 8, "99.74", ""},
	{"slow motion × 100", "S3*100", "errors while failing", 0, 0.1, 5, "0.05", ""},
	{"slow motion × 100", "S4*100", "timeouts", 0, 16, 5, "13.7", ""},
	{"ten times slower", "S1", "over 1 s", 0, 60, 5, "56", ""},
	{"the same, other arrivals", "S13", "over 1 s", 0, 60, 5, "57", ""},
	{"a cold one joins", "S2", "most in flight", 0, 8, 5, "4.4", ""},
	{"a black hole", "S3", "errors while failing", 0, 0.04, 5, "0.020", ""},
	{"after a black hole", "S3", "share after", 9, 11, 5, "10.0", ""},
	{"a hang", "S4", "timeouts", 0, 11, 5, "7.7", ""},
	{"low load, one slow", "S5", "slow one's share", 0, 0.6, 5, "0.33", ""},
	{"low load, equal ones", "S5", "equal ones max/mean", 1, 1.25, 5, "1.13", ""},
	{"two speeds, 20 clients", "S6/B=20", "p99", 0, 73, 5, "69.5", ""},
	{"closed loop", "S7", "p99.9", 0, 30, 5, "10", ""},
	{"one slow, ten clients", "S8", "p99.9", 0, 22, 5, "22.0", ""},
	{"one slow, equal ones", "S8", "equal ones max/mean", 1, 1.25, 5, "", ""},
	{"streams, marked", "S9/marked", "short max/mean", 1, 1.2, 8, "1.12", ""},
	{"streams, unmarked", "S9/unary", "short max/mean", 1, 1.5, 8, "1.28", ""},
	{"streams, unmarked", "S9/unknown", "short max/mean", 1, 1.5, 8, "", ""},
	{"coming back", "S10", "in 20th", 8, 100, 5, "9.7", ""},
	{"coming back", "S10", "most in flight after", 0, 12, 5, "9", ""},
	{"no worse than least loaded", "S11/n=2", "mean / bound", 0.9, 1.01, 8, "1.005", ""},
	{"no worse than least loaded", "S11/n=3", "mean / bound", 0.9, 1.01, 8, "1.000", ""},
	{"two choices by latency", "fleet_a/B=50", "p99 / bound", 1, 2.4, 5, "2.24", "p2c_latency"},
	{"two choices by latency", "fail_pulse/B=50", "success", 99.6, 100, 8, "99.67", "p2c_latency"},
	{"two choices in theory", "S12/load=0.8", "mean", 19.47 * 0.98, 19.47 * 1.02, 5, "19.47", "p2c"},
	{"two choices in theory", "S12/load=0.9", "mean", 26.14 * 0.98, 26.14 * 1.02, 5, "26.14", "p2c"},
}

// missed are the goals that the present code does not reach, and why. They are logged, and
// the test fails when one is reached again on the first seeds: then it goes from here.
var missed = map[string]string{}

// inShortMode are the goals that even a short run can judge, with fewer seeds.
var inShortMode = []string{"fleet_a/B=1", "fleet_a/B=50", "fail_pulse/B=1", "S1", "S3", "S4", "S6/B=20", "S7"}

func TestGoalsAreMet(t *testing.T) {
	statistical(t)
	list, seeds := goals, 0
	if testing.Short() {
		list, seeds = nil, 3
		for _, g := range goals {
			for _, name := range inShortMode {
				if g.at == name && g.policy == "" {
					list = append(list, g)
				}
			}
		}
	}
	judge(t, list, seeds, 1)
}

// The constants were chosen on seeds from 1 on. On others the goals must be met as well.
func TestLongGoalsAreMetOnHeldOutSeeds(t *testing.T) {
	long(t)
	judge(t, goals, 10, 1001)
}

// judge measures each case once for each policy, with as many seeds as its goals ask for if
// seeds is 0, the first of them from.
func judge(t *testing.T, list []goal, seeds int, from uint64) {
	t.Helper()
	want := map[string]int{}
	for _, g := range list {
		want[g.policy+g.at] = max(want[g.policy+g.at], g.seeds)
	}
	measured := map[string][]Measured{}
	for _, g := range list {
		id := g.policy + g.at
		if measured[id] == nil {
			n := want[id]
			if seeds > 0 {
				n = seeds
			}
			measured[id] = measureGoal(t, g, n, from)
		}
		judgeGoal(t, g, measured[id], from == 1)
	}
}

func measureGoal(t *testing.T, g goal, seeds int, from uint64) []Measured {
	t.Helper()
	cases, err := CasesNamed(g.at)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != 1 {
		t.Fatalf("%q names %d cases", g.at, len(cases))
	}
	list := Seeds(seeds)
	for i := range list {
		list[i] += from - 1
	}
	policy := g.policy
	if policy == "" {
		policy = "default"
	}
	row, err := cases[0].Measure(named1(t, policy), list, runtime.GOMAXPROCS(0))
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// judgeGoal fails unless the goal is met. If strict, one that is met must not be listed as
// missed.
func judgeGoal(t *testing.T, g goal, row []Measured, strict bool) {
	t.Helper()
	for _, m := range row {
		if m.Name != g.figure {
			continue
		}
		text := fmt.Sprintf("%s: %s of %s is %.5g %s (sd %.2g of %d runs), the bar is %g to %g",
			g.row, g.figure, strings.TrimSpace(g.at+" "+g.policy), m.Mean, m.Unit, m.SD, m.N, g.least, g.most)
		if g.prototype != "" {
			text += ", a prototype gave " + g.prototype
		}
		met := m.Mean >= g.least && m.Mean <= g.most
		why, known := missed[g.key()]
		known = known && g.policy == ""
		switch {
		case met && known && strict:
			t.Errorf("%s: met again, take it off the list of what is missed", text)
		case met:
			t.Log(text)
		case known:
			t.Logf("MISSED: %s: %s", text, why)
		default:
			t.Error(text)
		}
		return
	}
	t.Errorf("%s has no figure %q", g.at, g.figure)
}

func TestMissedNamesGoals(t *testing.T) {
	keys := map[string]bool{}
	for _, g := range append(goals, robustGoals...) {
		if g.policy == "" {
			keys[g.key()] = true
		}
	}
	for key := range missed {
		if !keys[key] {
			t.Errorf("%q is missed, but no goal", key)
		}
	}
}
