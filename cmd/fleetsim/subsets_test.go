package main

import (
	"strings"
	"testing"
)

func TestSubsetsTableHasALineForEachAlgorithm(t *testing.T) {
	var first string
	for range 2 {
		var out, errs strings.Builder
		args := words("-preset subsets -clients 40 -endpoints 50 -size 6 -seeds 2")
		if status := run(args, &out, &errs); status != 0 || errs.Len() > 0 {
			t.Fatalf("status %d: %s", status, errs.String())
		}
		for _, s := range schemes {
			if !strings.Contains(out.String(), "\n"+s.name+" ") {
				t.Errorf("no line for %s:\n%s", s.name, out.String())
			}
		}
		if strings.Contains(out.String(), "NaN") || first != "" && first != out.String() {
			t.Errorf("two runs give\n%s\n%s", first, out.String())
		}
		first = out.String()
	}
}

func TestSubsetsRefusesWhatItDoesNotTake(t *testing.T) {
	for args, want := range map[string]string{
		"-preset subsets -clients 0 -size -1":                  "-clients is 0, want a whole number from 1 to 100000\nfleetsim: -size is -1",
		"-preset=subsets -rate 5":                              "flag provided but not defined: -rate",
		"--preset subsets extra":                               `there is an argument "extra"`,
		"-preset subsets -clients 100000 -endpoints 10000":     "of their product",
		"-preset slow-backend -preset subsets -endpoints 1":    "-endpoints is 1",
		"-clients 12 -preset subsets -seeds none -endpoints 1": `invalid value "none"`,
	} {
		var out, errs strings.Builder
		if status := run(words(args), &out, &errs); status != 2 || !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("%s: status %d, %q, want %q", args, status, errs.String(), want)
		}
	}
	var out, errs strings.Builder
	if status := run(words("-preset subsets -h"), &out, &errs); status != 0 || !strings.Contains(out.String(), "-size") {
		t.Errorf("-h: status %d, %q", status, out.String())
	}
	if !strings.Contains(presetList(), "  subsets ") {
		t.Error("the list of presets has no line for subsets")
	}
	for _, args := range []string{"", "-preset", "preset subsets", "-preset subsets -preset slow-backend", "-presets subsets"} {
		if wantsSubsets(words(args)) {
			t.Errorf("%q is taken for subsets", args)
		}
	}
}
