package ewma

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// naiveMean is the definition, in floating point and without packing.
type naiveMean struct {
	lg    float64
	count float64
	last  float64
}

func (n *naiveMean) faded(now, u, target float64) float64 {
	gap := min(max(now-n.last, 0), 3600)
	return target + (n.lg-target)*math.Exp(-gap/(60*u))
}

func (n *naiveMean) observe(x, now, u, target float64) {
	lg, gap := math.Log2(x), min(max(now-n.last, 0), 3600)
	faded := n.faded(now, u, target)
	if n.count == 0 {
		faded = 0
	}
	n.count++
	a := max(min(max(1-math.Exp(-(gap+x/1e10)/(2*u)), 0.01), 0.1), 1/n.count)
	n.lg = faded + a*(lg-faded)
	n.last = now
}

func TestLogMeanFollowsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, u := range []time.Duration{time.Second, 10 * time.Second} {
		p := NewLogMeanParams(u)
		var m LogMean
		var n naiveMean
		target := LatencyLog2(20e6)
		now := int64(0)
		for i := range 3000 {
			now += int64(r.ExpFloat64() * float64([]time.Duration{time.Millisecond, time.Second, time.Minute}[i/1000]))
			x := 1e6 + r.ExpFloat64()*30e6
			m.Observe(int64(x), now, p, target)
			n.observe(x, float64(now)/1e9, u.Seconds(), float64(target)/One)
			later := now + r.Int64N(int64(2*time.Minute))
			got, ok := m.Log2(later, p, target)
			want := n.faded(float64(later)/1e9, u.Seconds(), float64(target)/One)
			if !ok || math.Abs(float64(got)/One-want) > 0.02 {
				t.Fatalf("u %v, sample %d: log2 %v, want %v", u, i, float64(got)/One, want)
			}
		}
	}
}

// A sample counts for the time that it took, not only for the time since the last one: of an
// endpoint that answers a thousand times a second, one answer in 2 s is two seconds' news.
func TestLogMeanWeighsASampleByItsOwnDuration(t *testing.T) {
	for _, tc := range []struct {
		gap, x time.Duration
		want   float64 // weight of the sample
	}{
		{time.Millisecond, 10 * time.Millisecond, 0.01}, // the least
		{time.Millisecond, time.Second, 1 - math.Exp(-0.101/2)},
		{time.Millisecond, 2 * time.Second, 1 - math.Exp(-0.201/2)},
		{time.Millisecond, time.Minute, 0.1}, // the most
		{100 * time.Millisecond, 10 * time.Millisecond, 1 - math.Exp(-0.101/2)},
	} {
		p := NewLogMeanParams(time.Second)
		var m LogMean
		const usual = 1e6
		now := sec
		for range 200 { // more than one sample's weight of 1/100
			now += 1e6
			m.Observe(usual, now, p, NoTarget)
		}
		now += int64(tc.gap)
		m.Observe(int64(tc.x), now, p, NoTarget)
		lg, _ := m.Log2(now, p, NoTarget)
		got := float64(lg-LatencyLog2(usual)) / float64(LatencyLog2(int64(tc.x))-LatencyLog2(usual))
		// An instant is up to four ticks of 4 ms older than it was.
		if slack := 1 - math.Exp(-0.017/2); got < tc.want-0.001 || got > tc.want+slack {
			t.Errorf("a sample of %v, %v after the last, has the weight %.4f, want %.4f", tc.x, tc.gap, got, tc.want)
		}
	}
}

func TestLogMeanFadesToTheTargetAndNotBeyond(t *testing.T) {
	p := NewLogMeanParams(time.Second)
	for _, x := range []int64{1e6, 1e9} {
		var m LogMean
		m.Observe(x, 0, p, NoTarget)
		target := LatencyLog2(20e6)
		first, _ := m.Log2(0, p, target)
		if first != LatencyLog2(x) {
			t.Errorf("the first sample gives %v, want %v", Exp2(first), x)
		}
		minute, _ := m.Log2(60*sec, p, target)
		want := float64(target) + float64(first-target)/math.E
		if math.Abs(float64(minute)-want) > 200 {
			t.Errorf("after 60 units log2 %v, want %v", float64(minute)/One, want/One)
		}
		hour, _ := m.Log2(math.MaxInt64, p, target)
		if d := hour - target; d < -2 || d > 2 {
			t.Errorf("after an hour log2 %v, want the target %v", hour, target)
		}
		if still, _ := m.Log2(math.MaxInt64, p, NoTarget); still != first {
			t.Errorf("without a target it faded to %v", still)
		}
	}
}

func TestLogMeanTakesLowerBoundsOnlyUpwards(t *testing.T) {
	p := NewLogMeanParams(time.Second)
	var m LogMean
	m.ObserveAtLeast(1e9, 0, p, NoTarget)
	if _, ok := m.Log2(0, p, NoTarget); ok {
		t.Error("a bound became the first sample")
	}
	m.Observe(10e6, 0, p, NoTarget)
	m.ObserveAtLeast(1e6, sec, p, NoTarget)
	if lg, _ := m.Log2(sec, p, NoTarget); lg != LatencyLog2(10e6) {
		t.Error("a bound below the estimate moved it")
	}
	m.ObserveAtLeast(1e9, sec, p, NoTarget)
	if lg, _ := m.Log2(sec, p, NoTarget); lg <= LatencyLog2(10e6) {
		t.Error("a bound above the estimate did not raise it")
	}
}

func TestLogMeanStartsOver(t *testing.T) {
	p := NewLogMeanParams(time.Second)
	var m LogMean
	for range 5 {
		m.Observe(int64(time.Minute), int64(time.Second), p, NoTarget)
	}
	m.Restart(int64(time.Millisecond), int64(time.Minute))
	if lg, ok := m.Log2(int64(time.Minute), p, NoTarget); !ok || lg != LatencyLog2(1e6) {
		t.Errorf("log2 %v, %v, want that of 1 ms", float64(lg)/One, ok)
	}
	// A late answer to what was asked before weighs a tenth, not a half.
	m.Observe(int64(time.Minute), int64(time.Minute), p, NoTarget)
	lg, _ := m.Log2(int64(time.Minute), p, NoTarget)
	if got, want := float64(lg-LatencyLog2(1e6))/One, math.Log2(60_000)/10; math.Abs(got-want) > 0.01 {
		t.Errorf("a minute after a millisecond adds %.3f doublings, want %.3f", got, want)
	}
}

func TestLogMeanAtOddSamplesAndInstants(t *testing.T) {
	p := NewLogMeanParams(0)
	for _, x := range []int64{math.MinInt64, -1, 0, 1, int64(100 * time.Hour), math.MaxInt64} {
		for _, now := range []int64{math.MinInt64, -1, 0, sec, math.MaxInt64} {
			var m LogMean
			m.Observe(x, now, p, NoTarget)
			m.Observe(x, now/2, p, 0)
			lg, ok := m.Log2(now, p, NoTarget)
			if !ok || lg < 0 || lg > 63<<16 {
				t.Errorf("sample %d at %d: log2 %d, %v", x, now, lg, ok)
			}
		}
	}
	NewLogMeanParams(math.MaxInt64)
}

func TestLogMeanWithConcurrentWritersStaysInRange(t *testing.T) {
	p := NewLogMeanParams(time.Second)
	var m LogMean
	var wg sync.WaitGroup
	for g := range int64(8) {
		wg.Go(func() {
			for i := range int64(5000) {
				m.Observe(10e6+g*1e6, i*1e6, p, LatencyLog2(14e6))
				m.Log2(i*1e6, p, LatencyLog2(14e6))
			}
		})
	}
	wg.Wait()
	if lg, ok := m.Log2(5*sec, p, NoTarget); !ok || Exp2(lg) < 10e6 || Exp2(lg) > 17.01e6 {
		t.Errorf("mean %v of samples from 10 to 17 ms", time.Duration(Exp2(lg)))
	}
}
