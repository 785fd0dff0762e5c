package sim

import (
	"math"
	"testing"
	"time"
)

func arrivals(t *testing.T, a Arrivals, length time.Duration, requests int) *Result {
	t.Helper()
	s := Scenario{
		Servers: equal(2, Server{}), Service: Fixed{10 * millisecond}, Arrivals: a,
		Length: length, Requests: requests,
	}
	if length > 0 {
		s.Bucket = length / 100
	}
	return mustRun(t, s, "round_robin", 1)
}

func TestEvenArrivalsAreExact(t *testing.T) {
	r := arrivals(t, Arrivals{Kind: Even, Rate: 300}, 10*second, 0)
	if r.Picks != 3000 {
		t.Fatalf("%d requests, want 3000", r.Picks)
	}
	for i, b := range r.Buckets {
		if b.Requests != 30 {
			t.Fatalf("bucket %d has %d, want 30", i, b.Requests)
		}
	}
}

func TestPoissonArrivalsHaveTheirRateAndVariance(t *testing.T) {
	r := arrivals(t, Arrivals{Rate: 10_000}, 100*second, 0)
	mean, squares := float64(r.Picks)/100, 0.0
	for _, b := range r.Buckets {
		squares += (float64(b.Requests) - mean) * (float64(b.Requests) - mean)
	}
	if math.Abs(mean-10_000) > 40 || math.Abs(squares/99/mean-1) > 0.5 {
		t.Errorf("mean %.0f, variance over mean %.2f, want 10,000 and 1", mean, squares/99/mean)
	}
}

func TestRequestsAndLengthBothEndTraffic(t *testing.T) {
	if r := arrivals(t, Arrivals{Rate: 1000}, 10*second, 500); r.Picks != 500 || r.End > second {
		t.Errorf("%d requests until %v, want 500 in half a second", r.Picks, r.End)
	}
	if r := arrivals(t, Arrivals{Rate: 1000}, second, 5000); r.Picks > 1200 || r.Picks < 800 {
		t.Errorf("%d requests, want about 1000", r.Picks)
	}
	if r := arrivals(t, Arrivals{Kind: Recorded, Times: []time.Duration{0, second, 5 * second}}, 3*second, 0); r.Picks != 2 {
		t.Errorf("%d recorded requests within 3 s, want 2", r.Picks)
	}
}

func TestClosedLoopKeepsItsUsersBusy(t *testing.T) {
	r := arrivals(t, Arrivals{Kind: Closed, Users: 8}, 0, 4000)
	if r.Picks != 4000 || r.End != 5*second {
		t.Errorf("%d requests until %v, want 4000 until 5s", r.Picks, r.End)
	}
	if in := r.Total.MaxInFlight[0] + r.Total.MaxInFlight[1]; in > 8+1 {
		t.Errorf("%d in flight with eight users", in)
	}
	r = arrivals(t, Arrivals{Kind: Closed, Users: 8, Think: 30 * millisecond}, 4*second, 0)
	if r.Picks != 800 {
		t.Errorf("%d requests with a pause, want 800", r.Picks)
	}
}

func TestClosedLoopSurvivesThatNobodyIsThere(t *testing.T) {
	s := Scenario{
		Servers: equal(1, Server{}), Service: Fixed{10 * millisecond},
		Arrivals: Arrivals{Kind: Closed, Users: 2}, Length: second,
	}
	s.Servers[0].Phases = []Phase{{From: 200 * millisecond, Until: 300 * millisecond, Absent: true}}
	r := mustRun(t, s, "default", 1)
	if r.Total.Unsent != 200 || r.Total.Good.n != 180 {
		t.Errorf("%d unsent and %d good, want 200 and 180", r.Total.Unsent, r.Total.Good.n)
	}
}

func TestBurstsComeOnlyInTheirTime(t *testing.T) {
	r := arrivals(t, Arrivals{Kind: Bursts, Rate: 1000, Period: 10 * second, On: second}, 100*second, 0)
	if math.Abs(float64(r.Picks)-100_000) > 2000 {
		t.Errorf("%d requests, want 100,000", r.Picks)
	}
	for i, b := range r.Buckets {
		if (i%10 == 0) != (b.Requests > 0) {
			t.Errorf("second %d has %d requests", i, b.Requests)
		}
	}
}
