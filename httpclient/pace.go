package httpclient

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// pace is how long a target's answers take to their headers, over all its endpoints, in the last ten to twenty seconds. Many
// requests write to it: of a busy target a part is enough.
type pace struct {
	windows [2]paceWindow
	current atomic.Uint32 // the window that is written to

	// Of both windows, as of the last sweep; 0: too few answers.
	median  atomic.Int64
	backup  atomic.Int64 // the quantile that hedges wait for
	onHeavy atomic.Bool  // hedging is not worth it

	turned time.Time // when current began; guarded by the group's mu
}

type paceWindow struct {
	n      atomic.Uint32
	heavy  atomic.Uint32 // of them with bodies that are too big to be had twice
	counts [paceBuckets]atomic.Uint32
}

const (
	paceWindowTime = 10 * time.Second
	paceAll        = 512 // so many answers are taken in full
	paceOneIn      = 8   // and then a part
	paceEnough     = 32  // fewer say nothing of a quantile
	// Buckets have eight to an octave, so that what they tell is at most an eighth too long, from 1 µs to 18 minutes.
	paceParts   = 8
	paceLow     = 10 // log2 of the shortest time in ns
	paceHigh    = 40
	paceBuckets = (paceHigh - paceLow) * paceParts
	// A target is heavy if one in so many answers is.
	heavyOneIn = 4
)

// wants reports whether the next answer is to be measured.
func (p *pace) wants() bool {
	return p.windows[p.current.Load()&1].n.Load() < paceAll || rand.Uint32()%paceOneIn == 0
}

// add takes one answer's time, or what a try had waited for when it was given up.
func (p *pace) add(d time.Duration, heavy bool) {
	w := &p.windows[p.current.Load()&1]
	w.counts[paceBucket(d)].Add(1)
	if heavy {
		w.heavy.Add(1)
	}
	w.n.Add(1)
}

func paceBucket(d time.Duration) int {
	v := uint64(max(d, 1<<paceLow))
	octave := bits.Len64(v) - 1
	part := int(v>>(octave-3)) & (paceParts - 1)
	return min((octave-paceLow)*paceParts+part, paceBuckets-1)
}

// paceEdge is the time that all in bucket i are below.
func paceEdge(i int) time.Duration {
	octave, part := i/paceParts+paceLow, i%paceParts
	return time.Duration(1)<<octave + time.Duration(part+1)<<(octave-3)
}

// sweep works out what requests go by, and turns the page when it is time.
func (p *pace) sweep(now time.Time, quantile float64) {
	var sum [paceBuckets]uint64
	var n, heavy uint64
	for w := range p.windows {
		for i := range sum {
			count := uint64(p.windows[w].counts[i].Load())
			sum[i] += count
			n += count
		}
		heavy += uint64(p.windows[w].heavy.Load())
	}
	p.median.Store(int64(paceQuantile(&sum, n, 0.5)))
	p.backup.Store(int64(paceQuantile(&sum, n, quantile)))
	p.onHeavy.Store(n >= paceEnough && heavy*heavyOneIn >= n)
	switch {
	case p.turned.IsZero():
		p.turned = now
	case now.Sub(p.turned) >= paceWindowTime:
		p.turned = now
		next := (p.current.Load() + 1) & 1
		w := &p.windows[next]
		for i := range w.counts {
			w.counts[i].Store(0)
		}
		w.heavy.Store(0)
		w.n.Store(0)
		p.current.Store(next)
	}
}

// paceQuantile returns the q-quantile of n times, 0 if they are too few.
func paceQuantile(sum *[paceBuckets]uint64, n uint64, q float64) time.Duration {
	if n < paceEnough {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(n)))
	for i, count := range sum {
		if count >= rank {
			return paceEdge(i)
		}
		rank -= count
	}
	return paceEdge(paceBuckets - 1)
}
