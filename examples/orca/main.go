// Command orca shows what balancing by load reports is worth where no client can see the load. Three
// HTTP servers on this machine have room for 2, 6 and 12 requests at once, and all but the first are
// busy with work that no client knows of. Twenty clients send 35 requests a second each: too
// few for any of them to see who is busy. They go by least request, and then by the capacity that
// the servers report.
//
//	go run ./examples/orca
//
// The servers are in backend.go: what it takes to report is a Tracker, a Handler, and a function that
// knows the utilization. What it takes to use the reports is the configuration below.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/picker"
)

// contenders are the ways to balance, in the order in which they are tried.
var contenders = []struct {
	name   string
	config evenkeel.Config
}{
	{"least request", evenkeel.Config{Policy: picker.P2C{Signal: picker.InFlight}}},
	{"reported load", evenkeel.Config{
		Policy: picker.WeightedRoundRobin{},
		Reports: &evenkeel.ReportsConfig{
			Weights: evenkeel.ReportedWeights,
			// A service would leave the ten seconds in which new endpoints are not believed yet.
			Weight: orca.WeightConfig{Blackout: time.Second},
		},
	}},
}

// settings are what the flags say.
type settings struct {
	clients int
	rate    float64 // requests a second, of all clients together
	warmUp  time.Duration
	measure time.Duration
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with everything that it takes from the process passed in. It returns the exit status: 2
// for wrong flags, 1 for anything else that fails.
func run(args []string, stdout, stderr io.Writer) int {
	s, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "%v\n(-h explains the flags)\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprint(stdout, introduction(s))
	for _, c := range contenders {
		f, err := try(ctx, s, c.config)
		if err != nil {
			fmt.Fprintf(stderr, "orca: %s: %v\n", c.name, err)
			return 1
		}
		fmt.Fprint(stdout, f.row(c.name))
	}
	fmt.Fprint(stdout, wanted(s))
	return 0
}

const usage = `usage: go run ./examples/orca [flags]

  -clients n   how many clients there are, 1 to 1000 (20)
  -rate r      requests a second, of all clients together, 1 to 1200 (700)
  -time d      how long each way is measured, 1s to 10m, after as long to settle, 3s at least (6s)
`

func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("orca", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.clients, "clients", 20, "")
	flags.Float64Var(&s.rate, "rate", 700, "")
	flags.DurationVar(&s.measure, "time", 6*time.Second, "")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var problems []error
	if s.clients < 1 || s.clients > 1000 {
		problems = append(problems, fmt.Errorf("orca: -clients is %d, want 1 to 1000", s.clients))
	}
	if !(s.rate >= 1 && s.rate <= 1200) {
		problems = append(problems, fmt.Errorf("orca: -rate is %v, want 1 to 1200: the servers have room for 1,500 a second", s.rate))
	}
	if s.measure < time.Second || s.measure > 10*time.Minute {
		problems = append(problems, fmt.Errorf("orca: -time is %v, want 1s to 10m", s.measure))
	}
	if flags.NArg() > 0 {
		problems = append(problems, fmt.Errorf("orca: argument %q is none of the flags", flags.Arg(0)))
	}
	s.warmUp = max(s.measure, 3*time.Second)
	return s, errors.Join(problems...)
}
