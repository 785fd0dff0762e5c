package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// stopped is a clock that does not go.
func stopped() time.Time { return time.Time{} }

func TestStatusOfTheCommand(t *testing.T) {
	for _, row := range []struct {
		line        string
		status      int
		out, errors string
	}{
		{"-h", 0, "usage: fleetsim", ""},
		{"-preset list", 0, "slow-backend", ""},
		{"-rate -1", 2, "", "-h explains the flags"},
		{"-duration 100ms -seeds 1", 0, "default", ""},
		{"-duration 100ms -seeds 1 -utilisation 1.5", 0, "OVERLOAD: the load is 1.50", ""},
	} {
		var stdout, stderr strings.Builder
		status := run(words(row.line), &stdout, &stderr)
		if status != row.status || !strings.Contains(stdout.String(), row.out) || !strings.Contains(stderr.String(), row.errors) ||
			row.errors == "" && stderr.Len() > 0 {
			t.Errorf("%s: status %d\n%s\n%s", row.line, status, stdout.String(), stderr.String())
		}
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	text := usage()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d wide: %s", n, line)
		}
	}
	for _, g := range flagGroups {
		for _, f := range g.flags {
			if !strings.Contains(text, "\n  -"+f.name) {
				t.Errorf("-h has no -%s", f.name)
			}
		}
	}
}

func TestProgressIsSeldomWhereNobodySeesItMove(t *testing.T) {
	clock := time.Time{}
	var out strings.Builder
	p := &progress{out: &out, now: func() time.Time { return clock }}
	p.start(100)
	for n := 1; n <= 100; n++ {
		clock = clock.Add(200 * time.Millisecond)
		p.done(n)
	}
	want := "simulating: 5 of 100 runs (5 %)\nsimulating: 30 of 100 runs (30 %), about 14 s left\n" +
		"simulating: 55 of 100 runs (55 %), about 9 s left\nsimulating: 80 of 100 runs (80 %)\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestProgressOnATerminalLeavesNothingBehind(t *testing.T) {
	clock := time.Time{}
	var out strings.Builder
	p := &progress{out: &out, redraw: true, now: func() time.Time { return clock }}
	p.start(3)
	for n := 1; n <= 3; n++ {
		clock = clock.Add(time.Second)
		p.done(n)
	}
	want := "\rsimulating: 1 of 3 runs (33 %)\x1b[K\rsimulating: 2 of 3 runs (66 %)\x1b[K\r\x1b[K"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	p = &progress{out: &out, redraw: true, now: stopped}
	p.start(1)
	if p.done(1); out.Len() > 0 {
		t.Errorf("a short run shows %q", out.String())
	}
}

func TestLongRunsTellOfTheirProgressMeanwhile(t *testing.T) {
	clock := time.Time{}
	var out strings.Builder
	p := &progress{out: &out, now: func() time.Time { clock = clock.Add(200 * time.Millisecond); return clock }}
	s, err := parseFlags(words("-rate 4096 -duration 50s -warmup 0s -policies random -bound none -seeds 2 -concurrency 0"))
	if err != nil {
		t.Fatal(err)
	}
	plan := newPlan(s)
	plan.scenario.Bucket = 0
	p.start(2)
	told := 0.0
	for seed := range uint64(2) {
		sc := plan.watched(plan.scenario, func(part float64) { told += part; p.worked(part) })
		if _, err := sim.Run(sc, plan.policies[0], seed); err != nil {
			t.Fatal(err)
		}
		p.done(int(seed) + 1)
	}
	if told < 1.9 || told > 2.0001 {
		t.Errorf("two runs told of %v", told)
	}
	want := "simulating: 0 of 2 runs (5 %)\nsimulating: 0 of 2 runs (30 %), about 14 s left\n" +
		"simulating: 1 of 2 runs (54 %), about 9 s left\nsimulating: 1 of 2 runs (79 %)\n"
	if out.String() != want {
		t.Errorf("%s, want %s", out.String(), want)
	}
}

func TestWatchingARunChangesNothing(t *testing.T) {
	for _, line := range []string{
		"-duration 15s", "-duration 8s -service lognormal -streams 0.2", "-arrivals closed -users 30 -duration 8s", "-utilisation 2 -sharing -duration 8s",
	} {
		s, err := parseFlags(words(line + " -policies p2c"))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		p, calls := newPlan(s), 0
		plain, err := sim.Run(p.scenario, s.policies[0], 1)
		if err != nil {
			t.Fatal(err)
		}
		watched, err := sim.Run(p.watched(p.scenario, func(float64) { calls++ }), s.policies[0], 1)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(plain.Total, watched.Total) || !reflect.DeepEqual(plain.Buckets, watched.Buckets) {
			t.Errorf("%s: results differ", line)
		}
	}
}

func TestProgressMayBeToldByAllAtOnce(t *testing.T) {
	var out strings.Builder
	p := &progress{out: &out, redraw: true, now: time.Now}
	p.start(8)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 1000 {
				p.worked(0.002)
			}
		})
	}
	group.Wait()
	if p.parts < 7.999 || p.parts > 8.001 {
		t.Errorf("%v", p.parts)
	}
}

// The memory of all runs at a time is bounded, not only that of one.
func TestFewerWorkersDoLargeRuns(t *testing.T) {
	for line, want := range map[string][2]int{ // workers, and results that wait
		"-duration 30s":                {64, 730},
		"-endpoints 300 -clients 1875": {2, 32},
		"-endpoints 10000 -clients 200 -duration 10s -warmup 0s": {1, 16},
		"-mean 1ms -utilisation 10 -duration 120s":               {1, 16},
		"-endpoints 10000 -clients 1 -step 20ms -duration 10s":   {1, 6},
	} {
		s, err := parseFlags(words(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		p := newPlan(s)
		n := p.workers(64)
		if got := [2]int{n, p.batch(n)}; got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// broken is an output that takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestThePageIsThereWhenNobodyReadsTheTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.html")
	var stderr strings.Builder
	status := run(words("-duration 100ms -seeds 1 -sweeps=false -html "+file), broken{}, &stderr)
	if status != 1 || !strings.Contains(stderr.String(), "writing the table: nobody reads") {
		t.Errorf("status %d, %q", status, stderr.String())
	}
	if text, err := os.ReadFile(file); err != nil || !strings.HasSuffix(string(text), "</html>") && !strings.Contains(string(text), "</html>") {
		t.Errorf("a page of %d bytes, %v", len(text), err)
	}
}

func TestTheTableIsThereWhenThePageCannotBeWritten(t *testing.T) {
	s, err := parseFlags(words("-duration 100ms -seeds 1 -sweeps=false"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(s)
	o, err := p.simulate(1, &progress{now: stopped})
	if err != nil {
		t.Fatal(err)
	}
	s.html = t.TempDir() // became a folder meanwhile
	var stdout, stderr strings.Builder
	if status := show(newReport(p, o), &stdout, &stderr); status != 1 {
		t.Errorf("status %d", status)
	}
	if !strings.Contains(stdout.String(), "round_robin") || strings.Contains(stdout.String(), "The page") || !strings.Contains(stderr.String(), "writing -html") {
		t.Errorf("%s\n%s", stdout.String(), stderr.String())
	}
}

func TestSweepsGoAroundTheFleetAsItIs(t *testing.T) {
	for line, want := range map[string][2][]float64{
		"-utilisation 0.7 -clients 50":                         {{0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95}, {1, 3, 10, 30, 50, 100, 300, 1000, 3000}},
		"-utilisation 0.65 -clients 1 -duration 2s -warmup 0s": {{0.3, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9, 0.95}, {1, 3, 10, 30, 100, 300}},
		"-utilisation 1.3 -endpoints 1000":                     {{0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.3}, {1, 3, 10, 30, 50, 100, 300, 1000}},
		"-concurrency 0 -rate 100 -clients 3000":               {{25, 50, 100, 200, 400}, {1, 3, 10, 30, 100, 300, 1000, 3000}},
		"-arrivals closed -users 2":                            {{1, 2, 4, 8}, {1, 3, 10, 30, 50, 100, 300, 1000, 3000}},
	} {
		if strings.Contains(line, "1000") {
			line += " -duration 10s -warmup 0s"
		}
		s, err := parseFlags(append(words(line), "-html", t.TempDir()+"/x.html"))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		p := newPlan(s)
		for k, w := range p.sweeps {
			var at []float64
			for _, point := range w.points {
				at = append(at, decimal(point.at))
				if point.scenario.Bucket != 0 || point.scenario.Windows != nil {
					t.Errorf("%s: a point keeps what only the main runs need", line)
				}
			}
			if !equalFloats(at, want[k]) {
				t.Errorf("%s: %s at %v, want %v", line, w.id, at, want[k])
			}
		}
	}
}

func equalFloats(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if d := a[i] - b[i]; d < -1e-6 || d > 1e-6 {
			return false
		}
	}
	return true
}

// The figures are those of the simulator, read as it reads them.
func TestFiguresAreTheSimulators(t *testing.T) {
	s, err := parseFlags(words("-preset slow-backend -policies p2c -seeds 3 -duration 6s"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(s)
	o, err := p.simulate(2, &progress{now: stopped})
	if err != nil {
		t.Fatal(err)
	}
	row := newReport(p, o).rows[0]
	results, err := sim.RunSeeds(p.scenario, p.policies[0], sim.Seeds(3), 2)
	if err != nil {
		t.Fatal(err)
	}
	p99 := sim.Over(results, func(r *sim.Result) float64 { return millis(r.Total.Latency().Quantile(0.99)) })
	share := sim.Over(results, func(r *sim.Result) float64 { return r.Window("#8 3× slower").Share(7) })
	if !equalFloats([]float64{row.p99, row.shares[0], deviation(row.tally.whole.p99)}, []float64{p99.Mean, share.Mean, p99.SD}) {
		t.Errorf("%v, %v, want %v, %v", row.p99, row.shares[0], p99, share)
	}
}

func TestStepsHaveEnoughRequests(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"":                                   time.Second,
		"-duration 40s":                      800 * time.Millisecond,
		"-duration 1h":                       time.Minute,
		"-rate 8":                            5 * time.Second, // 12 steps at least
		"-rate 40 -seeds 5":                  2 * time.Second,
		"-duration 1ms -warmup 0s -rate 1e6": 80 * time.Microsecond,
	} {
		s, err := parseFlags(words(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := newPlan(s).scenario.Bucket; got != want {
			t.Errorf("%s: steps of %v, want %v", line, got, want)
		}
	}
}

func TestTheDefaultPolicyHasItsColourEverywhere(t *testing.T) {
	for line, want := range map[string]string{
		"-policies round_robin,p2c,default":             "c1 c2 c0 cb",
		"-policies default,adaptive":                    "c0 c1 cb",
		`-policies {"adaptive":{}},p2c -bound none`:     "c0 c1",
		"-policies p2c,least,random,edf,jsq,least_time": "c1 c2 c3 c4 c5 c0 cb",
	} {
		s, err := parseFlags(words(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var got []string
		for _, c := range newPlan(s).lines {
			got = append(got, c.class)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
}
