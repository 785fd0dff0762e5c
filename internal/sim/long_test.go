package sim

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

// statistical skips a test of millions of requests under the race detector: a run is one
// goroutine, in which it has nothing to find, and takes fifteen times as long with it.
func statistical(t *testing.T) {
	t.Helper()
	if testcost.Race {
		t.Skip("one goroutine a run")
	}
}

// long skips a test of many minutes unless EVENKEEL_LONG is 1.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("EVENKEEL_LONG") != "1" {
		t.Skip("EVENKEEL_LONG is not 1")
	}
}

// As many runs as the reference's hundred: both means vary.
func TestLongEightServersOverAHundredRuns(t *testing.T) {
	long(t)
	const runs = 100
	for variant, rows := range readPublished(t).EightServers {
		for row, want := range rows {
			s, name := eightServers(t, variant, row)
			results := runSeeds(t, s, named1(t, name), runs)
			for m, of := range statistics(time.Millisecond) {
				got, want := Over(results, of), want[m]
				want.withinError(t, variant+" "+row+" "+m, got, math.Hypot(want[1], got.SD)/10)
			}
		}
	}
}

func TestLongTwoChoicesAgreeWithTheSupermarketLimit(t *testing.T) {
	long(t)
	for load, want := range map[float64]float64{0.8: 1.94738, 0.9: 2.61405} {
		results := runSeeds(t, S12(load, 20_000_000), named1(t, "p2c"), 2)
		near(t, "mean sojourn in services", Over(results, func(r *Result) float64 { return float64(r.Total.Latency().Mean()) / 1e7 }).Mean, want, 0.005)
	}
}

// The bounds do not depend on the number of clients, and policies that go by their own
// counts get worse with it.
func TestLongFleetsOfThousandsOfClients(t *testing.T) {
	long(t)
	replay(t, 3, map[string][]replayed{
		"fleet_a/B=2000":    {{"p99", "jsed", 59, 0.05}, {"p99", "p2c", 23_000, 0.15}},
		"sixty_four/B=400":  {{"p99", "p2c", 7305, 0.15}, {"p99", "random", 35_000, 0.15}},
		"sixty_four/B=4000": {{"p99", "jsed", 48, 0.05}, {"p99", "jsq", 61, 0.05}},
	})
}

// How long ten million take depends on the machine and fails nothing.
func TestLongTenMillionPicks(t *testing.T) {
	long(t)
	for _, policy := range []string{"p2c_latency", "default"} {
		s := FleetA(50).Scenario("ten million")
		s.Length, s.Requests = 0, 10_000_000
		start := time.Now()
		r := mustRun(t, s, policy, 1)
		t.Logf("%s: %d picks in %v on one core", policy, r.Picks, time.Since(start).Round(time.Second/10))
	}
}
