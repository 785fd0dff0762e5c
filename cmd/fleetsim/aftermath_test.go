package main

import (
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// outageReport is a report of two policies over ten steps of a second, of which an incident takes the third to
// the fifth: bad says how many of 100 requests fail in each, and out how many of two clients have the first and the
// last endpoint ejected.
func outageReport(t *testing.T, bad [2][10]int, out [2][10][2]int) *report {
	t.Helper()
	r := inventedReport(t, words("-endpoints 4 -clients 2 -duration 10s -warmup 0s -step 1s -seeds 1 -bound none -policies p2c,guarded_p2c -fail 2s-5s,first=2")...)
	for k := range r.rows {
		tally := r.rows[k].tally
		tally.runs = 1
		tally.windows[0].errors = []float64{float64(bad[k][2]+bad[k][3]+bad[k][4]) / 300}
		for i, n := range bad[k] {
			b := sim.Bucket{From: time.Duration(i) * time.Second, Picks: make([]int, 4), InFlight: make([]float64, 4)}
			b.Requests = 100
			if k == 1 {
				b.Ejected = []int{out[k][i][0], 0, 0, out[k][i][1]}
			}
			tally.steps = append(tally.steps, step{})
			s := &tally.steps[i]
			s.fold(&b)
			s.bad = n
		}
	}
	return r
}

func TestAftermath(t *testing.T) {
	r := outageReport(t, [2][10]int{{0, 0, 30, 30, 30, 0, 0, 0, 0, 0}, {0, 0, 50, 90, 100, 100, 60, 20, 0, 0}},
		[2][10][2]int{1: {2: {1, 0}, 3: {2, 0}, 4: {2, 1}, 5: {2, 2}}})
	golden(t, "aftermath.txt", r.aftermathText())
	page := r.aftermathTable(0)
	if got := strings.Join(page.Rows[1].Cells, " | "); got != "guarded_p2c | 20.0 % | 20.0 % | 93.3 % | 3 s | 0.83 | 1.00" {
		t.Errorf("%s", got)
	}
	if c := r.ejectedOverTime(); c == nil || len(c.series) != 1 || c.series[0].points[4].y != 1.5 {
		t.Errorf("%+v", c)
	}
}

// Some never get well, some have nothing to get over, and where nobody loses a hundredth there is no table.
func TestAftermathOfAllKinds(t *testing.T) {
	for bad, want := range map[[10]int]string{
		{}:                              "",
		{2: 1, 3: 1, 4: 1}:              "",
		{2: 2, 3: 2, 4: 2}:              "at once",
		{2: 9, 3: 9, 4: 9, 6: 2}:        "2 s",
		{2: 9, 3: 9, 4: 9, 5: 50, 9: 3}: "never",
		{9: 60}:                         "never",
	} {
		r := outageReport(t, [2][10]int{bad, bad}, [2][10][2]int{})
		if text := r.aftermathText(); !strings.Contains(text, want) || (text == "") != (want == "") {
			t.Errorf("%v: %s\nwant %q", bad, text, want)
		}
	}
	r := inventedReport(t, words("-fail 2s-,first=2 -seeds 1")...)
	if _, ok := r.outage(); ok {
		t.Error("an incident that does not end has no aftermath")
	}
}

func TestLevelsOfSparklines(t *testing.T) {
	for success, want := range map[float64]rune{0: '▁', 0.14: '▁', 0.15: '▂', 0.5: '▄', 0.9899: '▇', 0.99: '█', 1: '█'} {
		if got := levelOf(success); got != want {
			t.Errorf("%v: %c, want %c", success, got, want)
		}
	}
	if got := levelOf(successOf(nil, 0, 1)); got != ' ' {
		t.Errorf("of no requests: %q", got)
	}
}
