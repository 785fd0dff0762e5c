// Command http shows a reverse proxy that loses nothing while the servers behind it are deployed anew. It starts three
// backends and, before them, net/http's own ReverseProxy with an httpclient.Transport; sends requests through it,
// a quarter of them POSTs; and restarts each backend in turn meanwhile, as a rolling deployment does.
//
//	go run ./examples/http
//
// What makes a proxy of it is in proxy.go. What a server has to do to leave without harm is in backend.go: its health
// check fails first, for as long as it takes clients to notice. One that ends without a word costs no GET either,
// nor anything else of which nothing was sent: that goes to another backend.
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
)

// settings are what the flags say, and how long things take.
type settings struct {
	rate   float64       // requests a second
	rounds int           // restarts of each backend
	notice time.Duration // from the first failed check to the end of a backend
	away   time.Duration // until it is started again
	settle time.Duration // before the first restart, and after each
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with everything that it takes from the process passed in. It returns the exit status: 2
// for wrong flags, 1 if a request failed, or anything else.
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
	t, err := roll(ctx, s, stdout)
	if err == nil {
		fmt.Fprint(stdout, t.report())
		err = t.problem()
	}
	if err != nil {
		fmt.Fprintf(stderr, "http: %v\n", err)
		return 1
	}
	return 0
}

// roll starts everything, restarts each backend in turn under load, and stops everything.
func roll(ctx context.Context, s settings, stdout io.Writer) (t *tally, err error) {
	var backends []*backend
	defer func() {
		for _, b := range backends {
			err = errors.Join(err, b.stop())
		}
	}()
	for i := range 3 {
		b := newBackend(fmt.Sprint("backend ", i+1))
		if err := b.start(); err != nil {
			return nil, err
		}
		backends = append(backends, b)
	}
	p, err := startProxy(backends)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	fmt.Fprintf(stdout, "%s balances over three backends.\n\n", p.url)

	began := time.Now()
	say := func(b *backend, what string) {
		fmt.Fprintf(stdout, "%4.1f s  %s %s\n", time.Since(began).Seconds(), b.name, what)
	}
	l := startLoad(p.url, s.rate)
	defer l.stop()
	wait(ctx, s.settle)
	for range s.rounds {
		for _, b := range backends {
			b.leaving.Store(true)
			say(b, "is about to leave, and says so when it is checked")
			wait(ctx, s.notice)
			if err := b.stop(); err != nil {
				return nil, err
			}
			say(b, "is gone")
			wait(ctx, s.away)
			if err := b.start(); err != nil {
				return nil, err
			}
			say(b, "is back")
			wait(ctx, s.settle)
		}
	}
	l.stop()
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	return l.tally, nil
}

// wait waits for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

const usage = `usage: go run ./examples/http [flags]

  -rate r     requests a second, 1 to 1000 (300)
  -rounds n   how often each backend is restarted, 1 to 1000 (1)
`

func parseFlags(args []string) (settings, error) {
	s := settings{notice: time.Second, away: 300 * time.Millisecond, settle: 800 * time.Millisecond}
	flags := flag.NewFlagSet("http", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Float64Var(&s.rate, "rate", 300, "")
	flags.IntVar(&s.rounds, "rounds", 1, "")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var problems []error
	if !(s.rate >= 1 && s.rate <= 1000) {
		problems = append(problems, fmt.Errorf("http: -rate is %v, want 1 to 1000", s.rate))
	}
	if s.rounds < 1 || s.rounds > 1000 {
		problems = append(problems, fmt.Errorf("http: -rounds is %d, want 1 to 1000", s.rounds))
	}
	if flags.NArg() > 0 {
		problems = append(problems, fmt.Errorf("http: argument %q is none of the flags", flags.Arg(0)))
	}
	return s, errors.Join(problems...)
}
