package sim

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

// fleetVector is one of the vectors that are about a whole fleet.
type fleetVector struct {
	ID, Area string
	Sim      struct {
		Hosts, Bad int
		Load       float64
		Scoring    float64 `json:"with_error_scoring"`
		Bound      float64
	}
	Results []struct {
		Setting  string
		During   float64 `json:"during_at_least"`
		After    float64 `json:"after_0_10_at_least"`
		Recovers float64 `json:"recover_s_at_most"`
		Ejected  *int    `json:"healthy_hosts_ejected"`
	}
}

// deploysWith runs a bad deploy with one client.
func deploysWith(t *testing.T, c evenkeel.Config, bad int, seeds uint64) (during, after, back, healthyOut Stat) {
	t.Helper()
	s := BadDeploy(bad, 0.8, 1)
	s.Windows = []Span{{"failing", 20 * second, 40 * second}, {"10 s after", 40 * second, 50 * second}}
	var jobs []Job
	for seed := range seeds {
		jobs = append(jobs, Job{s, Policy{Name: "vector", Config: c}, seed + 1})
	}
	results := mustRunAll(t, jobs)
	window := func(i int) func(*Result) float64 { return func(r *Result) float64 { return r.Windows[i].Success() } }
	return Over(results, window(0)), Over(results, window(1)), Over(results, backAfter().Of), Over(results, func(r *Result) (n float64) {
		for _, k := range r.Ejections[bad:] {
			n += float64(k)
		}
		return n
	})
}

// The vectors of whole fleets say what is reached with a limit, errors in the score and soft ejection; the settings that they
// compare with are others'. The default has the first two and needs no third for the goal. With Soft beside it, ramps
// cost a few seconds more, which deployGoals bound.
func TestVectorsOfFleets(t *testing.T) {
	statistical(t)
	raw, err := os.ReadFile("../../outlier/testdata/reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []json.RawMessage }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	ran, goals := 0, 0
	for _, one := range file.Vectors {
		var v fleetVector
		if err := json.Unmarshal(one, &struct{ ID, Area *string }{&v.ID, &v.Area}); err != nil {
			t.Fatal(err)
		}
		if v.ID != "PN-03" && v.Area != "simulation" {
			continue
		}
		if err := json.Unmarshal(one, &v); err != nil {
			t.Fatal(err)
		}
		ran++
		switch v.ID {
		case "PN-03":
			if v.Sim.Hosts != 10 || v.Sim.Load != 0.8 {
				t.Errorf("%+v is another fleet", v.Sim)
			}
			during, _, _, _ := deploysWith(t, evenkeel.Config{Outlier: &outlier.Config{}}, v.Sim.Bad, 5)
			t.Logf("%s: %.4f, the bound is %v", v.ID, during.Mean, v.Sim.Bound)
			if during.Mean < v.Sim.Scoring-0.01 {
				t.Errorf("%s: %.4f of the requests succeed, want %v of at most %v", v.ID, during.Mean, v.Sim.Scoring, v.Sim.Bound)
			}
		case "SM-01":
			for _, r := range v.Results {
				if r.During == 0 {
					continue
				}
				goals++
				during, after, back, healthyOut := deploysWith(t, evenkeel.Config{}, 3, 10)
				t.Logf("%s: %.4f during, %.4f after, back after %.1f s, %.2f healthy ones ejected", v.ID, during.Mean, after.Mean, back.Mean, healthyOut.Mean)
				if during.Mean < r.During || after.Mean < r.After || back.Mean > r.Recovers || r.Ejected == nil || healthyOut.Mean > float64(*r.Ejected) {
					t.Errorf("%s, %s: %.4f during, %.4f after, back after %.1f s, %.2f healthy ones ejected; want %+v", v.ID, r.Setting,
						during.Mean, after.Mean, back.Mean, healthyOut.Mean, r)
				}
			}
		default:
			t.Errorf("nobody runs %s", v.ID)
		}
	}
	if ran != 2 || goals != 1 {
		t.Errorf("ran %d vectors with %d goals, want 2 and 1, which is all in the file", ran, goals)
	}
}
