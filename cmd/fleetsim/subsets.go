package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// subsetsPreset is the preset that simulates no requests: it counts connections.
const subsetsPreset = "subsets"

// subsetsLine is its line of the list.
const subsetsLine = "what part of 300 backends each of 300 clients connects to, for every algorithm; " +
	"with -clients, -endpoints, -size, -seeds and -seed alone"

// maxConnections bounds the connections of all clients to all endpoints, which is what
// a table's time goes by.
const maxConnections = 25_000_000

// subsetsSettings is what the flags of the preset say.
type subsetsSettings struct {
	clients, endpoints, size, seeds, seed int
}

// wantsSubsets reports whether the last -preset of the arguments is that of subsets.
func wantsSubsets(args []string) bool {
	wanted := false
	for i, a := range args {
		name, value, joined := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if a == name || name != "preset" {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		wanted = value == subsetsPreset
	}
	return wanted
}

// runSubsets is run for the preset of subsets.
func runSubsets(args []string, stdout, stderr io.Writer) int {
	s, err := parseSubsets(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(stderr, "%v\n(-preset %s takes -clients, -endpoints, -size, -seeds and -seed)\n", err, subsetsPreset)
		return 2
	}
	text := wrap("-preset " + subsetsPreset + ": " + subsetsLine + ".")
	if err == nil {
		var table string
		if table, err = subsetsTable(s, runtime.GOMAXPROCS(0)); err != nil {
			fmt.Fprintf(stderr, "fleetsim: %v\n", err)
			return 1
		}
		text = table
	}
	if _, err := io.WriteString(stdout, text); err != nil {
		fmt.Fprintf(stderr, "fleetsim: writing the table: %v\n", err)
		return 1
	}
	return 0
}

// parseSubsets reads the flags and tells every problem that they have.
func parseSubsets(args []string) (subsetsSettings, error) {
	s := subsetsSettings{}
	set := flag.NewFlagSet("fleetsim", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.String("preset", subsetsPreset, "")
	numbers := []struct {
		name              string
		at                *int
		initial, low, top int
	}{
		{"clients", &s.clients, 300, 1, 100_000},
		{"endpoints", &s.endpoints, 300, 2, 10_000},
		{"size", &s.size, 10, 1, 10_000},
		{"seeds", &s.seeds, 3, 1, 1000},
		{"seed", &s.seed, 1, 0, 1 << 30},
	}
	for _, n := range numbers {
		set.IntVar(n.at, n.name, n.initial, "")
	}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, fmt.Errorf("fleetsim: %w", err)
	}
	var problems []error
	if rest := set.Args(); len(rest) > 0 {
		problems = append(problems, fmt.Errorf("fleetsim: there is an argument %q, want flags alone", strings.Join(rest, " ")))
	}
	for _, n := range numbers {
		if *n.at < n.low || *n.at > n.top {
			problems = append(problems, fmt.Errorf("fleetsim: -%s is %d, want a whole number from %d to %d", n.name, *n.at, n.low, n.top))
		}
	}
	if len(problems) == 0 && s.clients > maxConnections/s.endpoints {
		problems = append(problems, fmt.Errorf("fleetsim: -clients is %d with %d -endpoints, want at most %d of their product",
			s.clients, s.endpoints, maxConnections))
	}
	return s, errors.Join(problems...)
}
