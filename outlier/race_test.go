package outlier

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// Results come from many goroutines while a sweep reads them and members come and go: every
// result is in exactly one interval, and nobody is out whom nothing can bring back.
func TestBug31EveryResultIsInExactlyOneInterval(t *testing.T) {
	c := Config{Mode: Envoy, MaxEjectionPercent: PercentOf(0)} // so that no epoch ends
	c.Envoy.SplitLocalOrigin = true
	d, err := NewDetector(c, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	list := []Member{{ID: "a"}, {ID: "b"}}
	if _, err := d.Update(list, 0); err != nil {
		t.Fatal(err)
	}
	h := d.Host(0)
	const goroutines, each = 8, 25_000
	events := [...]Event{Succeeded, Failed, Unreached, Connected}
	var sent [len(events)]atomic.Uint64
	var wg sync.WaitGroup
	var mu sync.Mutex
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				k := (i + g) % len(events)
				sent[k].Add(1)
				if h.Observe(events[k], h.Token(), int64(i)) {
					mu.Lock()
					d.Act(h, int64(i))
					mu.Unlock()
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var seen [len(events)]uint64
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		mu.Lock()
		answers, locals := d.swapIntervals()
		seen[0], seen[1] = seen[0]+answers[0].good, seen[1]+answers[0].bad
		seen[2], seen[3] = seen[2]+locals[0].bad, seen[3]+locals[0].good
		mu.Unlock()
	}
	for k, e := range events {
		if seen[k] != sent[k].Load() {
			t.Errorf("%v: %d in intervals, %d sent", e, seen[k], sent[k].Load())
		}
	}
}

// Everything at once: requests, probes, sweeps, lists, standings, configurations. At the
// end, when all is well, all are back.
func TestBug31NobodyIsLeftEjected(t *testing.T) {
	for _, mode := range []Mode{Soft, Envoy, A50} {
		c := Config{Mode: mode, MaxEjectionPercent: PercentOf(100)}
		c.A50.FailurePercentage = &FailurePercentage{MinHosts: 1, RequestVolume: 5}
		d, err := NewDetector(c, rand.New(rand.NewPCG(4, 4)).Uint64, 0)
		if err != nil {
			t.Fatal(err)
		}
		p := &raced{d: d}
		p.update(10)
		var wg sync.WaitGroup
		for g := range uint64(6) {
			wg.Go(func() { p.send(rand.New(rand.NewPCG(g, 5)), 4000) })
		}
		r := rand.New(rand.NewPCG(6, 6))
		for i := range 2000 {
			p.mu.Lock()
			p.now.Add(int64(50e6))
			d.Sweep(p.now.Load())
			switch r.IntN(20) {
			case 0:
				p.update(1 + r.IntN(10))
			case 1:
				d.SetStanding(r.IntN(d.Len()), Standing(r.IntN(4)), p.now.Load())
			case 2:
				c.Soft.ConsecutiveFailures = 1 + r.IntN(6)
				if _, err := d.SetConfig(c, p.now.Load()); err != nil {
					t.Error(err)
				}
			}
			p.mu.Unlock()
			_ = i
		}
		wg.Wait()
		p.update(10)
		for range 400 {
			p.now.Add(int64(1e9))
			d.Sweep(p.now.Load())
			for i := range d.Len() {
				h := d.Host(i)
				token := h.Token()
				if mode == Soft {
					var ok bool
					if token, ok = h.TryProbe(p.now.Load()); !ok {
						continue
					}
				}
				if h.Observe(Succeeded, token, p.now.Load()) {
					d.Act(h, p.now.Load())
				}
			}
		}
		if got := d.Available(nil); len(got) != 10 || d.Panicking() {
			t.Errorf("%v: when all is well %v of 10 may be picked", mode, got)
		}
	}
}

// raced is a Detector with its owner's lock.
type raced struct {
	mu  sync.Mutex
	d   *Detector
	now atomic.Int64
}

func (p *raced) update(n int) {
	list := make([]Member, n)
	for i := range list {
		list[i].ID = fmt.Sprint("h", i)
	}
	_, _ = p.d.Update(list, p.now.Load())
}

// send makes requests that fail half the time.
func (p *raced) send(r *rand.Rand, n int) {
	for range n {
		now := p.now.Load()
		p.mu.Lock()
		h := p.d.Host(r.IntN(p.d.Len()))
		p.mu.Unlock()
		token, ok := h.TryProbe(now)
		if !ok {
			token = h.Token()
		}
		_, _ = p.d.ProbeDue(now, true), h.State(now)
		if h.Observe(Event(r.IntN(events)), token, now) {
			p.mu.Lock()
			p.d.Act(h, now)
			p.mu.Unlock()
		}
	}
}

// However many ask at once, one gets the permit.
func TestOneProbeAtATime(t *testing.T) {
	d, err := NewDetector(Config{}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Update([]Member{{ID: "a"}, {ID: "b"}}, 0); err != nil {
		t.Fatal(err)
	}
	h := d.Host(0)
	for range 5 {
		if h.Observe(Failed, h.Token(), 0) {
			d.Act(h, 0)
		}
	}
	for round := range 300 {
		now := int64(1+round) * 20e9
		var got atomic.Int32
		var taken Token
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if token, ok := h.TryProbe(now); ok {
					got.Add(1)
					taken = token
				}
			})
		}
		wg.Wait()
		if got.Load() != 1 {
			t.Fatalf("round %d: %d permits", round, got.Load())
		}
		if h.Observe(Failed, taken, now) {
			d.Act(h, now)
		}
	}
}
