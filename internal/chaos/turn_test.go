//go:build unix

package chaos

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// turn lets one request at a time be worked on, and knows what that took.
type turn struct {
	free chan struct{} // full while somebody has it
	last time.Time     // when it was given back last; whose turn it is reads and writes it
	from time.Time     // since when it counts as taken
	done atomic.Int64
	took atomic.Int64 // ns
}

func newTurn() turn { return turn{free: make(chan struct{}, 1)} }

// take waits for the turn. What passes between two requests that wait for it counts for the
// latter.
func (t *turn) take(ctx context.Context) error {
	came := time.Now()
	select {
	case t.free <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.from = came; t.last.After(came) {
		t.from = t.last
	}
	return nil
}

func (t *turn) give() {
	t.last = time.Now()
	t.done.Add(1)
	t.took.Add(int64(t.last.Sub(t.from)))
	<-t.free
}

// String is how many requests are done and how many nanoseconds that took.
func (t *turn) String() string { return fmt.Sprint(t.done.Load(), " ", t.took.Load()) }

// spent is what has been done by a port that does one request at a time.
type spent struct{ done, took int64 }

// capacity is what the servers to which nothing happens have done so far; nothing if they do any
// number of requests at a time.
func (r *run) capacity(t *testing.T) (all map[string]spent) {
	t.Helper()
	all = map[string]spent{}
	if !r.single {
		return all
	}
	for _, s := range r.fleet[r.bad:] {
		h, g := s.spent(t)
		all["http"] = spent{all["http"].done + h.done, all["http"].took + h.took}
		all["grpc"] = spent{all["grpc"].done + g.done, all["grpc"].took + g.took}
	}
	return all
}

// possibly is which part of the requests could succeed, by the time that each took the servers
// meanwhile.
func (r *run) possibly(before, after map[string]spent) map[string]float64 {
	possible := map[string]float64{}
	for adapter, a := range after {
		b := before[adapter]
		each := time.Duration((a.took - b.took) / max(a.done-b.done, 1))
		possible[adapter] = min(1, float64(r.size-r.bad)/each.Seconds()/r.rate)
	}
	return possible
}
