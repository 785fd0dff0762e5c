package limit

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// A limiter that is told how many requests have ended, and of answers without a deadline nothing else, does
// what one does that is told of each, whatever is late for a sweep.
func TestCountOfEndsStandsForAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 8))
	for range 200 {
		each, byEnds := newLimiter(t, Config{}), newLimiter(t, Config{})
		now, inFlight := int64(0), int64(20)
		each.Sweep(now, inFlight)
		byEnds.Ended(0)
		byEnds.Sweep(now, inFlight)
		bad := r.IntN(30)
		for range 40 {
			ended := int64(0)
			for range r.IntN(60) {
				ended++
				switch k := r.IntN(100); {
				case k < bad:
					each.Observe(TimedOut, 0, 0)
					byEnds.Observe(TimedOut, 0, 0)
				case k < bad+10: // with a deadline
					latency := r.Int64N(sec)
					each.Observe(Answered, latency, sec)
					byEnds.Observe(Answered, latency, sec)
				case k < bad+15: // says nothing
					byEnds.Pass()
				case k < bad+20:
					each.Observe(Left, 0, 0)
					byEnds.Observe(Left, 0, 0)
				default:
					each.Observe(Answered, 0, 0)
				}
			}
			byEnds.Ended(ended)
			now += ms * (1 + r.Int64N(1500))
			if a, b := each.Sweep(now, inFlight), byEnds.Sweep(now, inFlight); a != b {
				t.Fatalf("the next sweep is at %d, of one that was told of each at %d", b, a)
			}
			a, isOn := each.Limit()
			if b, ok := byEnds.Limit(); a != b || ok != isOn {
				t.Fatalf("the limit is %d (%v), of one that was told of each %d (%v)", b, ok, a, isOn)
			}
		}
	}
}

// An end that the owner counts after a sweep makes up for having been observed before it.
func TestEndsThatAreCountedLateMakeUpForIt(t *testing.T) {
	l := newLimiter(t, Config{})
	l.Ended(0)
	l.Observe(TimedOut, 0, 0)
	l.Pass()
	if got, want := l.collect(), (tally{near: 1}); got != want {
		t.Errorf("before its end was counted: %v, want %v", got, want)
	}
	l.Ended(5)
	if got, want := l.collect(), (tally{unseen: 3}); got != want {
		t.Errorf("of five ends, two of them known already: %v, want %v", got, want)
	}
}

// What ended while the limit was disabled was observed by nobody, and is not taken for good.
func TestEndsWhileDisabledAreForgotten(t *testing.T) {
	l := newLimiter(t, Config{})
	l.Ended(3)
	if got, want := l.collect(), (tally{unseen: 3}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	for _, c := range []Config{{Disabled: true}, {}} {
		if err := l.SetConfig(c); err != nil {
			t.Fatal(err)
		}
		l.Observe(TimedOut, 0, 0)
	}
	l.Ended(1000)
	if got := l.collect(); got != (tally{}) {
		t.Errorf("of a time in which it was disabled at first: %v, want nothing", got)
	}
	l.Observe(TimedOut, 0, 0)
	l.Ended(10)
	if got, want := l.collect(), (tally{unseen: 9, near: 1}); got != want {
		t.Errorf("afterwards: %v, want %v", got, want)
	}
}

// No end is lost or taken twice, whoever sweeps meanwhile.
func TestNoRaceLosesEnds(t *testing.T) {
	l := newLimiter(t, Config{})
	var ended atomic.Int64
	told := int64(0)
	var sum tally
	look := func() {
		n := ended.Load()
		l.Ended(n - told)
		told = n
		for v, c := range l.collect() {
			sum[v] += c
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				look()
			}
		}
	})
	const each = 5_000
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for i := range each {
				switch i % 10 {
				case 0:
					l.Observe(TimedOut, 0, 0)
				case 1:
					l.Pass()
				}
				ended.Add(1)
			}
		})
	}
	senders.Wait()
	close(stop)
	wg.Wait()
	look()
	if want := (tally{unseen: 4 * each * 8 / 10, near: 4 * each / 10}); sum != want {
		t.Errorf("%v, want %v", sum, want)
	}
}
