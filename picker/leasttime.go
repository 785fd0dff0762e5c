package picker

import (
	"sync"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// LeastTime is the signal of NGINX's least_time: average response time × (requests in
// flight + 1), with averages rounded up to 20 ms so that nearly equal endpoints share
// equally, and those above 5 s taken for equal, so that it becomes least connections.
// Only answers without failure count for the average, and failures count for nothing: one
// that fails from the start is the fastest, as in NGINX without its other rules. Use it with [Least] for what NGINX does; the averages take a lock.
//
// Left out: NGINX's separate average of in-flight times. The mean age of unanswered
// requests counts where it exceeds the average.
type LeastTime struct{}

const (
	leastTimeBucket = 20 * time.Millisecond
	leastTimeCap    = 5 * time.Second
	// leastTimeHalving is how often an unused endpoint's average is halved, so that it
	// is tried again: NGINX's default fail_timeout.
	leastTimeHalving = 10 * time.Second
)

// Needs returns what the signal reads.
func (LeastTime) Needs() Need { return NeedAge | NeedEstimator }

// NewEstimator implements Estimating.
func (LeastTime) NewEstimator() Estimator { return &leastTimeAverage{} }

// CountsInFlight implements CountsInFlight.
func (LeastTime) CountsInFlight() {}

// Cost implements Signal.
func (LeastTime) Cost(r *Record, now int64) int64 {
	lg, known := r.ownLog2(now)
	ns := time.Duration(0)
	if known {
		ns = time.Duration(ewma.Exp2(lg) + 0.5)
	}
	if a, ok := r.AgeLog2(now); ok {
		ns = max(ns, time.Duration(ewma.Exp2(a)))
	}
	buckets := min((ns+leastTimeBucket-1)/leastTimeBucket, leastTimeCap/leastTimeBucket)
	return ewma.Log2(uint64(max(buckets, 1))) + ewma.Log2(uint64(r.InFlight())+1)
}

// leastTimeAverage is avg ← (x + 19·avg)/20 in whole milliseconds, as NGINX keeps it.
type leastTimeAverage struct {
	mu    sync.Mutex
	ms    int64
	at    int64
	known bool
}

func (a *leastTimeAverage) Observe(x, now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ms := max(x, 0) / int64(time.Millisecond)
	if a.known {
		ms = (ms + 19*a.ms) / 20
	}
	a.ms, a.at, a.known = ms, max(now, a.at), true
}

func (a *leastTimeAverage) Log2(now int64) (lg int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		return 0, false
	}
	halvings := max(now-a.at, 0) / int64(leastTimeHalving)
	return ewma.LatencyLog2((a.ms * int64(time.Millisecond)) >> min(halvings, 62)), true
}
