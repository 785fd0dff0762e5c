package main

import (
	"os"
	"strings"
	"testing"
)

// The test's binary is the server of its own channel, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == serveArg {
		if serveUntilEOF(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestEachPartMeasuresSomething(t *testing.T) {
	var out, errs strings.Builder
	s := settings{parts: allParts, rounds: 2, calls: 64, picks: 1000, starts: []int{100}, real: 20}
	for i, measure := range []func(settings) error{
		func(s settings) error { return picks(s, &out) },
		func(s settings) error { return calls(s, &out) },
		func(s settings) error { return starts(s, &out) },
		func(s settings) error { return realStarts(s, &out) },
	} {
		before := out.Len()
		if err := measure(s); err != nil || out.Len() == before {
			t.Errorf("part %d: %v", i, err)
		}
	}
	if code := run([]string{"-parts", "none"}, &out, &errs); code != 2 || !strings.Contains(errs.String(), `no part "none"`) {
		t.Errorf("status %d, %q", code, errs.String())
	}
}
