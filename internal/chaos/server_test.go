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
	modes
)

func (m mode) String() string {
	return [modes]string{"work", "slow", "fail", "overload", "hang", "reset"}[m]
}

// comeAgain is when an overloaded server wants to be asked again.
const comeAgain = time.Second

// Work takes this long, and up to so much longer.
const (
	leastWork = 20 * time.Millisecond
	moreWork  = 30 * time.Millisecond
)

// behaviour is a server's present mode, and how long its work takes.
type behaviour struct {
	mode   atomic.Int32
	single atomic.Bool // it does one request at a time
	turn   chan struct{}
	mu     sync.Mutex
	random *rand.Rand
}

// act takes the time that a request takes, and says how it is to be answered; an error if the client
// left meanwhile.
func (b *behaviour) act(ctx context.Context) (mode, error) {
	if b.single.Load() {
		select {
		case b.turn <- struct{}{}:
			defer func() { <-b.turn }()
		case <-ctx.Done():
			return work, ctx.Err()
		}
	}
	m := mode(b.mode.Load())
	b.mu.Lock()
	took := leastWork + time.Duration(b.random.Int64N(int64(moreWork)))
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
	}
	return m, pass(ctx, took)
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
	b := &behaviour{turn: make(chan struct{}, 1), random: rand.New(rand.NewPCG(1, 1))}
	doors := []*door{
		{addr: httpAddr, speak: b.speakHTTP},
		{addr: grpcAddr, speak: b.speakGRPC},
	}
	answer := func(err error) {
		if err != nil {
			fmt.Println("error:", err)
		} else {
			fmt.Println("ok")
		}
	}
	answer(each(doors, (*door).open))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer(b.obey(lines.Text(), doors))
	}
	return 0
}

// obey follows one line.
func (b *behaviour) obey(line string, doors []*door) error {
	switch line {
	case "open":
		return each(doors, (*door).open)
	case "mute":
		return each(doors, (*door).mute)
	case "one at a time":
		b.single.Store(true)
		return nil
	case "refuse":
		for _, d := range doors {
			d.close()
		}
		return nil
	}
	for m := range modes {
		if line == m.String() {
			b.mode.Store(int32(m))
			return nil
		}
	}
	return fmt.Errorf("no such order: %q", line)
}

func each(doors []*door, do func(*door) error) error {
	for _, d := range doors {
		if err := do(d); err != nil {
			return err
		}
	}
	return nil
}
