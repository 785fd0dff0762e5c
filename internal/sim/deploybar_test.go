package sim

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/outlier"
)

// The bars of every setting of ejection, against nobody being ejected in the same fleet, limit and seeds.
const (
	// deployWorse is how many points of success it may cost in any of the windows.
	deployWorse = 5.0
	// deployKept is the part of the success of the last 40 s, which begin 20 s after the deploy's end, that is
	// there again: else something is lost for good. From load 1 on nobody is well, and the mean of four
	// runs differs by a point between seeds.
	deployKept, deployKeptAbove = 0.995, 0.985
	// deploySeeds is how many runs have a say where the first one misses a bar.
	deploySeeds = 4
)

var updateMissed = flag.Bool("update", false, "write the list of cells that miss the bars of bad deploys anew")

// coveredCells are cells in which every combination of strength settings occurs.
func coveredCells(strength int) (cells []deployCell) {
	rows := covering([]int{len(deployPolicies), len(gridCaps), len(gridPanics), len(gridLoads), len(gridBad), len(gridClients)}, strength)
	for _, r := range rows {
		cells = append(cells, deployCell{policy: deployPolicies[r[0]].name, mode: outlier.Soft, cap: gridCaps[r[1]], panic: gridPanics[r[2]],
			load: gridLoads[r[3]], bad: gridBad[r[4]], clients: gridClients[r[5]]})
	}
	return cells
}

// deployMisses names the bars that a cell misses, with the figures.
func deployMisses(c deployCell, got, without deployed) (names []string, text string) {
	for i, name := range []string{"during", "10 s after", "60 s after"} {
		if got.success[i] < without.success[i]-deployWorse {
			names = append(names, name)
			text += fmt.Sprintf("; %s %.1f %%, without ejection %.1f %%", name, got.success[i], without.success[i])
		}
	}
	kept := deployKept
	if c.load >= 1 {
		kept = deployKeptAbove
	}
	if got.success[3] < kept*without.success[3] {
		names = append(names, "for good")
		text += fmt.Sprintf("; for good %.1f %%, without ejection %.1f %%", got.success[3], without.success[3])
	}
	return names, strings.TrimPrefix(text, "; ")
}

// judgeDeploys measures cells with one run each and, where a bar is missed, with several. It returns those that
// miss a bar then, as they stand in the list, and the figures.
func judgeDeploys(t *testing.T, cells []deployCell) (missed, figures []string) {
	t.Helper()
	for chunk := range slices.Chunk(cells, 50) { // as results take memory
		var jobs []Job
		for _, c := range chunk {
			jobs = append(jobs, c.job(true, 1), c.without().job(true, 1))
		}
		results := mustRunAll(t, jobs)
		for i, c := range chunk {
			if names, text := judgeDeploy(t, c, deployedIn(results[2*i], c.bad), deployedIn(results[2*i+1], c.bad)); names != nil {
				missed = append(missed, c.String()+": "+strings.Join(names, ", "))
				figures = append(figures, text)
			}
		}
	}
	return missed, figures
}

// judgeDeploy names the bars that a cell misses, with the figures.
func judgeDeploy(t *testing.T, c deployCell, got, without deployed) (names []string, text string) {
	t.Helper()
	if c.cap == 0 && got != without {
		return []string{"a cap of 0"}, "it is not the same as no ejection"
	}
	if names, _ = deployMisses(c, got, without); names == nil {
		return nil, ""
	}
	return deployMisses(c, meanDeployed(t, c, deploySeeds), meanDeployed(t, c.without(), deploySeeds))
}

// checkMissed compares with the list of what is known to miss a bar, under testdata: nothing may be added, and
// what is met again goes from there.
func checkMissed(t *testing.T, file string, cells []deployCell) {
	t.Helper()
	missed, figures := judgeDeploys(t, cells)
	path := "testdata/" + file
	if *updateMissed {
		if err := os.WriteFile(path, []byte(strings.Join(missed, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.FieldsFunc(string(text), func(c rune) bool { return c == '\n' })
	for i, m := range missed {
		if slices.Contains(known, m) {
			t.Logf("MISSED: %s (%s)", m, figures[i])
		} else {
			t.Errorf("%s (%s)", m, figures[i])
		}
	}
	for _, k := range known {
		name, _, _ := strings.Cut(k, ": ")
		measured := slices.ContainsFunc(cells, func(c deployCell) bool { return c.String() == name })
		if measured && !slices.Contains(missed, k) {
			t.Errorf("met again, take it off %s: %s", path, k)
		}
	}
	t.Logf("%d of %d cells miss a bar", len(missed), len(cells))
}

// All pairs of settings; in a short run a quarter of the cells.
func TestEjectionIsNeverMuchWorseThanNone(t *testing.T) {
	statistical(t)
	cells := coveredCells(2)
	if testing.Short() {
		cells = cells[:len(cells)/4]
	}
	checkMissed(t, "bad_deploy_pairs.txt", cells)
}

// All triples.
func TestLongEjectionIsNeverMuchWorseThanNone(t *testing.T) {
	long(t)
	statistical(t)
	checkMissed(t, "bad_deploy_triples.txt", coveredCells(3))
}

// In the bad deploy that everything began with, the default with ejection ejects nobody but those that fail.
// Policies that see no failures let queues differ, and may eject the owner of the longest for its timeouts.
func TestNoHealthyServerIsEjectedInABadDeploy(t *testing.T) {
	statistical(t)
	seeds := Seeds(3)
	if testing.Short() {
		seeds = seeds[:1]
	}
	for _, policy := range deployPolicies {
		most := 3.0 // seen: one, of all clients together, and three by round robin
		if policy.name == "adaptive" {
			most = 0
		}
		for _, clients := range gridClients {
			c := deployCell{policy: policy.name, mode: outlier.Soft, cap: 100, panic: 50, load: 0.8, bad: 3, clients: clients}
			for _, seed := range seeds {
				r := mustRunAll(t, []Job{c.job(true, seed)})[0]
				if d := deployedIn(r, c.bad); d.ejected > most {
					t.Errorf("%s, seed %d: ejected %v times, want %g of the healthy ones at most", c, seed, r.Ejections, most)
				} else if d.ejected > 0 {
					t.Logf("MISSED: %s, seed %d: ejected %v times", c, seed, r.Ejections)
				}
			}
		}
	}
}
