package picker_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

type vector struct {
	ID     string
	Algo   string
	Input  json.RawMessage
	Expect json.RawMessage
	Note   string
}

func readVectors(tb testing.TB) []vector {
	tb.Helper()
	raw, err := os.ReadFile("testdata/signals-and-rules.json")
	if err != nil {
		tb.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &file); err != nil {
		tb.Fatal(err)
	}
	return file.Vectors
}

// into decodes both halves of a vector.
func (v vector) into(t *testing.T, input, expect any) {
	t.Helper()
	if err := json.Unmarshal(v.Input, input); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(v.Expect, expect); err != nil {
		t.Fatal(err)
	}
}

// elsewhere holds the vectors that are not run here. A trailing * matches any rest of a name.
var elsewhere = map[string]struct {
	test  func(*testing.T) // runs it in this package
	tests []string         // run it in others: "folder.Test"
	why   string           // nobody runs it
}{
	"swrr-*":              {test: picker.TestWeightedRuleVectors},
	"edf-least-request-*": {test: picker.TestWeightedRuleVectors},
	"edf-*":               {test: picker.TestWeightedRuleVectors},
	"stride-*":            {test: picker.TestWeightedRuleVectors},
	"lr-weight":           {test: picker.TestWeightedRuleVectors},
	"inflight-age-wrap":   {tests: []string{"ewma.TestAgeHealsAfterOverflow"}},
	"pushback": {tests: []string{"httpclient.TestVectorPushbackRetryAfter",
		"grpcbalancer.TestVectorPushbackMilliseconds"}},

	"swrr-nginx-effective":  {why: "NGINX's own failure handling; ours is the success score"},
	"iwrr-511":              {why: "interleaved WRR, which bursts: smooth WRR and EDF are what we have instead"},
	"servicetalk-*":         {why: "ServiceTalk's own formula"},
	"c3-score":              {why: "C3's own formula"},
	"orca-*":                {why: "load reports are tested in package orca"},
	"slow-start-*":          {why: "slow start is tested in package outlier"},
	"p2c-rank-replacement*": {why: "draws with replacement, which we do not do"},
	"cold-flood-bound":      {why: "what a cold endpoint of lowest cost leads to, which ours is not"},
}

// Each entry says who runs the vector, and that test exists, or why nobody does.
func TestVectorsElsewhereAreThere(t *testing.T) {
	for id, e := range elsewhere {
		if said := (e.test != nil) || len(e.tests) > 0; said == (e.why != "") {
			t.Errorf("%s: want either tests or a reason", id)
		}
		for _, name := range e.tests {
			folder, test, _ := strings.Cut(name, ".")
			if !slices.Contains(testsIn(t, filepath.Join("..", folder)), test) {
				t.Errorf("%s: there is no test %s in %s", id, test, folder)
			}
		}
	}
}

// testsIn returns the names of the test functions in a folder.
func testsIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

var vectorTests = map[string]func(*testing.T, vector){
	"peak-alpha-0.3":           testPeakAlpha,
	"peak-time-sample-below":   testPeakTime,
	"peak-read-purity":         testPeakReadPurity,
	"peak-out-of-order":        testPeakTime,
	"peak-zero-dt-burst":       testPeakTime,
	"peakhold-compare-noclock": testPeakHoldCompare,
	"peakhold-pending":         testPeakHoldPending,
	"cold-finagle":             testColdFinagle,
	"cold-probation":           testColdProbation,
	"penalty-fail":             testPenaltyFail,
	"dubbo-cold":               testDubboCold,
	"success-ewma-no-ratchet":  testSuccessNoRatchet,
	"success-ewma-background":  testSuccessBackground,
	"inflight-age":             testInFlightAge,
	"weighted-compare":         testWeightedCompare,
	"nginx-least-conn":         testNGINXLeastConn,
	"p2c-rank-distinct":        testP2CRank,
	"rr-wrap":                  testRRWrap,
	"two-distinct":             testTwoDistinct,
}

// Every vector is run here, run elsewhere, or left out for a stated reason; and every
// name in the tables is in the file.
func TestVectorsOfSignalsAndSampling(t *testing.T) {
	used := map[string]bool{}
	ran, left := 0, 0
	for _, v := range readVectors(t) {
		if run, ok := vectorTests[v.ID]; ok {
			used[v.ID] = true
			ran++
			t.Run(v.ID, func(t *testing.T) { run(t, v) })
			continue
		}
		if k := matching(v.ID); k != "" {
			used[k] = true
			left++
			continue
		}
		t.Errorf("no test runs vector %s", v.ID)
	}
	for id := range vectorTests {
		if !used[id] {
			t.Errorf("there is no vector %s", id)
		}
	}
	for id := range elsewhere {
		if !used[id] {
			t.Errorf("no vector matches %s", id)
		}
	}
	if ran != len(vectorTests) || ran+left != len(readVectors(t)) {
		t.Errorf("ran %d of %d, %d elsewhere", ran, len(readVectors(t)), left)
	}
}

// matching returns the longest key of elsewhere that id matches.
func matching(id string) (best string) {
	for k := range elsewhere {
		prefix, open := strings.CutSuffix(k, "*")
		if (id == k || open && strings.HasPrefix(id, prefix)) && len(k) > len(best) {
			best = k
		}
	}
	return best
}
