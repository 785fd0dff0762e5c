// Command quickstart shows what Evenkeel does on a bad day. It starts two fleets of ten
// gRPC servers and two of ten HTTP servers on this machine, makes one server of each
// fleet slow and another one fail for a while, and sends the same requests through
// round robin and through Evenkeel, each on a fleet of its own.
//
//	go run ./examples/quickstart
//
// The two clients of each kind are in grpc.go and http.go; the rest is what it takes
// to compare them.
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
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with everything that it takes from the process passed in. It returns
// the exit status: 2 for wrong flags, 1 for anything else that fails.
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
	fmt.Fprint(stdout, wrap(introduction(s)), "\n")
	sent, err := compare(ctx, s, allLanes(), &progress{out: stdout, redraw: isTerminal(stdout)})
	if sent != nil {
		fmt.Fprint(stdout, "\n", report(sent))
	}
	if err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return 1
	}
	return 0
}

// compare gives each lane a fleet and a client, sends the load, and stops everything
// that it started. It returns the load if that got to its end; an error beside it is
// one of stopping.
func compare(ctx context.Context, s settings, lanes []*lane, p *progress) (sent *load, err error) {
	var cleanup []func() error
	defer func() {
		for i := len(cleanup) - 1; i >= 0; i-- {
			err = errors.Join(err, cleanup[i]())
		}
	}()
	for _, l := range lanes {
		if l.fleet, err = startFleet(l.serve); err != nil {
			return nil, fmt.Errorf("starting servers for %s: %w", l, err)
		}
		cleanup = append(cleanup, l.fleet.stop)
		call, hangUp, err := l.connect(ctx, l.fleet.addrs())
		if err != nil {
			return nil, fmt.Errorf("starting a client for %s: %w", l, err)
		}
		cleanup = append(cleanup, hangUp)
		l.call = call
	}
	d := newLoad(s, lanes)
	over := make(chan struct{})
	go func() {
		d.run(ctx)
		close(over)
	}()
	p.show(d, over)
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	return d, nil
}
