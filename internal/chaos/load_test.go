//go:build unix

package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// sample is what became of one request. Instants count from the load's beginning.
type sample struct {
	start, end time.Duration
	addr       string // where it went, "" if that is not known
	failure    string // "" for none
}

// load sends requests at random instants, whatever becomes of them.
type load struct {
	began  time.Time
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu      sync.Mutex
	samples []sample // in the order of their ends
}

// startLoad sends rate requests a second until stop is called.
func startLoad(c *client, rate float64, seed uint64) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{began: time.Now(), cancel: cancel}
	l.all.Go(func() {
		random := rand.New(rand.NewPCG(seed, 1))
		var due time.Duration
		for {
			due += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
			if pass(ctx, time.Until(l.began.Add(due))) != nil {
				return
			}
			l.all.Go(func() { l.request(c) })
		}
	})
	return l
}

// request sends one request, which its deadline alone ends early.
func (l *load) request(c *client) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	s := sample{start: time.Since(l.began)}
	s.addr, s.failure = c.call(ctx)
	s.end = time.Since(l.began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.samples = append(l.samples, s)
}

// stop waits for the requests that are under way.
func (l *load) stop() {
	l.cancel()
	l.all.Wait()
}

// seen returns what is known by now.
func (l *load) seen() samples {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.samples)
}

// now is the present instant.
func (l *load) now() time.Duration { return time.Since(l.began) }
