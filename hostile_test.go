package evenkeel_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// anyInstant is one that no caller should give: none, long ago, or off by as much as clocks that step are.
func anyInstant(r *rand.Rand, now time.Time) time.Time {
	return []time.Time{{}, time.Unix(0, 0), now.AddDate(-250, 0, 0), now.Add(-90 * time.Minute), now.Add(90 * time.Minute),
		now.Add(-time.Second), now.Add(time.Second), now}[r.IntN(8)]
}

// anything is a result that no adapter would give.
func anything(r *rand.Rand) evenkeel.Result {
	return evenkeel.Result{Outcome: evenkeel.Outcome(r.IntN(256)), Status: picker.Status(r.IntN(1 << 16)),
		RetryAfter: []time.Duration{math.MinInt64, -1, 0, 1, time.Hour, math.MaxInt64}[r.IntN(6)]}
}

// Whatever instants and results come, in whatever order, nothing is in flight at rest, no number is out of its range, and
// when all has been well for a while everybody gets requests again.
func TestHostileInstantsAndResultsLeaveAWorkingPool(t *testing.T) {
	seeds := uint64(24)
	if testcost.Race { // it is one goroutine
		seeds = 4
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 92))
		c := soft([]evenkeel.Policy{nil, picker.RoundRobin{}, picker.Hash{}, picker.P2C{}}[seed%4])
		c.Outlier.Mode = outlier.Mode(seed / 4 % 3)
		c.Outlier.A50.FailurePercentage = &outlier.FailurePercentage{MinHosts: 1, RequestVolume: 5}
		c.Outlier.Panic = outlier.Panic{Threshold: outlier.PercentOf(50), Leave: outlier.PercentOf(60)}
		p := newPool(t, c, 4)
		now := origin
		for range 400 {
			now = now.Add(10 * time.Millisecond)
			k, err := p.PickAt(anyInstant(r, now), evenkeel.Request{Kind: picker.Kind(r.IntN(256)), HasKey: true, Key: r.Uint64(), Idempotent: r.IntN(2) == 0})
			if err == nil {
				k.SetDeadline(anyInstant(r, now))
				switch r.IntN(4) {
				case 0:
					k.FirstByteAt(anyInstant(r, now))
				case 1:
					k.AnsweredAt(anyInstant(r, now), anything(r))
				}
				k.DoneAt(anyInstant(r, now), anything(r))
			}
			switch r.IntN(12) {
			case 0:
				p.Sweep(anyInstant(r, now))
			case 1:
				_ = p.UpdateAt(anyInstant(r, now), members(1+r.IntN(6)))
			case 2:
				_ = p.SetConfigAt(anyInstant(r, now), c)
			case 3:
				p.SetStates([]evenkeel.StateChange{{ID: "e1", State: evenkeel.State(r.IntN(256)), Source: evenkeel.Source(r.IntN(256))}})
			}
			inRange(t, p.StatsAt(anyInstant(r, now)))
		}
		recovers(t, p, c, now.AddDate(1, 0, 0), seed)
	}
}

func inRange(t *testing.T, s evenkeel.Stats) {
	t.Helper()
	for _, e := range s.Endpoints {
		if e.InFlight != 0 || e.Leaked != 0 || e.Latency < 0 || e.Avoided < 0 || e.Avoided > 4*time.Hour || // the one instant is ahead, the other behind
			!(e.Success >= 0 && e.Success <= 1) ||
			e.Ejection.Wait < 0 || e.Ejection.Wait > 10*time.Minute {
			t.Errorf("%+v", e)
		}
	}
	if s.Limit < 0 || s.Overflowed != 0 {
		t.Errorf("limit %d, %d beyond it", s.Limit, s.Overflowed)
	}
}

// recovers sends good requests for an hour and a half, after which all four endpoints must have had some.
func recovers(t *testing.T, p *evenkeel.Pool[int], c evenkeel.Config, from time.Time, seed uint64) {
	t.Helper()
	if err := p.UpdateAt(from, members(4)); err != nil {
		t.Fatal(err)
	}
	for _, by := range []evenkeel.Source{evenkeel.Connection, evenkeel.Checks, evenkeel.Discovery, evenkeel.Operator} {
		p.SetStates([]evenkeel.StateChange{{ID: "e1", Source: by}})
	}
	got := [4]int{}
	for i := range 5400 * 2 {
		now := from.Add(time.Duration(i) * 500 * time.Millisecond)
		p.Sweep(now)
		k, err := p.PickAt(now, evenkeel.Request{HasKey: true, Key: uint64(i) * 0x9e3779b97f4a7c15, Idempotent: true})
		if err != nil {
			continue
		}
		if i > 3600*2 {
			got[k.Handle()]++
		}
		k.DoneAt(now.Add(time.Millisecond), evenkeel.Result{Outcome: evenkeel.Success})
	}
	s := p.StatsAt(from.Add(90 * time.Minute))
	for i, n := range got {
		if n < 50 {
			t.Errorf("seed %d, %v, %T: e%d had %d of 3,600 requests: %+v", seed, c.Outlier.Mode, c.Policy, i, n, s.Endpoints[i])
		}
	}
	if s.Ready != 4 || s.Panicking || s.Limit != 0 {
		t.Errorf("seed %d, %v, %T: at last %d may be picked, panic %v, limit %d", seed, c.Outlier.Mode, c.Policy, s.Ready, s.Panicking, s.Limit)
	}
}
