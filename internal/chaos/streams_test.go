//go:build unix

package chaos

import (
	"context"
	"sync"
	"time"
)

const (
	// pieceEvery is the time between two pieces of a long answer.
	pieceEvery = 100 * time.Millisecond
	// silence is how long a client waits for a piece, or for a long answer to begin, before it asks anew.
	silence = time.Second
)

// keeper keeps streams under way: it asks anew at once for one that breaks or falls silent.
type keeper struct {
	began  time.Time
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	breaks samples
}

// keep keeps n streams of a client under way until stop is called.
func keep(c *client, n int) *keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{began: time.Now(), cancel: cancel}
	for range n {
		k.all.Go(func() { k.one(ctx, c) })
	}
	return k
}

// one keeps one stream under way.
func (k *keeper) one(ctx context.Context, c *client) {
	var broken *sample
	for ctx.Err() == nil {
		addr, last, err := k.follow(ctx, c, func() {
			if broken != nil {
				broken.end = time.Since(k.began)
				k.note(*broken)
				broken = nil
			}
		})
		if broken == nil && ctx.Err() == nil {
			broken = &sample{start: last, addr: addr, failure: err.Error()}
		}
		_ = pass(ctx, pieceEvery/10)
	}
	if broken != nil { // it never went on
		broken.end = time.Since(k.began)
		k.note(*broken)
	}
}

func (k *keeper) note(s sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.breaks = append(k.breaks, s)
}

// follow opens a stream and reads it to its end, and returns the instant of its last piece.
func (k *keeper) follow(ctx context.Context, c *client, piece func()) (addr string, last time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alarm := time.AfterFunc(silence, cancel)
	defer alarm.Stop()
	last = time.Since(k.began)
	s, err := c.open(ctx, pieceEvery)
	if err != nil {
		return "", last, err
	}
	for err = s.next(); err == nil; err = s.next() {
		alarm.Reset(silence)
		last = time.Since(k.began)
		piece()
	}
	return s.addr, last, err
}

// stop ends all streams.
func (k *keeper) stop() {
	k.cancel()
	k.all.Wait()
}

// seen are the breaks so far, by another clock.
func (k *keeper) seen(began time.Time) samples {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.breaks.since(began.Sub(k.began))
}
