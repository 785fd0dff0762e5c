// Command server is the server side of the gRPC example: replicas of a service, and the DNS server that knows
// them. See the command client.
//
//	go run ./examples/grpc/server            three replicas, and a fourth after 20 seconds
//
// It needs the addresses 127.0.0.2 and so on, which Linux has by itself; elsewhere -replicas 1 -more 0 does without.
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

	"github.com/evenkeel/evenkeel/examples/grpc/deployment"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with everything that it takes from the process passed in. It returns the exit status: 2 for wrong
// flags, 1 for anything else that fails.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c deployment.Config
	f := flag.NewFlagSet("server", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&c.Port, "port", 50051, "of all replicas; 0 takes a free one")
	f.StringVar(&c.DNS, "dns", "127.0.0.1:5353", "where the DNS server listens")
	f.DurationVar(&c.MaxAge, "max-age", 10*time.Second, "of connections")
	f.DurationVar(&c.Work, "work", 5*time.Millisecond, "how long the first replica takes over a call; each further one takes half as long again")
	replicas := f.Int("replicas", 3, "to begin with, 1 to 100")
	more := f.Int("more", 1, "replicas that come later, 0 to 100")
	after := f.Duration("after", 20*time.Second, "which is when")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *replicas < 1 || *replicas > 100 || *more < 0 || *more > 100:
		fmt.Fprintf(stderr, "server: -replicas is %d and -more %d, want 1 to 100 and 0 to 100\n", *replicas, *more)
		return 2
	}
	if err := serve(ctx, c, *replicas, *more, *after, stdout); err != nil {
		fmt.Fprintf(stderr, "server: %v\n", err)
		return 1
	}
	return 0
}

// serve runs the deployment until the context is done.
func serve(ctx context.Context, c deployment.Config, replicas, more int, after time.Duration, stdout io.Writer) (err error) {
	d, err := deployment.Start(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	add := func(n int) error {
		for range n {
			addr, err := d.Add()
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "a replica serves on %s\n", addr)
		}
		return nil
	}
	if err := add(replicas); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "clients dial %s\n", d.Target())
	later := time.NewTimer(after)
	defer later.Stop()
	for {
		select {
		case <-later.C:
			if err := add(more); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
