package ewma

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

const sec = int64(time.Second)

func peakNS(t *testing.T, p *Peak, now int64, d Decay) float64 {
	t.Helper()
	lg, ok := p.Log2(now, d)
	if !ok {
		t.Fatal("no sample")
	}
	return Exp2(lg)
}

// near reports whether two latencies agree within the resolution of a stored one.
func near(a, b float64) bool { return math.Abs(a/b-1) < 0.002 }

type peakSample struct{ x, at int64 }

// naivePeak is the definition.
func naivePeak(samples []peakSample, now int64, tau float64) float64 {
	best := 0.0
	for _, s := range samples {
		gap := min(max(now-s.at, 0), int64(MaxGap))
		best = max(best, float64(max(s.x, 1))*math.Exp(-float64(gap)/tau))
	}
	return best
}

func TestPeakEqualsItsDefinitionInAnyOrder(t *testing.T) {
	const tau = 10 * time.Second
	d := NewDecay(tau)
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var samples []peakSample
		for range 50 {
			samples = append(samples, peakSample{x: int64(math.Exp(r.Float64() * 30)), at: r.Int64N(100 * sec)})
		}
		var forward, backward Peak
		for i := range samples {
			s, z := samples[i], samples[len(samples)-1-i]
			forward.Observe(s.x, s.at, d)
			backward.Observe(z.x, z.at, d)
		}
		now := 100*sec + r.Int64N(60*sec)
		want := naivePeak(samples, now, float64(tau))
		if got := peakNS(t, &forward, now, d); !near(got, want) {
			t.Fatalf("estimate %v, want %v", got, want)
		}
		lg, _ := forward.Log2(now, d)
		for _, floor := range []int64{lg - 1, lg, lg + 1, lg + 1<<16} {
			if got := forward.Above(floor, now, d); got != max(lg, floor) {
				t.Fatalf("Above(%d) = %d at estimate %d", floor, got, lg)
			}
		}
		if got := peakNS(t, &backward, now, d); !near(got, want) {
			t.Fatalf("estimate in reverse order %v, want %v", got, want)
		}
	}
}

func TestPeakZeroValueHasNoSample(t *testing.T) {
	var p Peak
	if _, ok := p.Log2(5, NewDecay(time.Second)); ok {
		t.Error("the zero Peak has a sample")
	}
	if got := p.Above(-100, 5, NewDecay(time.Second)); got != -100 {
		t.Errorf("without a sample Above(-100) is %d", got)
	}
	p.Observe(0, 0, NewDecay(time.Second)) // the smallest sample at the smallest instant
	if _, ok := p.Log2(0, NewDecay(time.Second)); !ok {
		t.Error("a sample of 0 at instant 0 was lost")
	}
}

func TestPeakStartsOver(t *testing.T) {
	d := NewDecay(10 * time.Second)
	var p Peak
	p.Observe(int64(time.Minute), int64(time.Second), d)
	p.Restart(int64(time.Millisecond), int64(2*time.Second))
	if lg, ok := p.Log2(int64(2*time.Second), d); !ok || lg>>6 != (LatencyLog2(1e6)+32)>>6 {
		t.Errorf("log2 %v, %v, want that of 1 ms", float64(lg)/One, ok)
	}
}

func TestPeakReadsArePure(t *testing.T) {
	d := NewDecay(10 * time.Second)
	var read, unread Peak
	read.Observe(100e6, 0, d)
	unread.Observe(100e6, 0, d)
	for i := range int64(9) {
		read.Log2((i+1)*sec, d)
	}
	read.Observe(20e6, 10*sec, d)
	unread.Observe(20e6, 10*sec, d)
	if a, b := peakNS(t, &read, 10*sec, d), peakNS(t, &unread, 10*sec, d); a != b || !near(a, 36.787944e6) {
		t.Errorf("after reads %v, without %v, want 36.788 ms both", a, b)
	}
}

func TestPeakAtOddSamplesAndInstants(t *testing.T) {
	d := NewDecay(10 * time.Second)
	hundredHours := 100 * int64(time.Hour)
	for _, tc := range []struct {
		name     string
		samples  []peakSample
		now      int64
		want     float64
		wantZero bool
	}{
		{"zero sample", []peakSample{{0, 0}}, 0, 1, false},
		{"negative sample", []peakSample{{-5, 0}}, 0, 1, false},
		{"hundred hours", []peakSample{{hundredHours, 0}}, 0, float64(hundredHours), false},
		{"largest sample", []peakSample{{math.MaxInt64, 0}}, 0, math.MaxInt64, false},
		{"same instant keeps the larger", []peakSample{{100, 5}, {1, 5}, {1, 5}}, 5, 100, false},
		{"read before the sample", []peakSample{{100, 50 * sec}}, 0, 100, false},
		{"older sample loses", []peakSample{{100e6, 10 * sec}, {10e6, 9 * sec}}, 10 * sec, 100e6, false},
		{"negative instants are 0", []peakSample{{100, -50 * sec}}, -7, 100, false},
		{"gap of a century", []peakSample{{100e6, 0}}, math.MaxInt64, 0, true},
	} {
		var p Peak
		for _, s := range tc.samples {
			p.Observe(s.x, s.at, d)
		}
		got := peakNS(t, &p, tc.now, d)
		if tc.wantZero {
			if got > 1e-3 || math.IsNaN(got) {
				t.Errorf("%s: %v, want about 0", tc.name, got)
			}
		} else if !near(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestPeakTauMayChange(t *testing.T) {
	var p Peak
	p.Observe(100e6, 0, NewDecay(10*time.Second))
	if got := peakNS(t, &p, sec, NewDecay(time.Second)); !near(got, 100e6/math.E) {
		t.Errorf("after a change of τ %v, want %v", got, 100e6/math.E)
	}
}

func TestPeakWithConcurrentWritersKeepsTheMaximum(t *testing.T) {
	d := NewDecay(time.Hour)
	var p Peak
	var wg sync.WaitGroup
	for g := range int64(8) {
		wg.Go(func() {
			for i := range int64(5000) {
				p.Observe(g*5000+i+1, 1000, d)
				p.Log2(1000, d)
			}
		})
	}
	wg.Wait()
	if got := peakNS(t, &p, 1000, d); !near(got, 40000) {
		t.Errorf("peak %v, want 40000", got)
	}
}

// The estimators sit on the request path: an allocation there is paid per request.
func TestEstimatorsDoNotAllocate(t *testing.T) {
	d := NewDecay(time.Second)
	params := NewSuccessParams(2*time.Second, 10*time.Second, 0.1)
	var p Peak
	var s Success
	var a Age
	var m LogMean
	mean := NewLogMeanParams(time.Second)
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += 1e6
		p.Observe(now, now, d)
		p.Log2(now, d)
		m.Observe(now, now, mean, 1<<20)
		m.Log2(now, mean, 1<<20)
		s.Observe(now%3e6 != 0, now, params)
		s.PenaltyLog2(now, params)
		s.Failure(now, params)
		a.Start(now)
		a.Mean(now)
		a.Done(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDecayLeftEqualsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 10_000 {
		tau := time.Duration(math.Exp(10 + r.Float64()*15))
		x, gap := r.Int64N(1<<40), int64(r.ExpFloat64()*float64(tau))
		want := float64(x) * math.Exp(-float64(gap)/float64(max(tau, MinTau)))
		// Gaps count in whole ticks.
		room := 2 + want*(1e-3+2048/float64(max(tau, MinTau)))
		if got := NewDecay(tau).Left(x, gap); math.Abs(float64(got)-want) > room {
			t.Fatalf("of %d after %d ns with %v %d are left, want %.1f", x, gap, tau, got, want)
		}
	}
	d := NewDecay(time.Second)
	if a, b, c := d.Left(-5, 0), d.Left(7, -sec), d.Left(1<<62, math.MaxInt64); a != 0 || b < 6 || b > 7 || c != 0 {
		t.Errorf("left %d, %d, %d, want 0, 7, 0", a, b, c)
	}
	if got := (Decay{}).Left(100, sec); got < 99 || got > 100 {
		t.Errorf("without a decay %d of 100 are left", got)
	}
}
