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
	r := newReport(p, o)
	fmt.Fprint(stdout, table(r))
	if s.html == "" {
		return 0
	}
	text, err := page(r)
	if err == nil {
		err = os.WriteFile(s.html, text, 0o666)
	}
	if err != nil {
		fmt.Fprintf(stderr, "fleetsim: writing -html: %v\n", err)
		return 1
	}
	fmt.Fprintf(stdout, "\nThe page with the charts is %s.\n", s.html)
	return 0
}
