// Command connect shows connect-go's clients over httpclient.Transport, which is all that it takes: a Transport is
// the one of an http.Client, and a connect.Client takes any of those.
//
//	cd examples/connect && go run .
//
// Three backends on this machine serve unary calls and server streams over HTTP/2 without TLS. Two clients call them
// at the same time, while one backend is restarted. The first client goes by load, which is the default, and nobody
// tells it: what is under way ends where it is, and what that backend refuses goes to another one. The second one sends
// each user to a backend of its own, by a header, and checks backends: it knows when one is about to leave, whose users
// go elsewhere, and when it is back, and so are they. No call fails.
//
// The clients are in client.go. It is a module of its own, so that nobody who imports Evenkeel gets connect-go.
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

	"github.com/evenkeel/evenkeel/httpclient"
)

// settings are how long things take.
type settings struct {
	around time.Duration // before the restart, and after it
	notice time.Duration // from the first failed check to the end of the backend
	away   time.Duration // until it is started again
	back   time.Duration // until its users are back, at most
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with everything that it takes from the process passed in. It returns the exit status: 2
// for wrong flags, 1 if a call failed, or anything else.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("connect", flag.ContinueOnError)
	flags.SetOutput(stderr)
	s := settings{around: time.Second, notice: 1500 * time.Millisecond, away: 300 * time.Millisecond, back: 10 * time.Second}
	flags.DurationVar(&s.around, "around", time.Second, "how long calls are made before the restart and after it, 100ms at least")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case s.around < 100*time.Millisecond || flags.NArg() > 0:
		fmt.Fprintf(stderr, "connect: -around is %v, want 100ms at least, and there are %d arguments, want flags alone\n", s.around, flags.NArg())
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	clients, err := compare(ctx, s, stdout)
	if err == nil {
		fmt.Fprint(stdout, report(clients))
		err = problem(clients)
	}
	if err != nil {
		fmt.Fprintf(stderr, "connect: %v\n", err)
		return 1
	}
	return 0
}

// restarted is the backend that is.
const restarted = 1

// compare starts everything, restarts a backend under load, and stops everything.
func compare(ctx context.Context, s settings, stdout io.Writer) (_ []*client, err error) {
	var backends []*backend
	defer func() {
		for _, b := range backends {
			err = errors.Join(err, b.stop())
		}
	}()
	var list httpclient.Static // stands for DNS
	for i := range 3 {
		b := newBackend(fmt.Sprint("backend ", i+1))
		if err := b.start(); err != nil {
			return nil, err
		}
		backends = append(backends, b)
		list = append(list, httpclient.Address{Addr: b.addr})
	}
	clients := []*client{newClient("by load", byLoad(list)), newClient("by user", byUser(list))}
	for _, c := range clients {
		c.begin()
		defer c.stop()
	}
	wait(ctx, s.around)
	b := backends[restarted]
	b.leaving.Store(true)
	fmt.Fprintf(stdout, "%s is about to leave, and says so when it is checked.\n", b.name)
	wait(ctx, s.notice)
	if err := b.stop(); err != nil {
		return nil, err
	}
	fmt.Fprintf(stdout, "It is gone.\n")
	wait(ctx, s.away)
	if err := b.start(); err != nil {
		return nil, err
	}
	fmt.Fprintf(stdout, "It is back.\n")
	within, cancel := context.WithTimeout(ctx, s.back)
	defer cancel()
	for clients[1].strangers() > 0 && within.Err() == nil {
		wait(within, 20*time.Millisecond)
	}
	if within.Err() == nil {
		fmt.Fprintf(stdout, "Its users are, too.\n")
	}
	wait(ctx, s.around)
	for _, c := range clients {
		c.stop()
	}
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	return clients, nil
}

// wait waits for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
