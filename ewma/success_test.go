package ewma

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func TestSuccessFollowsItsDefinition(t *testing.T) {
	const average, fade = 2.0, 10.0
	p := NewSuccessParams(2*time.Second, 10*time.Second, 0.1)
	r := rand.New(rand.NewPCG(7, 8))
	var s Success
	var e, last float64 // the oracle: seconds, no packing
	now := int64(0)
	for i := range 20_000 {
		now += r.Int64N(int64(100 * time.Millisecond))
		tick := float64(now>>successTickBits) * (1 << successTickBits) / 1e9
		ok := r.IntN(10) != 0
		gap := tick - last
		w := 1 - math.Exp(-gap/average)
		if i == 0 {
			w = 1
		}
		e *= math.Exp(-gap / fade)
		if ok {
			e -= e * max(w, 0.02)
		} else {
			e += (1 - e) * max(w, 0.1)
		}
		last = tick
		s.Observe(ok, now, p)
		if got := s.Failure(now, p); math.Abs(got-e) > 1e-3 {
			t.Fatalf("failure score %v, want %v", got, e)
		}
	}
}

func TestSuccessPenaltyIsMinusLog2OfSuccess(t *testing.T) {
	p := NewSuccessParams(2*time.Second, 10*time.Second, 0.1)
	var s Success
	if s.PenaltyLog2(0, p) != 0 || s.Failure(0, p) != 0 {
		t.Error("the zero Success has failed")
	}
	now := int64(0)
	for i := range 60 {
		now += int64(50 * time.Millisecond)
		s.Observe(i%3 == 0, now, p)
		for _, later := range []int64{0, 1e9, 5e9, 30e9} {
			e := s.Failure(now+later, p)
			want := min(-math.Log2(1-e), 30)
			if got := float64(s.PenaltyLog2(now+later, p)) / One; math.Abs(got-want) > 0.001*want+0.0005 {
				t.Fatalf("penalty %v at e = %v, want %v", got, e, want)
			}
		}
	}
	for range 10_000 {
		now += int64(time.Millisecond)
		s.Observe(false, now, p)
	}
	if got := s.PenaltyLog2(now, p); got <= 10<<16 || got > 30<<16 {
		t.Errorf("penalty of an endpoint that always fails is %v bits, want 10 to 30", got>>16)
	}
}

// However dense results are, the score goes by the part that fails: at the odds of five
// failures for each, so that one in a thousand hardly shows.
func TestSuccessGoesByThePartThatFails(t *testing.T) {
	p := NewSuccessParams(2*time.Second, 10*time.Second, 0.1)
	for _, part := range []float64{0.001, 0.01, 0.1, 0.5} {
		for _, gap := range []time.Duration{10 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
			r := rand.New(rand.NewPCG(9, 10))
			var s Success
			s.Observe(true, 0, p)
			now, sum := int64(0), 0.0
			const n = 200_000
			for range n {
				now += int64(gap)
				s.Observe(r.Float64() >= part, now, p)
				sum += s.Failure(now, p)
			}
			odds := 5 * part / (1 - part)
			want := odds / (1 + odds)
			if got := sum / n; math.Abs(got-want) > 0.1*want {
				t.Errorf("%v fail, every %v: failure score %.4f, want %.4f", part, gap, got, want)
			}
		}
	}
}

// Under a constant flood of failures the score stays at 1: a long incident must not
// look like an old one.
func TestSuccessStaysLowThroughALongOutage(t *testing.T) {
	p := NewSuccessParams(2*time.Second, 10*time.Second, 0.1)
	var s Success
	now := int64(0)
	for range 60_000 {
		now += int64(10 * time.Millisecond)
		s.Observe(false, now, p)
	}
	if got := s.Failure(now, p); got < 0.99 { // 10 ms of fading against a step of 10 %
		t.Errorf("failure score %v after ten minutes of failures, want 1", got)
	}
}

// At 100,000 results a second the change per result is below the resolution; the
// score must still move, even without a step and so without a least weight.
func TestSuccessRecoversAtAnyRate(t *testing.T) {
	p := NewSuccessParams(2000*time.Second, 10_000*time.Second, 0)
	for _, gap := range []int64{10_000, int64(time.Millisecond), int64(time.Second)} {
		var s Success
		now := int64(0)
		for range 200 {
			s.Observe(false, now, p)
		}
		before := s.Failure(now, p)
		for now < 20*sec || gap == int64(time.Second) && now < 2000*sec {
			now += gap
			s.Observe(true, now, p)
		}
		want := before * math.Exp(-float64(now)/2000e9-float64(now)/10_000e9)
		if got := s.Failure(now, p); math.Abs(got-want) > 0.0005 {
			t.Errorf("gap %v: failure score %v, want %v", time.Duration(gap), got, want)
		}
	}
}

func TestSuccessAtOddInstants(t *testing.T) {
	p := NewSuccessParams(2*time.Second, 10*time.Second, 0.1)
	var s Success
	s.Observe(true, 10*sec, p)
	s.Observe(false, 10*sec, p)
	first := s.Failure(10*sec, p)
	if math.Abs(first-0.1) > 1e-6 {
		t.Errorf("a failure right after a success gives %v, want 0.1", first)
	}
	if got := s.Failure(0, p); got != first {
		t.Errorf("read before the result gives %v, want %v", got, first)
	}
	s.Observe(false, 5*sec, p) // out of order: gap 0, not negative
	if got := s.Failure(10*sec, p); math.Abs(got-0.19) > 1e-6 {
		t.Errorf("an older failure gives %v, want 0.19", got)
	}
	s.Observe(true, math.MaxInt64, p)
	if got := s.Failure(math.MaxInt64, p); got != 0 {
		t.Errorf("after a century %v, want 0", got)
	}
	s.Observe(false, -sec, p)
	if got := s.Failure(-5, p); math.IsNaN(got) || got < 0 || got > 1 {
		t.Errorf("negative instants give %v", got)
	}
}

func TestSuccessBelievesTheFirstResultAndSparseOnes(t *testing.T) {
	p := NewSuccessParams(2*time.Second, 10*time.Second, 0.1)
	var first, sparse Success
	first.Observe(false, 0, p)
	if got := first.Failure(0, p); got != 1 {
		t.Errorf("a first failure gives %v, want 1", got)
	}
	var slow Success
	slow.Observe(false, 0, NewSuccessParams(2*time.Hour, 10*time.Hour, 0.1))
	if got := slow.Failure(0, NewSuccessParams(2*time.Hour, 10*time.Hour, 0.1)); got != 1 {
		t.Errorf("with slow averages a first failure gives %v, want 1", got)
	}
	sparse.Observe(true, 0, p)
	sparse.Observe(false, 10*sec, p)
	if got := sparse.Failure(10*sec, p); math.Abs(got-(1-math.Exp(-5))) > 0.001 {
		t.Errorf("a failure ten seconds after a success gives %v, want %v", got, 1-math.Exp(-5))
	}
}

func TestSuccessWithConcurrentWritersStaysInRange(t *testing.T) {
	p := NewSuccessParams(2*time.Second, 10*time.Second, 0.1)
	var s Success
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range int64(5000) {
				s.Observe(r.IntN(2) == 0, i*1e6, p)
				if e := s.Failure(i*1e6, p); e < 0 || e > 1 || math.IsNaN(e) {
					t.Errorf("failure score %v", e)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range int64(100_000) {
		s.Observe(true, 5*sec+i*1e6, p)
	}
	if got := s.Failure(105*sec, p); got > 1e-6 {
		t.Errorf("failure score %v after 100 s of success, want 0", got)
	}
}
