package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// settings are the sizes of a run.
type settings struct {
	parts  []string
	rounds int   // of calls over loopback
	calls  int   // of each policy in one of them
	picks  int   // in one sample
	starts []int // numbers of endpoints
	real   int   // endpoints on a real channel
	full   bool
}

var allParts = []string{"pick", "rpc", "start", "change", "real"}

func main() {
	if len(os.Args) == 2 && os.Args[1] == serveArg {
		if err := serveUntilEOF(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with what it takes from the process. It returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	s := settings{starts: []int{1000, 3000}}
	var parts string
	f := flag.NewFlagSet("grpcgoals", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&parts, "parts", strings.Join(allParts, ","), "what to measure")
	f.IntVar(&s.rounds, "rounds", 30, "rounds of calls over loopback, of all policies by turns")
	f.IntVar(&s.calls, "calls", 2000, "calls of each policy in a round")
	f.IntVar(&s.picks, "picks", 200_000, "picks in a sample")
	f.IntVar(&s.real, "real", 3000, "endpoints on a real channel")
	f.BoolVar(&s.full, "full", false, "with round_robin's start of 10,000 endpoints")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	s.parts = strings.Split(parts, ",")
	for _, name := range s.parts {
		if !slices.Contains(allParts, name) {
			fmt.Fprintf(stderr, "grpcgoals: no part %q, want some of %v\n", name, allParts)
			return 2
		}
	}
	fmt.Fprintf(stdout, "%s %s/%s, %d CPUs, grpc %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), grpcVersion())
	measures := []func(settings, io.Writer) error{picks, calls, starts, changes, realStarts}
	for i, name := range allParts {
		if !slices.Contains(s.parts, name) {
			continue
		}
		if err := measures[i](s, stdout); err != nil {
			fmt.Fprintf(stderr, "grpcgoals: %s: %v\n", name, err)
			return 1
		}
	}
	return 0
}
