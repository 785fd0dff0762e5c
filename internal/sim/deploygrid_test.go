package sim

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// deployCell is one bad deploy under one setting of ejection: a point of the grid.
type deployCell struct {
	policy       string // of deployPolicies
	mode         outlier.Mode
	cap, panic   float64
	load         float64
	bad, clients int
}

// deployPolicies choose in the grid's cells. The default sees failures by itself and ejects on
// request only; the others see none.
var deployPolicies = []struct {
	name string
	is   evenkeel.Policy
}{{"adaptive", nil}, {"p2c", picker.P2C{Signal: picker.InFlight}}, {"round robin", picker.RoundRobin{}}}

func (c deployCell) String() string {
	return fmt.Sprintf("%d of 10 bad at load %g, %d clients, %s, %v, cap %g %%, panic %g %%", c.bad, c.load, c.clients, c.policy, c.mode, c.cap, c.panic)
}

// settled returns the cell with the settings that decide nothing at one value: where nobody is ejected
// there is no panic.
func (c deployCell) settled() deployCell {
	if c.mode == outlier.NoEjection {
		c.cap = 0
	}
	if c.cap == 0 {
		c.mode, c.panic = outlier.NoEjection, 50
	}
	return c
}

// without returns the cell in which nobody is ejected.
func (c deployCell) without() deployCell {
	c.mode = outlier.NoEjection
	return c.settled()
}

// job is the cell's run with the pool's limit or without.
func (c deployCell) job(limited bool, seed uint64) Job {
	s := BadDeploy(c.bad, c.load, c.clients)
	s.Bucket = 0
	s.Windows = []Span{{"failing", 20 * second, 40 * second}, {"10 s after", 40 * second, 50 * second},
		{"60 s after", 50 * second, 100 * second}, {"last", 60 * second, 100 * second}}
	p := Policy{Name: c.policy, Config: evenkeel.Config{
		Outlier: &outlier.Config{Mode: c.mode, MaxEjectionPercent: outlier.PercentOf(c.cap),
			Panic: outlier.Panic{Threshold: outlier.PercentOf(c.panic)}},
		Limit: evenkeel.LimitConfig{Disabled: !limited},
	}}
	for _, known := range deployPolicies {
		if known.name == c.policy {
			p.Config.Policy = known.is
		}
	}
	return Job{s, p, seed}
}

// deployed is what a cell gave: success in percent in its four windows, and how often healthy
// servers were ejected.
type deployed struct {
	success [4]float64
	ejected float64
}

func deployedIn(r *Result, bad int) (d deployed) {
	for i := range d.success {
		d.success[i] = 100 * r.Windows[i].Success()
	}
	for _, n := range r.Ejections[bad:] {
		d.ejected += float64(n)
	}
	return d
}

// meanDeployed runs a cell with seeds 1 to n.
func meanDeployed(t *testing.T, c deployCell, n int) (mean deployed) {
	t.Helper()
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = c.job(true, uint64(i+1))
	}
	for _, r := range mustRunAll(t, jobs) {
		d := deployedIn(r, c.bad)
		for i := range d.success {
			mean.success[i] += d.success[i] / float64(n)
		}
		mean.ejected += d.ejected / float64(n)
	}
	return mean
}

func mustRunAll(t *testing.T, jobs []Job) []*Result {
	t.Helper()
	results, err := RunAll(jobs, runtime.GOMAXPROCS(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// The axes of the grid.
var (
	gridCaps    = []float64{0, 10, 30, 50, 70, 100}
	gridPanics  = []float64{0, 30, 50, 70, 100}
	gridLoads   = []float64{0.5, 0.7, 0.8, 0.9, 1, 1.2}
	gridBad     = []int{0, 1, 2, 3, 4, 5, 6, 8, 10}
	gridClients = []int{1, 20, 100}
	gridModes   = []outlier.Mode{outlier.Soft, outlier.Envoy}
)

// settings are the cell's fleet under all settings of ejection, each once; the first ejects nobody.
func (c deployCell) settings() []deployCell {
	list := []deployCell{c.without()}
	for _, mode := range gridModes {
		for _, share := range gridCaps[1:] {
			for _, panic := range gridPanics {
				c.mode, c.cap, c.panic = mode, share, panic
				list = append(list, c)
			}
		}
	}
	return list
}

// TestGridOfBadDeploys writes every cell of the grid to the file that EVENKEEL_GRID names, one a line: 25 minutes of CPU.
// EVENKEEL_GRID_PART=2/5 is the second of five parts.
func TestGridOfBadDeploys(t *testing.T) {
	name := os.Getenv("EVENKEEL_GRID")
	if name == "" {
		t.Skip("EVENKEEL_GRID names no file")
	}
	part, parts := 1, 1
	if a, b, ok := strings.Cut(os.Getenv("EVENKEEL_GRID_PART"), "/"); ok {
		part, _ = strconv.Atoi(a)
		parts, _ = strconv.Atoi(b)
	}
	var b strings.Builder
	fmt.Fprintln(&b, "policy\tload\tbad\tclients\tmode\tlimit\tcap\tpanic\tfailing\t10 s after\t60 s after\tlast\thealthy ejected")
	n := 0
	for _, policy := range deployPolicies {
		for _, clients := range gridClients {
			for _, load := range gridLoads {
				for _, bad := range gridBad {
					if n++; n%parts == part%parts {
						gridRows(t, &b, deployCell{policy: policy.name, load: load, bad: bad, clients: clients})
					}
				}
			}
		}
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// gridRows writes a fleet's lines: all settings with the limit, and no ejection without it.
func gridRows(t *testing.T, b *strings.Builder, fleet deployCell) {
	cells := fleet.settings()
	var jobs []Job
	for _, c := range cells {
		jobs = append(jobs, c.job(true, 1))
	}
	jobs = append(jobs, cells[0].job(false, 1))
	for i, r := range mustRunAll(t, jobs) {
		c, limit := cells[i%len(cells)], "on"
		if i == len(cells) {
			limit = "off"
		}
		d := deployedIn(r, c.bad)
		fmt.Fprintf(b, "%s\t%g\t%d\t%d\t%v\t%s\t%g\t%g\t%.2f\t%.2f\t%.2f\t%.2f\t%g\n", c.policy, c.load, c.bad, c.clients, c.mode, limit, c.cap, c.panic,
			d.success[0], d.success[1], d.success[2], d.success[3], d.ejected)
	}
}
