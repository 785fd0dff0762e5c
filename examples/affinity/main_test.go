package main

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The whole comparison on real servers, small. Nothing in it depends on time.
func TestAnEleventhCacheTakesAnEleventhOfTheObjects(t *testing.T) {
	s := settingsFor(500, 7)
	measured := map[string]figures{}
	for _, c := range contenders {
		f, err := measure(t.Context(), s, c)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		measured[c.name] = f
	}
	inTurn, modulo, consistent := measured["round robin"], measured["modulo"], measured["consistent"]
	if n := inTurn.before.hits; n > s.objects/5 {
		t.Errorf("round robin: %d hits of %d, want few", n, s.objects)
	}
	for name, f := range map[string]figures{"modulo": modulo, "consistent": consistent} {
		if f.before.hits != s.objects || f.after.hits != s.objects {
			t.Errorf("%s: %d and %d hits at rest, want all %d", name, f.before.hits, f.after.hits, s.objects)
		}
	}
	// An eleventh is 45, with a standard deviation of 6.
	if n := consistent.moved; n < 15 || n > 75 {
		t.Errorf("consistent: %d of %d objects moved, want about an eleventh", n, s.objects)
	}
	if n := consistent.during.hits; n != s.objects-consistent.moved {
		t.Errorf("consistent: %d hits, want all that did not move, %d", n, s.objects-consistent.moved)
	}
	if n := modulo.moved; n < 425 || n > 485 {
		t.Errorf("modulo: %d of %d objects moved, want about ten elevenths", n, s.objects)
	}
	again, err := measure(t.Context(), s, contenders[2])
	if err != nil || again.row("") != consistent.row("") {
		t.Errorf("once more: %s, %v, want the same as %s", again.row(""), err, consistent.row(""))
	}
}

func TestTheReportHasARowForEachContender(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := run(strings.Fields("-objects 100 -seed 3"), &stdout, &stderr); status != 0 || stderr.Len() > 0 {
		t.Fatalf("status %d, stderr %q", status, &stderr)
	}
	for _, c := range contenders {
		if !strings.Contains(stdout.String(), "\n"+c.name+"  ") {
			t.Errorf("no row for %s in\n%s", c.name, &stdout)
		}
	}
}

func TestAnInterruptStopsEverything(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ctx, defaults, contenders[1]); !errors.Is(err, context.Canceled) {
		t.Errorf("measure returns %v, want that it was cancelled", err)
	}
}

// A slice with the latest at its end does the same, slowly.
func TestTheLRURemembersTheLatest(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	l := newLRU(7)
	var latest []string
	for step := range 5000 {
		key := strconv.Itoa(r.IntN(20))
		i := slices.Index(latest, key)
		if i >= 0 {
			latest = slices.Delete(latest, i, i+1)
		} else if len(latest) == 7 {
			latest = latest[1:]
		}
		latest = append(latest, key)
		if got := l.touch(key); got != (i >= 0) {
			t.Fatalf("step %d: touch(%s) = %v, want %v", step, key, got, i >= 0)
		}
	}
}

func TestFlagsThatCannotBeUsedAreAllNamed(t *testing.T) {
	const hint = "(-h explains the flags)\n"
	for _, tc := range []struct{ args, want string }{
		{"-objects 99", "affinity: -objects is \"99\", want a whole number from 100 to 100000\n"},
		{"-objects 1e3 -seed -1", "affinity: -objects is \"1e3\", want a whole number from 100 to 100000\n" +
			"affinity: -seed is \"-1\", want a whole number from 0 to 18446744073709551615\n"},
		{"-seed 3 now", "affinity: there is an argument \"now\", want flags alone\n"},
		{"-speed 3", "affinity: flag provided but not defined: -speed\n"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(strings.Fields(tc.args), &stdout, &stderr)
		if status != 2 || stdout.Len() > 0 || stderr.String() != tc.want+hint {
			t.Errorf("%s: status %d, stdout %q, stderr\n%s\nwant status 2 and\n%s", tc.args, status, &stdout, &stderr, tc.want+hint)
		}
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-h"}, &stdout, &stderr); status != 0 || stderr.Len() > 0 || !strings.Contains(stdout.String(), "default 2000") {
		t.Errorf("-h: status %d, stdout %q, stderr %q", status, &stdout, &stderr)
	}
}
