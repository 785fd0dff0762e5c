// Command affinity shows what sending each key to one backend is worth to a cache. Ten
// HTTP servers on this machine each remember the last few hundred objects that they were
// asked for. A client asks for more objects than one of them can hold, an eleventh server
// joins, and it asks again: in turn, by modulo hashing, and by consistent
// hashing.
//
//	go run ./examples/affinity
//
// The client is in client.go, modulo hashing, as a policy of one's own, in modulo.go; the
// rest is what it takes to compare them.
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
	fmt.Fprint(stdout, introduction(s))
	for _, c := range contenders {
		f, err := measure(ctx, s, c)
		if err != nil {
			fmt.Fprintf(stderr, "affinity: %s: %v\n", c.name, err)
			return 1
		}
		fmt.Fprint(stdout, f.row(c.name))
	}
	fmt.Fprint(stdout, explanation)
	return 0
}

// measure gives a policy a tier of caches and a client of its own, and lets the tier grow
// under it.
func measure(ctx context.Context, s settings, c contender) (f figures, err error) {
	t, err := startTier(before+1, s.cache)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	cl := newClient(t, c.policy)
	defer cl.close()
	order := newOrder(s)
	if err := cl.roster.set(before); err != nil {
		return f, err
	}
	warm, err := cl.round(ctx, order.next())
	if err != nil {
		return f, err
	}
	if f.before, err = cl.round(ctx, order.next()); err != nil {
		return f, err
	}
	if err := cl.roster.set(before + 1); err != nil {
		return f, err
	}
	if f.during, err = cl.round(ctx, order.next()); err != nil {
		return f, err
	}
	f.after, err = cl.round(ctx, order.next())
	f.moved = f.during.elsewhere(warm)
	return f, err
}
