package grpcbalancer

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/internal/config"
)

// docLines are the indented lines of the package's documentation.
func docLines(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line, ok := strings.CutPrefix(line, "//\t"); ok {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

func TestDocumentedConfigsAreValid(t *testing.T) {
	configs := 0
	for _, line := range docLines(t) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		configs++
		if _, report, err := config.Parse([]byte(line)); err != nil || len(report.Unknown) > 0 {
			t.Errorf("%s: %v, unknown %v", line, err, report.Unknown)
		}
	}
	if configs < 3 {
		t.Errorf("%d configs, want some", configs)
	}
}

func TestEveryPolicySignalAndParameterIsDocumented(t *testing.T) {
	var names []string
	text := strings.Join(docLines(t), "\n")
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		names = append(names, name)
	}
	for _, name := range append(policyNames(t), signalNames(t)...) {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not documented", name)
		}
	}
	for _, name := range known(t, `{"subset": {"algorithm": "?"}}`, "want ") {
		if !strings.Contains(text, `"`+name+`"`) {
			t.Errorf("the algorithm %s is not documented", name)
		}
	}
	for _, where := range []string{
		`{"strict": true, "policy": {"weighted_least_request": {"?": 1}}}`,
		`{"strict": true, "policy": {"p2c": {"?": 1}}}`,
		`{"strict": true, "policy": {"least": {"?": 1}}}`,
		`{"strict": true, "policy": {"maglev": {"?": 1}}}`,
		`{"strict": true, "policy": {"ring_hash": {"?": 1}}}`,
		`{"strict": true, "policy": {"rendezvous": {"?": 1}}}`,
		`{"strict": true, "policy": {"p2c": {"signal": {"peak_ewma": {"?": 1}}}}}`,
		`{"strict": true, "subset": {"?": 1}}`,
		`{"strict": true, "health": {"?": 1}}`,
	} {
		for _, parameter := range known(t, where, "want ") {
			if !strings.Contains(text, `"`+parameter+`":`) {
				t.Errorf("%s is not documented", parameter)
			}
		}
	}
}
