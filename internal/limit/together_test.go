package limit

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// raceRounds is how often each race is run: what it looks for happens in a few nanoseconds, and
// one round on two processors misses it as often as not.
const raceRounds = 10

// together runs f in many goroutines at once, on more threads than there are processors: the
// system then interrupts one anywhere, also between its load and its swap.
func together(f func()) {
	const n = 8
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * n))
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range n {
		wg.Go(func() {
			<-start
			f()
		})
	}
	close(start)
	wg.Wait()
}

// peak counts who is in it, and remembers the most. Who enters lets others run, so that there
// are always as many as may be, and one more is one too many.
type peak struct{ n, most atomic.Int64 }

func (p *peak) enter() {
	n := p.n.Add(1)
	for m := p.most.Load(); n > m && !p.most.CompareAndSwap(m, n); m = p.most.Load() {
	}
	runtime.Gosched()
}

func (p *peak) leave() { p.n.Add(-1) }
