package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

// One of two endpoints hangs, each has one request in flight: counts are equal, and only the age
// of the one that hangs tells them apart.
func TestAgeTellsWhatCountsDoNot(t *testing.T) {
	for _, tc := range comparing {
		if tc.policy.Needs()&picker.NeedAge == 0 {
			continue
		}
		for hung := range 2 {
			r := rand.New(rand.NewPCG(61, uint64(hung)))
			g, s := build(t, tc.policy, endpoints(2), r.Uint64)
			now := int64(0)
			warm(t, g, s, &now) // answers take 1 ms
			holdAt(t, s, hung, now)
			now += 5 * int64(time.Second)
			holdAt(t, s, 1-hung, now-ms/10)
			for range 100 {
				p, i, err := s.Pick(picker.Request{}, now)
				if err != nil {
					t.Fatal(err)
				}
				if i == hung {
					t.Fatalf("%s: endpoint %d got a request that has left one unanswered for 5 s", tc.name, hung)
				}
				p.Done(now, picker.Result{})
			}
		}
	}
}

// The mean age of exponential work exceeds the average of logarithms in normal operation:
// up to the endpoint's own peak ages cost nothing, and beyond it they count in full.
func TestAgesCountOnlyBeyondThePeak(t *testing.T) {
	const mean = 20 * float64(time.Millisecond)
	for _, swept := range []bool{false, true} { // the view is a result's, or the sweep's
		g, s, rec := one(t)
		r := rand.New(rand.NewPCG(63, 64))
		now := int64(0)
		for range 300 {
			p := holdAt(t, s, 0, now)
			now += int64(r.ExpFloat64() * mean)
			p.Done(now, picker.Result{Outcome: picker.Success})
		}
		if swept {
			g.Sweep(now)
		}
		for range 3 {
			holdAt(t, s, 0, now)
		}
		fresh := picker.Latency.Cost(rec, now)
		peak, _ := rec.PeakLatency(now)
		estimate, _ := rec.Latency(now)
		// Of exponential samples the mean of logarithms is that of e^-γ = 0.56 means, and
		// one of the last few hundred is several means long.
		if float64(estimate) > 0.8*mean || float64(peak) < 2*mean {
			t.Fatalf("estimate %v, peak %v: the scene is not set", estimate, peak)
		}
		for _, part := range []float64{0.3, 0.6, 0.95} {
			age := int64(part * float64(peak))
			if got := picker.Latency.Cost(rec, now+age); got != fresh {
				t.Errorf("swept %v: an age of %.2f of the peak costs %.2f doublings, want none",
					swept, part, float64(got-fresh)/ewma.One)
			}
		}
		for _, times := range []float64{1.1, 2, 100} {
			age := times * float64(peak)
			want := math.Log2(age / float64(estimate))
			got := float64(picker.Latency.Cost(rec, now+int64(age))-fresh) / ewma.One
			if math.Abs(got-want) > 0.01 {
				t.Errorf("swept %v: an age of %.1f of the peak costs %.3f doublings, want %.3f", swept, times, got, want)
			}
		}
	}
}
