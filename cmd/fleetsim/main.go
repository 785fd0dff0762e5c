package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with what it takes from the process passed in. It returns the exit
// status: 2 for wrong flags, 1 for anything else that fails.
func run(args []string, stdout, stderr io.Writer) int {
	if wantsSubsets(args) {
		return runSubsets(args, stdout, stderr)
	}
	s, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage())
		return 0
	case errors.Is(err, errList):
		fmt.Fprint(stdout, presetList())
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "%v\n(-h explains the flags)\n", err)
		return 2
	}
	p := newPlan(s)
	shown := &progress{out: stderr, redraw: isTerminal(stderr), now: time.Now}
	o, err := p.simulate(runtime.GOMAXPROCS(0), shown)
	if err != nil {
		fmt.Fprintf(stderr, "fleetsim: %v\n", err)
		return 1
	}
	return show(newReport(p, o), stdout, stderr)
}

// show writes page and table and returns the exit status.
func show(r *report, stdout, stderr io.Writer) int {
	// The page comes first: who reads only the beginning of the table ends the process.
	pageErr := writePage(r)
	text := table(r)
	if r.html != "" && pageErr == nil {
		text += fmt.Sprintf("\nThe page with the charts is %s.\n", r.html)
	}
	status := 0
	if _, err := io.WriteString(stdout, text); err != nil {
		fmt.Fprintf(stderr, "fleetsim: writing the table: %v\n", err)
		status = 1
	}
	if pageErr != nil {
		fmt.Fprintf(stderr, "fleetsim: writing -html: %v\n", pageErr)
		status = 1
	}
	return status
}
