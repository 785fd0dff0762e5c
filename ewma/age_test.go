package ewma

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func TestAgeIsTheMeanOfWhatIsInHand(t *testing.T) {
	var a Age
	r := rand.New(rand.NewPCG(5, 6))
	var starts []int64
	now := int64(0)
	for range 20_000 {
		now += r.Int64N(int64(3 * time.Millisecond))
		if len(starts) == 0 || r.IntN(2) == 0 {
			starts = append(starts, now)
			a.Start(now)
		} else {
			i := r.IntN(len(starts))
			a.Done(starts[i])
			starts[i] = starts[len(starts)-1]
			starts = starts[:len(starts)-1]
		}
		sum := int64(0)
		for _, s := range starts {
			sum += now - s
		}
		if a.Count() != len(starts) {
			t.Fatalf("count %d, want %d", a.Count(), len(starts))
		}
		if len(starts) == 0 {
			continue
		}
		want := float64(sum) / float64(len(starts))
		if got := float64(a.Mean(now)); got > want || got < want-2*8192-8192 {
			t.Fatalf("mean %v, want at most %v and near it", got, want)
		}
		if lg, ok := a.MeanLog2(now); ok && !a.Look().MayExceed(lg-1, now) {
			t.Fatalf("MayExceed denies a mean age of 2^(%d/65536)", lg)
		} else if ok && a.Look().MayExceed(lg+2<<16, now) {
			t.Fatalf("MayExceed is off by more than two bits at 2^(%d/65536)", lg)
		}
		if lg, ok := a.MeanLog2(now); ok {
			if got := Exp2(lg); got > want*1.0001 || got < want*0.9999-2*8192 {
				t.Fatalf("2^MeanLog2 is %v, want about %v", got, want)
			}
		} else if want > 2*8192 {
			t.Fatalf("no MeanLog2 at mean age %v", want)
		}
	}
}

func TestAgeAtOddInstants(t *testing.T) {
	var a Age
	if a.Mean(100) != 0 {
		t.Error("no work has an age")
	}
	a.Start(10 * sec)
	if got := a.Mean(5 * sec); got != 0 {
		t.Errorf("work from the future has age %d", got)
	}
	a.Done(10 * sec)
	a.Start(-5)
	if got := a.Mean(-3); got != 0 {
		t.Errorf("negative instants give age %d", got)
	}
	if got := a.Mean(int64(100 * time.Hour)); got < int64(100*time.Hour)-20000 {
		t.Errorf("100 h have age %v", time.Duration(got))
	}
	a.Done(-5)
	if a.w.Load() != 0 {
		t.Error("the word is not back to zero")
	}
	a.Start(math.MaxInt64)
	a.Mean(math.MaxInt64)
	a.Mean(0)
	a.Done(math.MaxInt64)
	if a.w.Load() != 0 {
		t.Error("the word is not back to zero after the largest instant")
	}
}

// More work than the count holds is a wrong reading, never a wrong state.
func TestAgeHealsAfterOverflow(t *testing.T) {
	var a Age
	const n = 1<<ageCountBits + 10
	for i := range int64(n) {
		a.Start(i * 1000)
	}
	for i := range int64(n - 1) {
		a.Done(i * 1000)
	}
	now := int64(n) * 1000
	if got := a.Mean(now + sec); a.Count() != 1 || got < sec-20000 || got > sec+2000 {
		t.Errorf("after overflow: count %d, mean %v, want 1 and about 1 s", a.Count(), time.Duration(got))
	}
}

// A piece of work that is taken out twice, by a caller's mistake, must not look like
// a quarter of a million.
func TestAgeTakenOutTwiceIsNoWork(t *testing.T) {
	var a Age
	a.Start(1000)
	a.Done(1000)
	a.Done(1000)
	if _, ok := a.MeanLog2(sec); a.Count() != 0 || a.Mean(sec) != 0 || ok {
		t.Errorf("count %d, mean %d", a.Count(), a.Mean(sec))
	}
	a.Start(1000)
	a.Start(sec)
	if got := a.Mean(2 * sec); a.Count() != 1 || got < sec-20000 || got > sec {
		t.Errorf("afterwards: count %d, mean %v; want 1 and 1 s", a.Count(), time.Duration(got))
	}
}

func TestAgeWithConcurrentWritersReturnsToZero(t *testing.T) {
	var a Age
	var wg sync.WaitGroup
	for g := range int64(8) {
		wg.Go(func() {
			for i := range int64(5000) {
				a.Start(g*sec + i)
				a.Mean(i)
				a.Done(g*sec + i)
			}
		})
	}
	wg.Wait()
	if a.w.Load() != 0 {
		t.Errorf("word %x at rest, want 0", a.w.Load())
	}
}
