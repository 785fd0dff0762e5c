//go:build unix

package chaos

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// serverEnv makes a process of the test binary a server; it holds the addresses of its HTTP and
// gRPC ports.
const serverEnv = "EVENKEEL_CHAOS_SERVER"

// mode is how requests are answered.
type mode int32

const (
	work     mode = iota // 20 to 50 ms, then well
	slow                 // ten times that
	fail                 // an error of its own after 1 ms
	overload             // 429 and its like at once, and when to come again
	hang                 // never
	reset                // half of an answer, then a TCP reset
	gather               // none before the mode is another one, then well
	modes
)

func (m mode) String() string {
	return [modes]string{"work", "slow", "fail", "overload", "hang", "reset", "gather"}[m]
}

// comeAgain is when an overloaded server wants to be asked again.
const comeAgain = time.Second

// grace is how long a server that leaves gives its clients.
const grace = 300 * time.Millisecond

// Work takes this long, and up to so much longer.
const (
	leastWork = 20 * time.Millisecond
	moreWork  = 30 * time.Millisecond
)

// behaviour is a server's present mode, and how long its work takes.
type behaviour struct {
	mode              atomic.Int32
	single            atomic.Bool  // it does one request at a time at each port
	requests, streams atomic.Int32 // that it holds at present
	checks            atomic.Int32 // that were answered well since somebody asked
	http, grpc        turn

	mu       sync.Mutex
	random   *rand.Rand
	gathered chan struct{} // closed when the mode gather ends
}

// act takes the time that a request takes, and says how it is to be answered; an error if the client
// left meanwhile. Single servers work in turns.
func (b *behaviour) act(ctx context.Context, t *turn) (mode, error) {
	b.requests.Add(1)
	defer b.requests.Add(-1)
	if b.single.Load() {
		if err := t.take(ctx); err != nil {
			return work, err
		}
		defer t.give()
	}
	m := mode(b.mode.Load())
	b.mu.Lock()
	took := leastWork + time.Duration(b.random.Int64N(int64(moreWork)))
	gathered := b.gathered
	b.mu.Unlock()
	switch m {
	case slow:
		took *= 10
	case fail:
		took = time.Millisecond
	case overload:
		return m, nil
	case hang:
		<-ctx.Done()
		return m, ctx.Err()
	case gather:
		select {
		case <-gathered:
			return work, nil
		case <-ctx.Done():
			return m, ctx.Err()
		}
	}
	return m, pass(ctx, took)
}

// stream sends a piece of a long answer now and then until the client leaves. When the server hangs
// it says nothing any more.
func (b *behaviour) stream(ctx context.Context, every time.Duration, send func() error) error {
	b.streams.Add(1)
	defer b.streams.Add(-1)
	for {
		if mode(b.mode.Load()) == hang {
			<-ctx.Done()
			return ctx.Err()
		}
		if err := send(); err != nil {
			return err
		}
		if err := pass(ctx, every); err != nil {
			return err
		}
	}
}

// be changes the mode.
func (b *behaviour) be(m mode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if was := mode(b.mode.Swap(int32(m))); was == gather && m != gather {
		close(b.gathered)
		b.gathered = make(chan struct{})
	}
}

// pass waits for d, or until ctx is done.
func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beServer serves until standard input ends, and does what it is told there, a line each. It
// answers each line, and begins with one when it is ready. It returns the exit code.
func beServer(ports string) int {
	httpAddr, grpcAddr, _ := strings.Cut(ports, " ")
	b := &behaviour{random: rand.New(rand.NewPCG(1, 1)), gathered: make(chan struct{}), http: newTurn(), grpc: newTurn()}
	doors := []*door{
		{addr: httpAddr, speak: b.speakHTTP},
		{addr: grpcAddr, speak: b.speakGRPC},
	}
	answer := func(what string, err error) {
		if err != nil {
			fmt.Println("error:", err)
		} else {
			fmt.Println("ok", what)
		}
	}
	answer("", each(doors, (*door).open))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer(b.obey(lines.Text(), doors))
	}
	return 0
}

// obey follows one line, and says what there is to say.
func (b *behaviour) obey(line string, doors []*door) (answer string, err error) {
	switch line {
	case "open":
		return "", each(doors, (*door).open)
	case "mute":
		return "", each(doors, (*door).mute)
	case "one at a time":
		b.single.Store(true)
		return "", nil
	case "refuse":
		return "", each(doors, func(d *door) error { d.close(0); return nil })
	case "leave":
		return "", each(doors, func(d *door) error { d.close(grace); return nil })
	case "spent":
		return fmt.Sprint(b.http.String(), " ", b.grpc.String()), nil
	case "checks":
		return fmt.Sprint(b.checks.Swap(0)), nil
	case "held":
		return fmt.Sprint(b.requests.Load(), " ", b.streams.Load()), nil
	}
	for m := range modes {
		if line == m.String() {
			b.be(m)
			return "", nil
		}
	}
	return "", fmt.Errorf("no such order: %q", line)
}

func each(doors []*door, do func(*door) error) error {
	for _, d := range doors {
		if err := do(d); err != nil {
			return err
		}
	}
	return nil
}
