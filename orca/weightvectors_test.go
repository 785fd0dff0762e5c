package orca

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

type ruleVector struct {
	ID, Algo string
	Input    struct {
		Reports []struct {
			QPS, App, CPU, EPS float64
		}
		Penalty float64
		Weights json.RawMessage
		Rule    string
	}
	Expect struct {
		Weight     []*float64
		Effective  []float64
		Current    float64
		Mode       []string
		OlderLimit float64 `json:"older_releases"`
	}
}

func TestVectorOrcaRules(t *testing.T) {
	var file struct{ Vectors []json.RawMessage }
	readVectors(t, "signals-and-rules.json", &file)
	ran := 0
	for _, raw := range file.Vectors {
		var head struct{ Algo string }
		if json.Unmarshal(raw, &head) != nil || !strings.HasPrefix(head.Algo, "orca_") {
			continue
		}
		var v ruleVector
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		ran++
		t.Run(v.ID, func(t *testing.T) {
			if v.Algo == "orca_weight" {
				testWeightVector(t, v)
			} else {
				testFallbackVector(t, v)
			}
		})
	}
	if want := 6; ran != want {
		t.Errorf("ran %d vectors, want %d", ran, want)
	}
}

func testWeightVector(t *testing.T, v ruleVector) {
	w := mustWeights(t, WeightConfig{ErrorPenalty: v.Input.Penalty})
	for i, r := range v.Input.Reports {
		var e Estimate
		used := w.Take(&e, &Report{QPS: r.QPS, Application: r.App, CPU: r.CPU, EPS: r.EPS}, 5)
		want := v.Expect.Weight[i]
		got := math.Float64frombits(e.weight.Load())
		if last, ok := e.Last(); used != (want != nil) || ok != used || used && last != 5 {
			t.Errorf("report %d: used %v, last %d, %v", i, used, last, ok)
		}
		if want != nil && math.Abs(got-*want) > 1e-9 {
			t.Errorf("report %d: weight %v, want %v", i, got, *want)
		}
	}
}

func testFallbackVector(t *testing.T, v ruleVector) {
	w := mustWeights(t, WeightConfig{Blackout: -1, MeanForUnknown: strings.Contains(v.Input.Rule, "mean")})
	if len(v.Expect.Mode) > 0 {
		var lists [][]float64
		if err := json.Unmarshal(v.Input.Weights, &lists); err != nil {
			t.Fatal(err)
		}
		for _, raw := range lists {
			weights := make([]float64, len(raw))
			w.Update(weights, estimatesOf(w, raw, 0), 1)
			for _, got := range weights {
				if got != 1 {
					t.Errorf("%v became %v, want all 1", raw, weights)
				}
			}
		}
		return
	}
	var raw []float64
	if err := json.Unmarshal(v.Input.Weights, &raw); err != nil {
		t.Fatal(err)
	}
	weights := make([]float64, len(raw))
	w.Update(weights, estimatesOf(w, raw, 0), 1)
	// Ours have the median as their unit.
	unit := raw[0] / weights[0]
	want := v.Expect.Effective
	if want == nil {
		want = append(slices.Clone(raw[:len(raw)-1]), v.Expect.Current)
	}
	for i := range want {
		if math.Abs(weights[i]*unit-want[i]) > 1e-9 {
			t.Errorf("weights %v in units of %v, want %v", weights, unit, want)
		}
	}
}

// number is a number of the vectors, which JSON cannot write.
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	switch strings.Trim(string(data), `"`) {
	case "NaN":
		*n = number(math.NaN())
	case "+Inf":
		*n = number(math.Inf(1))
	default:
		return json.Unmarshal(data, (*float64)(n))
	}
	return nil
}

func TestVectorHostileReports(t *testing.T) {
	var file struct {
		Vectors []struct {
			Area  string
			Table json.RawMessage
		}
	}
	readVectors(t, "reliability.json", &file)
	ran := 0
	for _, v := range file.Vectors {
		if v.Area != "weights" {
			continue
		}
		var table []struct {
			Case, Want string
			RPS, Util  number
		}
		if err := json.Unmarshal(v.Table, &table); err != nil {
			t.Fatal(err)
		}
		for _, row := range table {
			ran++
			w := mustWeights(t, WeightConfig{Blackout: -1})
			endpoints := estimatesOf(w, []float64{200, 200, 400}, 0)
			used := w.Take(endpoints[0], &Report{QPS: float64(row.RPS), CPU: float64(row.Util)}, 1)
			weights := make([]float64, 3)
			w.Update(weights, endpoints, 2)
			unit := 200 / weights[1]
			got := weights[0] * unit
			var want float64
			switch row.Want {
			case "accept 200":
				want = 200
			case "reject, keep previous":
				if last, _ := endpoints[0].Last(); used || last != 0 {
					t.Errorf("%s: used %v, age of instant %d", row.Case, used, last)
				}
				want = 200
			case "clamp to 10 x median":
				want = 10 * 300
			case "clamp to 0.1 x median":
				want = 0.1 * 300
			default:
				t.Fatalf("unknown expectation %q", row.Want)
			}
			if math.Abs(got-want) > 1e-9*want || math.Abs(weights[2]*unit-400) > 1e-9 {
				t.Errorf("%s: weights %v, in units of %v: %v, want %v", row.Case, weights, unit, got, want)
			}
		}
	}
	if want := 8; ran != want {
		t.Errorf("ran %d rows, want %d", ran, want)
	}
}
